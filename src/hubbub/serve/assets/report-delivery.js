// Sends a report until the collector says that it is stored: always the same bytes, so that it counts once.

const MAX_TRIES = 5;
const PATIENCE = 20_000; // milliseconds for one answer
const PAUSE = 1_000; // before the second try; each further one waits twice as long
const MAX_PAUSE = 30_000;

const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Whether the same bytes may be taken later. */
const isPassing = (status) => status >= 500 || status === 408 || status === 429;

/**
 * Return { stored, answer }: whether it is stored, and what the collector said, null if it said nothing.
 *
 * `trying` is called before each try with its number.
 */
export async function deliver(address, body, trying = () => {}) {
  let answer = null;
  for (let number = 1; number <= MAX_TRIES; number++) {
    trying(number, MAX_TRIES);
    let after = PAUSE * 2 ** (number - 1);
    try {
      const response = await fetch(address, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
        credentials: "omit",
        cache: "no-store",
        redirect: "error",
        referrerPolicy: "no-referrer",
        signal: AbortSignal.timeout(PATIENCE),
      });
      answer = { status: response.status, ...(await response.json()) };
      if (response.ok) return { stored: true, answer };
      if (!isPassing(response.status)) return { stored: false, answer };
      after = Math.max(after, 1000 * Number(response.headers.get("retry-after") ?? 0));
    } catch {
      answer = null; // lost on the way there, or on the way back: the next try finds out
    }
    if (number < MAX_TRIES) await wait(Math.min(after, MAX_PAUSE));
  }
  return { stored: false, answer };
}
