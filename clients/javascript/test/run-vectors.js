// Runs a file of clients/vectors: the same bytes must give the same output, all of them used, and no others asked for.
// Browsers load this module, too.

/** Return the bytes of hexadecimal digits. */
export function bytesOf(digits) {
  const byteAt = (place) => parseInt(digits.slice(2 * place, 2 * place + 2), 16);
  return Uint8Array.from({ length: digits.length / 2 }, (_, place) => byteAt(place));
}

/** Return how many cases a file has, and those that went wrong, each in a line; `module` is the client's. */
export async function runVectors(file, { Client, ClientError }) {
  const failures = [];
  let cases = 0;
  for (const study of file.studies) {
    let bytes = new Uint8Array();
    let used = 0;
    const randomBytes = (count) => {
      used += count;
      return bytes.slice(used - count, used);
    };
    const client = await Client.from(study.document, { fingerprint: study.document.fingerprint, randomBytes });
    for (const [number, { call = "privatize", value, earlier, bytes: digits, output, error }] of study.cases.entries()) {
      [bytes, used] = [bytesOf(digits), 0];
      let result;
      try {
        result = client[call](value, "m", ...(earlier ? [earlier] : []));
      } catch (caught) {
        if (!(caught instanceof ClientError)) throw caught;
        result = `error: ${caught.what}`;
      }
      const expected = error === undefined ? output : `error: ${error}`;
      cases += 1;
      if (result !== expected || used !== bytes.length) {
        const told = `${result} from ${used} bytes instead of ${expected} from ${bytes.length}`;
        failures.push(`${file.kind}, ${study.name}, case ${number} (${call}): ${told}`);
      }
    }
  }
  return { cases, failures };
}
