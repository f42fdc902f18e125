// Privatize values on a person's device by the mechanisms of a study: hubbub's client for browsers, Node, Deno and Bun.
//
//   const client = await Client.from(await (await fetch("study.json")).text(), { fingerprint: "..." });
//   client.report("yes");    // { mechanism, output, key }, ready to be sent; the value stays here
//
// `hubbub export-client STUDY` writes study.json: the study's values, and the whole numbers that outputs are drawn
// from. All of it is checked before anything is drawn. All randomness comes from crypto.getRandomValues. No float
// decides a draw: random bytes are compared with whole numbers. From the same bytes, hubbub.client in Python makes the
// same outputs; clients/vectors holds thousands of such cases.
//
// Sections: limits, errors, whole numbers, the document, the domain, random draws, noise, laws, memory, the client.

// --- limits ----------------------------------------------------------------------------------------------------------

const VERSION = 1; // of study.json
const MAX_VALUES = 100_000_000;
const MAX_EXACT = 2 ** 53; // numbers hold every whole number up to this
const MAX_LENGTH = 1e100; // sides of cells, and distances of edges from 0
const MAX_WIDTH = 1 << 17; // bits of a probability
const MAX_STEPS = 4096; // steps of noise on a line that one table holds
const SLOWEST = 4096n; // endless noise leaves a block at most this much more often than it ends there
const MAX_BUCKETS = 2 ** 31;
const [MAX_COHORTS, MAX_FILTER_BITS, MAX_HASHES] = [65536, 256, 16];
const MAX_SKETCH = 2 ** 16;
const MAX_DEPTH = 32; // of objects and lists in the document
const MAX_CHANCES = 1024; // acceptance probabilities that are kept
const QUOTA = 65536; // bytes that crypto.getRandomValues gives at once
const POOL = 4096; // bytes that are asked for at once where draws are short
const RELATIVE_TIE = 1e-9; // distances that differ by less, relatively, count as equal

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/; // of mechanisms and attributes
const SHA256 = /^[0-9a-f]{64}$/;
const WHOLE_NUMBER = /^[+-]?[0-9]{1,19}$/;
const WHOLE_FLOAT = /^[+-]?[0-9]{1,19}\.0$/;
const NUMBER = /^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;
const WRITE_AGAIN = "write it again: hubbub export-client STUDY -o FILE";

// --- errors ----------------------------------------------------------------------------------------------------------

/** A study, value or storage that cannot be used. No part of it ever contains the value. */
export class ClientError extends Error {
  constructor(what, { where, got, expected, remedy }) {
    super(`${what}\n  where:    ${where}\n  got:      ${got}\n  expected: ${expected}\n  remedy:   ${remedy}`);
    Object.assign(this, { name: "ClientError", what, where, got, expected, remedy });
  }
}

const unusable = (where, got, expected, what = "the study cannot be used") =>
  new ClientError(what, { where, got, expected, remedy: WRITE_AGAIN });

const notInDomain = (value, values, where) =>
  new ClientError("the value is not in the study's domain", {
    where,
    got: `a value of type ${kindOf(value)}`, // errors end up in logs, so the value is not shown
    expected: `one of ${values.count} values, a number in a bin, or [latitude, longitude]`,
    remedy: "correct the value; values outside the study are not reported",
  });

const kindOf = (value) => (value === null ? "null" : Array.isArray(value) ? "list" : typeof value);

/** Return a part of the document on one short line; for the document alone, never for values. */
function shorten(part) {
  if (part === undefined) return "nothing";
  const text = ["string", "number", "boolean", "list"].includes(kindOf(part)) ? JSON.stringify(part) : kindOf(part);
  return text.length <= 60 ? text : `${text.slice(0, 59)}…`;
}

// --- whole numbers ---------------------------------------------------------------------------------------------------

const power = (bits) => 1n << BigInt(bits);

function bitLength(number) {
  const digits = number.toString(16);
  return number ? 4 * digits.length - Math.clz32(parseInt(digits[0], 16)) + 28 : 0;
}

/** Return the square root of a positive number, rounded down. */
function squareRoot(number) {
  let root = power((bitLength(number) + 1) >> 1); // at least the root: it falls from here on
  for (;;) {
    const next = (root + number / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}

const trailingZeros = (number) => BigInt(bitLength(number & -number) - 1);

/** Return a fraction in lowest terms. */
function reduced(numerator, denominator) {
  let [one, other] = [numerator, denominator];
  const zeros = trailingZeros(one | other); // powers of two first: they are most of what is common
  [one, other] = [one >> trailingZeros(one), other >> trailingZeros(other)];
  while (other) [one, other] = [other, one % other];
  const common = one << zeros;
  return [numerator / common, denominator / common];
}

/** Return a whole number from bytes, the least significant first. */
function fromBytes(bytes) {
  let number = 0n;
  for (let end = bytes.length; end > 0; end -= 6) {
    const start = Math.max(0, end - 6);
    let part = 0;
    for (let place = end - 1; place >= start; place--) part = part * 256 + bytes[place];
    number = (number << BigInt(8 * (end - start))) | BigInt(part);
  }
  return number;
}

/** Increasing whole numbers below 2^width, against which random bytes are compared, most significant byte first. */
class Borders {
  constructor(width, numbers) {
    this.size = width / 8;
    this.count = numbers.length;
    this.bytes = new Uint8Array(this.count * this.size);
    numbers.forEach((number, place) => {
      const digits = number.toString(16).padStart(2 * this.size, "0");
      for (let byte = 0; byte < this.size; byte++) {
        const at = 2 * (this.size - 1 - byte);
        this.bytes[place * this.size + byte] = parseInt(digits.slice(at, at + 2), 16);
      }
    });
  }

  /** Whether the number that was drawn is below a border. */
  isAbove(drawn, start, place) {
    const own = place * this.size;
    for (let byte = this.size - 1; byte >= 0; byte--) {
      const difference = drawn[start + byte] - this.bytes[own + byte];
      if (difference !== 0) return difference < 0;
    }
    return false;
  }

  /** Return how many borders are at most the number that was drawn. */
  rank(drawn) {
    let [low, high] = [0, this.count];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.isAbove(drawn, 0, middle)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

const logsOfTwo = new Map();

/** Return 2^bits log 2 = 2^bits 2 atanh(1/3), rounded down or up to two less. */
function logOfTwo(bits) {
  if (!logsOfTwo.has(bits)) {
    let [term, total, odd] = [power(bits + 33) / 3n, 0n, 1n];
    for (; term; term /= 9n, odd += 2n) total += term / odd;
    logsOfTwo.set(bits, (total >> 32n) - 1n);
  }
  return logsOfTwo.get(bits);
}

/** Return low and q with low <= 2^(256 + q) exp(-x), less than 4 apart, for a fraction x >= 0. */
function expMinus(numerator, denominator) {
  const inner = 256 + 64;
  const fine = inner + bitLength(numerator / denominator);
  const scaled = (numerator << BigInt(fine)) / denominator;
  const q = scaled / logOfTwo(fine);
  const rest = (scaled - q * logOfTwo(fine)) >> BigInt(fine - inner + 8); // over 2^8
  let [total, term, n] = [0n, power(inner), 0n];
  while (term) {
    total += n % 2n ? -term : term;
    n += 1n;
    term = ((term * rest) >> BigInt(inner)) / n;
  }
  for (let squared = 0; squared < 8; squared++) total = (total * total) >> BigInt(inner);
  const error = (2n * n + 64n) << 8n;
  return [(total - error) >> 64n, q];
}

// --- the document ----------------------------------------------------------------------------------------------------

/** Return the one spelling of JSON that digests are made of: sorted names, no blanks, ASCII alone. */
function canonical(part, where = "study.json", depth = 0) {
  if (depth > MAX_DEPTH) throw unusable(where, "objects in objects", `at most ${MAX_DEPTH} of them`);
  if (part === null || typeof part === "boolean") return String(part);
  if (typeof part === "string") {
    const escaped = (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;
    return JSON.stringify(part).replace(/[^ -~]/g, escaped);
  }
  if (typeof part === "number" && Number.isInteger(part) && Math.abs(part) <= MAX_EXACT) return String(part);
  if (Array.isArray(part)) return `[${part.map((each) => canonical(each, where, depth + 1)).join(",")}]`;
  if (typeof part !== "object") throw unusable(where, shorten(part), "objects, lists, texts and whole numbers");
  const names = Object.keys(part).sort(); // ASCII: every language sorts them alike
  const odd = names.find((name) => !/^[ -~]*$/.test(name));
  if (odd !== undefined) throw unusable(where, `an entry ${shorten(odd)}`, "entries with names in ASCII");
  return `{${names.map((name) => `"${name}":${canonical(part[name], where, depth + 1)}`).join(",")}}`;
}

async function sha256(text) {
  if (!globalThis.crypto?.subtle) {
    throw new ClientError("the study's digest cannot be computed here", {
      where: "Client.from(document)",
      got: "no crypto.subtle",
      expected: "a page with a secure origin (https, or localhost), or Node 20 or newer",
      remedy: "serve the page by https",
    });
  }
  const digest = new Uint8Array(await globalThis.crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return hexadecimal(digest);
}

/** An object of the document, whose entries are taken one by one: missing, unfit and unknown ones are refused. */
class Entries {
  #left;
  #known = [];

  constructor(content, where) {
    if (kindOf(content) !== "object") throw unusable(where, shorten(content), "an object");
    this.where = where;
    this.#left = new Map(Object.entries(content));
  }

  unusable(name, got, expected) {
    return unusable(`${this.where}, ${name}`, got, expected);
  }

  has(name) {
    if (!this.#known.includes(name)) this.#known.push(name);
    return this.#left.has(name);
  }

  take(name) {
    if (!this.has(name)) throw unusable(this.where, `no ${name}`, `an entry ${name}`);
    const content = this.#left.get(name);
    this.#left.delete(name);
    return content;
  }

  close() {
    for (const name of this.#left.keys()) {
      throw unusable(this.where, `an entry ${shorten(name)}`, `the entries ${this.#known.join(", ")}`);
    }
  }

  checked(name, fits, expected) {
    const content = this.take(name);
    if (!fits(content)) throw this.unusable(name, shorten(content), expected);
    return content;
  }

  text(name, pattern = /./s) {
    return this.checked(name, (text) => typeof text === "string" && pattern.test(text), `a text like ${pattern}`);
  }

  /** Take a whole number that is not too large for a float. */
  count(name, low, high) {
    const fits = (number) => Number.isInteger(number) && low <= number && number <= high;
    return this.checked(name, fits, `a whole number from ${low} to ${high}`);
  }

  list(name, length, fits, expected) {
    const listed = (content) =>
      Array.isArray(content) && (length === undefined || content.length === length) && content.every(fits);
    return this.checked(name, listed, `a list of ${length ?? "some"} ${expected}`);
  }

  texts(name, length) {
    return this.list(name, length, isLabel, "texts");
  }

  /** Take increasing whole numbers below a limit. */
  places(name, limit) {
    const isPlace = (place) => Number.isInteger(place) && place >= 0 && place < limit;
    const listed = this.list(name, undefined, isPlace, "places");
    if (listed.some((place, at) => at > 0 && place <= listed[at - 1])) {
      throw this.unusable(name, shorten(listed), "increasing whole numbers");
    }
    return listed;
  }

  /** Take floats, written as decimal numbers. */
  float(name, limit) {
    const number = Number(this.text(name, NUMBER));
    if (!(Math.abs(number) <= limit)) throw this.unusable(name, String(number), `a number at most ${limit} from 0`);
    return number;
  }

  width() {
    const fits = (width) => Number.isInteger(width) && width >= 64 && width <= MAX_WIDTH && width % 64 === 0;
    return this.checked("width", fits, `a multiple of 64 up to ${MAX_WIDTH}`);
  }

  /** Take hexadecimal digits of a whole number from `low` to below `limit`. */
  weight(name, low, limit) {
    const number = parseWeight(this.take(name));
    if (number === null || number < low || number >= limit) {
      const expected = `hexadecimal digits of a number from ${low} to below 2^${bitLength(limit) - 1}`;
      throw this.unusable(name, "digits that do not fit", expected);
    }
    return number;
  }

  weights(name, length) {
    const numbers = this.list(name, length, (digits) => parseWeight(digits) !== null, "hexadecimal numbers");
    return numbers.map(parseWeight);
  }

  /** Take two such numbers with a stroke between them. */
  fraction(name) {
    return this.parseFraction(name, this.take(name));
  }

  fractions(name, length) {
    return this.list(name, length, () => true, "fractions").map((text) => this.parseFraction(name, text));
  }

  parseFraction(name, text) {
    const [numerator, denominator, more] = (typeof text === "string" ? text.split("/") : []).map(parseWeight);
    if (more !== undefined || numerator == null || !denominator) {
      throw this.unusable(name, shorten(text), "a fraction of hexadecimal numbers");
    }
    return [numerator, denominator];
  }

  inside(name) {
    return new Entries(this.take(name), `${this.where}, ${name}`);
  }
}

const isLabel = (text) => typeof text === "string" && text !== "";

function parseWeight(digits) {
  const fits = typeof digits === "string" && 4 * digits.length <= 2 * MAX_WIDTH && /^[0-9a-f]+$/.test(digits);
  return fits ? BigInt(`0x${digits}`) : null;
}

// --- the domain ------------------------------------------------------------------------------------------------------

// Each domain has `count` values, `find(value)` for the position of one (undefined if it has none such), and
// `text(position)` for how reports write it. Values are read as hubbub.client in Python reads them; numbers are floats.

/** Return a whole number, or its text, as a BigInt; null for anything else, and for floats that may be rounded. */
function wholeNumber(value) {
  if (typeof value === "bigint") return value;
  if (typeof value === "string" && WHOLE_NUMBER.test(value)) return BigInt(value);
  const number = typeof value === "string" && WHOLE_FLOAT.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isInteger(number) && Math.abs(number) < MAX_EXACT ? BigInt(number) : null;
}

/** Return a number, or its text; NaN for anything else. */
function realNumber(value) {
  if (typeof value === "string") return NUMBER.test(value) ? Number(value) : NaN;
  return typeof value === "number" || typeof value === "bigint" ? Number(value) : NaN;
}

/** Return the position of a whole number from `low` to `high`; undefined for others. */
function offset(value, low, high) {
  const number = wholeNumber(value);
  return number === null || number < low || number > high ? undefined : Number(number - BigInt(low));
}

/** Return the place of the first of increasing numbers that is above another one; how many there are if none is. */
function firstAbove(numbers, other) {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (other < numbers[middle]) high = middle;
    else low = middle + 1;
  }
  return low;
}

const clamp = (number, low, high) => Math.min(Math.max(number, low), high);

function readDomain(entries, kinds = Object.keys(DOMAINS)) {
  const kind = entries.checked("kind", (name) => kinds.includes(name), kinds.join(", "));
  const values = { kind, ...DOMAINS[kind](entries) };
  entries.close();
  if (!(values.count >= 2 && values.count <= MAX_VALUES)) {
    throw unusable(entries.where, `${values.count} values`, `from 2 to ${MAX_VALUES} values`);
  }
  return values;
}

function readCategories(entries) {
  const labels = entries.texts("labels");
  const texts = new Map(labels.map((label, position) => [label, position]));
  if (texts.size < labels.length) throw entries.unusable("labels", "a label twice", "each label once");
  const numbers = new Map(entries.places("numbers", labels.length).map((place) => [labels[place], place]));
  for (const label of numbers.keys()) {
    if (!/^-?[0-9]+$/.test(label) || String(BigInt(label)) !== label) {
      throw entries.unusable("numbers", shorten(label), "places of labels that are whole numbers");
    }
  }
  function find(value) {
    if (typeof value !== "string") return numbers.get(String(wholeNumber(value)));
    return texts.get(value) ?? (value.includes(".") ? numbers.get(String(wholeNumber(value))) : undefined);
  }
  return { count: labels.length, find, text: (position) => labels[position] };
}

function readIntegers(entries) {
  const low = entries.count("low", -MAX_EXACT, MAX_EXACT);
  const high = entries.count("high", -MAX_EXACT, MAX_EXACT);
  const text = (position) => String(low + position);
  return { low, count: high - low + 1, find: (value) => offset(value, low, high), text };
}

function readBins(entries) {
  const edges = entries.texts("edges").map((text) => (NUMBER.test(text) ? Number(text) : NaN));
  if (!edges.every((edge, place) => Math.abs(edge) <= MAX_LENGTH && (place === 0 || edges[place - 1] < edge))) {
    throw entries.unusable("edges", shorten(edges), `increasing numbers, at most ${MAX_LENGTH} from 0`);
  }
  function find(value) {
    const number = realNumber(value);
    if (!(edges[0] <= number && number <= edges.at(-1))) return undefined;
    return Math.min(firstAbove(edges, number), edges.length - 1) - 1; // the last bin includes its right edge
  }
  return { count: edges.length - 1, find, text: String };
}

function readGrid(entries) {
  const columns = entries.count("columns", 1, MAX_VALUES);
  const rows = entries.count("rows", 1, MAX_VALUES);
  const size = columns * rows;
  if (size > MAX_VALUES) throw unusable(entries.where, `${columns} x ${rows} cells`, `at most ${MAX_VALUES}`);
  const exactSides = entries.fractions("sides", 2);
  const sides = exactSides.map(([numerator, denominator]) => Number(numerator) / Number(denominator));
  if (!sides.every((side) => side >= 1 / MAX_LENGTH && side <= MAX_LENGTH)) {
    throw entries.unusable("sides", shorten(sides), `lengths from ${1 / MAX_LENGTH} to ${MAX_LENGTH}`);
  }
  const box = entries.has("box") ? readBox(entries.inside("box")) : null;
  const cells = entries.has("cells") ? entries.places("cells", size) : null;
  const positions = cells && new Map(cells.map((cell, position) => [cell, position]));

  function find(value) {
    let cell;
    if (box && Array.isArray(value)) {
      const [latitude, longitude] = value.map(realNumber);
      const { south, west, north, east } = box;
      const inside = south <= latitude && latitude <= north && west <= longitude && longitude <= east;
      if (value.length !== 2 || !inside) return undefined;
      const column = Math.min(Math.trunc(((longitude - west) / (east - west)) * columns), columns - 1);
      cell = Math.min(Math.trunc(((latitude - south) / (north - south)) * rows), rows - 1) * columns + column;
    } else cell = offset(value, 0, size - 1);
    return positions ? positions.get(cell) : cell;
  }
  const label = (position) => (cells ? cells[position] : position);
  const place = (position) => [label(position) % columns, Math.floor(label(position) / columns)];
  /** Return the position of the nearest cell; at equal distances the first. */
  function nearest(column, row) {
    if (!cells) return clamp(row, 0, rows - 1) * columns + clamp(column, 0, columns - 1);
    const distances = cells.map((cell) => {
      const [across, along] = [((cell % columns) - column) * sides[0], (Math.floor(cell / columns) - row) * sides[1]];
      return Math.sqrt(across * across + along * along);
    });
    const limit = distances.reduce((least, distance) => Math.min(least, distance)) * (1 + RELATIVE_TIE);
    return distances.findIndex((distance) => distance <= limit);
  }
  const text = (position) => String(label(position));
  return { count: cells ? cells.length : size, find, text, columns, rows, exactSides, whole: !cells, place, nearest };
}

function readBox(entries) {
  const box = {};
  for (const side of ["south", "west", "north", "east"]) {
    box[side] = entries.float(side, side === "south" || side === "north" ? 90 : 180);
  }
  entries.close();
  if (!(box.south < box.north && box.west < box.east)) {
    throw unusable(entries.where, shorten(Object.values(box)), "south < north and west < east");
  }
  return box;
}

function readProduct(entries) {
  const single = Object.keys(DOMAINS).filter((kind) => kind !== "product");
  const attributes = new Map();
  for (const [place, content] of entries.list("attributes", undefined, () => true, "attributes").entries()) {
    const own = new Entries(content, `${entries.where}, attribute ${place}`);
    const name = own.text("name", NAME);
    if (attributes.has(name)) throw own.unusable("name", name, "each attribute once");
    attributes.set(name, readDomain(own, single));
  }
  const names = [...attributes.keys()];
  const domains = [...attributes.values()];
  const size = domains.reduce((product, own) => product * own.count, 1);
  if (names.length < 2 || size > MAX_VALUES) {
    const got = `${names.length} attributes, ${size} combinations`;
    throw unusable(entries.where, got, `at least 2 attributes, at most ${MAX_VALUES} combinations`);
  }
  const rules = entries.list("impossible", undefined, () => true, "rules").map((content, number) => {
    const rule = new Entries(content, `${entries.where}, rule ${number}`);
    const barred = names.map((name, at) => (rule.has(name) ? new Set(rule.places(name, domains[at].count)) : null));
    rule.close();
    if (barred.every((places) => !places?.size)) throw unusable(rule.where, "no values", "values of some attributes");
    return barred;
  });
  const isBarred = (places) => rules.some((rule) => rule.every((barred, at) => !barred || barred.has(places[at])));
  const sides = domains.map((own) => own.count);
  // Attributes that no rule names do not matter for how many combinations are possible.
  const named = sides.map((side, at) => (rules.some((rule) => rule[at]) ? side : 1));
  const count = rules.length
    ? (countWhere(named, (places) => !isBarred(places)) * size) / named.reduce((product, side) => product * side, 1)
    : size;
  let listed = null; // cells of the possible combinations, if some are not; needed by some mechanisms alone
  function possible() {
    if (!listed) {
      listed = new Uint32Array(count);
      let position = 0;
      for (let cell = 0; cell < size; cell++) if (!isBarred(placesIn(sides, cell))) listed[position++] = cell;
    }
    return listed;
  }

  /** Return the position of each attribute's value: of a list in their order, or of an object with their names. */
  function coordinates(value) {
    let listed = value;
    let missing = [];
    if (kindOf(value) === "object") {
      const own = Object.keys(value);
      missing = names.filter((name) => !Object.hasOwn(value, name));
      const fits = own.length === names.length && missing.length === 0;
      listed = fits ? names.map((name) => value[name]) : { length: own.length };
    }
    if (!Array.isArray(listed) || listed.length !== names.length) {
      throw new ClientError("the value does not have one entry for each attribute", {
        where: "privatize(value)",
        got: missing.length
          ? `no entry for ${missing.join(", ")}`
          : kindOf(value) === "object" || Array.isArray(value)
            ? `${listed.length} entries`
            : "one entry",
        expected: `[${names.join(", ")}], or an object with these names`,
        remedy: "pass a value of each attribute",
      });
    }
    const places = domains.map((own, at) => positionOf(own, listed[at], `privatize(value), attribute ${names[at]}`));
    if (isBarred(places)) {
      throw new ClientError("the study calls this combination impossible", {
        where: "privatize(value)",
        got: "a combination that a rule bars",
        expected: "a combination that no rule of `impossible` bars",
        remedy: "correct the value; values outside the study are not reported",
      });
    }
    return places;
  }
  function find(value) {
    const cell = coordinates(value).reduce((sum, place, at) => sum * sides[at] + place, 0);
    return rules.length ? firstAbove(possible(), cell) - 1 : cell;
  }
  function text(position) {
    const places = placesIn(sides, rules.length ? possible()[position] : position);
    return writtenTogether(names.map((name, at) => [name, domains[at].text(places[at])]));
  }
  return { count, find, text, attributes, coordinates };
}

/** Return the places on each side of a table, of a cell of it; the last side varies fastest. */
function placesIn(sides, cell) {
  const places = [];
  for (let at = sides.length - 1; at >= 0; at--) {
    places[at] = cell % sides[at];
    cell = Math.floor(cell / sides[at]);
  }
  return places;
}

function countWhere(sides, fits) {
  let count = 0;
  const size = sides.reduce((product, side) => product * side, 1);
  for (let cell = 0; cell < size; cell++) count += fits(placesIn(sides, cell));
  return count;
}

const DOMAINS = {
  categories: readCategories,
  integers: readIntegers,
  bins: readBins,
  grid: readGrid,
  product: readProduct,
};

/** Return outputs of several attributes as one column of reports holds them. */
const writtenTogether = (pairs) =>
  `{${pairs.map(([name, output]) => `${JSON.stringify(name)}: ${JSON.stringify(output)}`).join(", ")}}`;

/** Return the position of a value, or refuse it. */
function positionOf(values, value, where = "privatize(value)") {
  const position = values.find(value);
  if (position === undefined) throw notInDomain(value, values, where);
  return position;
}

// --- random draws ----------------------------------------------------------------------------------------------------

/** Return new random bytes of the system. */
function newBytes(count) {
  if (!globalThis.crypto?.getRandomValues) {
    throw new ClientError("there is no secure randomness here", {
      where: "privatize(value)",
      got: "no crypto.getRandomValues",
      expected: "a browser, Node 20 or newer, Deno or Bun",
      remedy: "use a newer one; nothing is drawn from other randomness",
    });
  }
  const bytes = new Uint8Array(count);
  for (let start = 0; start < count; start += QUOTA) {
    globalThis.crypto.getRandomValues(bytes.subarray(start, start + QUOTA));
  }
  return bytes;
}

const NOTHING = new Uint8Array(0);
let [pool, taken] = [NOTHING, 0]; // one call for many short draws: calls take longer than bytes do

/** Return random bytes of the system, each once. What is left of a pool is forgotten when the running script ends. */
function systemBytes(count) {
  if (count > POOL) return newBytes(count);
  if (taken + count > pool.length) {
    if (pool === NOTHING) queueMicrotask(() => ([pool, taken] = [NOTHING, 0]));
    [pool, taken] = [newBytes(POOL), 0];
  }
  taken += count;
  return pool.subarray(taken - count, taken);
}

/** Where all random bytes of one client come from. */
class Randomness {
  #source;

  constructor(source) {
    this.#source = source;
  }

  bytes(count) {
    const bytes = this.#source(count);
    if (bytes instanceof Uint8Array && bytes.length === count) return bytes;
    throw new ClientError("randomBytes did not give random bytes", {
      where: "Client.from(document, { randomBytes })",
      got: kindOf(bytes),
      expected: `a Uint8Array of ${count} bytes`,
      remedy: "leave randomBytes out: it is for tests alone",
    });
  }

  /** Return a function that draws uniform BigInts below a bound; words beyond its last multiple are drawn again. */
  below(bound) {
    const size = (bitLength(bound) >> 3) + 8;
    const limit = (power(8 * size) / bound) * bound;
    return () => {
      for (;;) {
        const drawn = fromBytes(this.bytes(size));
        if (drawn < limit) return drawn % bound;
      }
    };
  }

  /** Return a function that says yes with probability border / 2^width. */
  event(width, border) {
    const borders = new Borders(width, [border]);
    return () => borders.isAbove(this.bytes(borders.size), 0, 0);
  }

  /** Return a function that says yes with probability numerator / denominator. */
  chance([numerator, denominator]) {
    const draw = this.below(denominator);
    return () => draw() < numerator;
  }

  /** Return a function that draws a place in a list of weights. */
  weighted(weights) {
    const sums = runningSums(weights);
    const draw = this.below(sums.at(-1));
    return () => {
      const drawn = draw();
      return sums.findIndex((sum) => drawn < sum);
    };
  }

  /** Return a function from a position to it, or to any of `count` positions: the draws are the same in both cases. */
  response(count, keeps) {
    const any = this.below(BigInt(count));
    return (position) => {
      const other = Number(any());
      return keeps() ? position : other;
    };
  }

  /** Call a function for the bytes of each of `count` draws, which are asked for many at a time. */
  each(count, size, use) {
    const most = Math.max(1, Math.floor(QUOTA / size));
    for (let first = 0; first < count; first += most) {
      const own = Math.min(most, count - first);
      const bytes = this.bytes(own * size);
      for (let place = 0; place < own; place++) use(first + place, bytes, place * size);
    }
  }
}

function runningSums(weights) {
  let total = 0n;
  return weights.map((weight) => (total += weight));
}

/** A row of bits, packed as reports hold them: eight to a byte, the first one highest. */
class BitRow {
  constructor(count) {
    this.count = count;
    this.bytes = new Uint8Array((count + 7) >> 3);
  }

  flip(position) {
    this.bytes[position >> 3] ^= 0x80 >> (position & 7);
  }

  has(position) {
    return (this.bytes[position >> 3] & (0x80 >> (position & 7))) > 0;
  }

  /** Return the row that a text has; null for other texts. */
  static read(count, text) {
    const row = new BitRow(count);
    const digits = text.replace(/^0x/, "");
    if (digits.length !== 2 * row.bytes.length || !/^[0-9a-fA-F]+$/.test(digits)) return null;
    row.bytes.forEach((_, place) => (row.bytes[place] = parseInt(digits.slice(2 * place, 2 * place + 2), 16)));
    return row.bytes.at(-1) & ((1 << (-count & 7)) - 1) ? null : row;
  }

  text() {
    return `0x${hexadecimal(this.bytes)}`;
  }
}

const DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

function hexadecimal(bytes) {
  let text = "";
  for (const byte of bytes) text += DIGITS[byte];
  return text;
}

/** Return a row of bits: 1 with probability own / 2^width for the true value, other / 2^width for all others. */
function drawBits(random, count, position, borders) {
  const row = new BitRow(count);
  random.each(count, borders.size, (value, bytes, start) => {
    if (borders.isAbove(bytes, start, value === position ? 0 : 1)) row.flip(value);
  });
  return row;
}

/** Flip each one of a row with the first probability over 2^width, each zero with the second. */
function flipBits(random, row, borders) {
  random.each(row.count, borders.size, (value, bytes, start) => {
    if (borders.isAbove(bytes, start, row.has(value) ? 0 : 1)) row.flip(value);
  });
  return row;
}

/** Return different places of a list, each drawn from those that are left. */
function drawPlaces(draws) {
  const moved = new Map(); // only those that were exchanged
  return draws.map((draw, at) => {
    const other = at + Number(draw());
    const place = moved.get(other) ?? other;
    moved.set(other, moved.get(at) ?? at);
    return place;
  });
}

const WORD = (1n << 64n) - 1n;
const GOLDEN = 0x9e3779b97f4a7c15n;

function mix(number) {
  let word = number & WORD;
  word = ((word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n) & WORD;
  word = ((word ^ (word >> 27n)) * 0x94d049bb133111ebn) & WORD;
  return word ^ (word >> 31n);
}

/** Return the bucket of a position under a seed, by version 1 of the hash, which never changes. */
function bucketOf(seed, position, buckets) {
  const word = mix(mix(seed + GOLDEN) + BigInt(position + 1) * GOLDEN);
  return Number(((word >> 32n) * BigInt(buckets)) >> 32n);
}

// --- noise -----------------------------------------------------------------------------------------------------------

/**
 * Symmetric noise on whole numbers, with probabilities over 2^width.
 *
 * It is positive with probability `side`, negative with the same probability, and 0 otherwise. Its size is 1 + r with
 * probability `steps[r]`; with the remaining probability, `rest`, it grows by a block of all steps and is drawn again.
 */
class LineNoise {
  #sides;
  #sums;

  constructor(entries, random, endless) {
    this.random = random;
    this.width = entries.width();
    this.one = power(this.width);
    this.side = entries.weight("side", 1n, this.one / 2n);
    const ratio = entries.weight("ratio", 1n, this.one);
    this.steps = [];
    let product = this.one;
    for (let count = entries.count("steps", 1, MAX_STEPS); count > 0; count--) {
      this.steps.push((product * (this.one - ratio)) >> BigInt(this.width));
      product = (product * ratio) >> BigInt(this.width);
    }
    entries.close();
    const sums = runningSums(this.steps);
    this.rest = this.one - sums.at(-1);
    const slow = this.rest > this.one / 2n && this.steps.length < MAX_STEPS;
    if (slow || (endless && this.one - this.rest < this.one / SLOWEST)) {
      throw unusable(entries.where, "noise that would hardly ever end", "steps that are likely enough");
    }
    this.#sides = new Borders(this.width, [this.side, 2n * this.side]);
    this.#sums = new Borders(this.width, sums);
  }

  /** Draw once; a draw of more than `most` steps may stop there. */
  draw(most = Infinity) {
    const side = this.#sides.rank(this.random.bytes(this.#sides.size));
    if (side === 2) return 0;
    let gone = 0;
    let step = this.#step();
    while (step === this.steps.length && gone < most) {
      gone += step;
      step = this.#step();
    }
    gone += step + 1;
    return side === 0 ? gone : -gone;
  }

  #step() {
    return this.#sums.rank(this.random.bytes(this.#sums.size));
  }

  /** Return the probability of no step over that of `steps` steps to one side, as a fraction. */
  odds(steps) {
    if (steps === 0) return [1n, 1n];
    const blocks = Math.floor((steps - 1) / this.steps.length);
    const likely = this.side * this.steps[(steps - 1) % this.steps.length] * this.rest ** BigInt(blocks);
    return [(this.one - 2n * this.side) << BigInt(this.width * (blocks + 1)), likely];
  }
}

/** Noise on the cells of a lattice: noise along both axes, accepted so that it falls with the distance. */
class PlanarNoise {
  #chances = new Map();

  constructor(rate, sides, axes, random, where) {
    Object.assign(this, { rate, sides, axes, random, where });
  }

  draw() {
    for (;;) {
      const [columns, rows] = this.axes.map((axis) => axis.draw());
      if (this.#accepts(Math.abs(columns), Math.abs(rows))()) return [columns, rows];
    }
  }

  #accepts(columns, rows) {
    const key = `${columns}:${rows}`;
    let accepts = this.#chances.get(key);
    if (!accepts) {
      if (this.#chances.size >= MAX_CHANCES) this.#chances.clear();
      accepts = this.#event(columns, rows);
      this.#chances.set(key, accepts);
    }
    return accepts;
  }

  /** Return the event of the acceptance probability, a fraction over a power of two, in the bits that it takes. */
  #event(columns, rows) {
    const [numerator, denominator] = this.acceptance(columns, rows);
    const width = 64 * Math.ceil(bitLength(denominator) / 64);
    if (numerator > denominator) {
      throw unusable(this.where, "a displacement that is proposed too rarely", "axes whose noise falls slowly enough");
    }
    if (numerator === denominator) {
      return () => this.random.bytes(width / 8).length > 0; // always, and with as many bytes as any other
    }
    return this.random.event(width, (numerator << BigInt(width)) / denominator);
  }

  /** Return exp(-rate d) over the axes' probabilities, relative to no displacement, rounded down to 128 bits. */
  acceptance(columns, rows) {
    if (columns === 0 && rows === 0) return [1n, 1n];
    const [length, scale] = this.#length(BigInt(columns), BigInt(rows));
    const [low, q] = expMinus(this.rate[0] * length, this.rate[1] * scale);
    let [numerator, denominator] = [low, 1n << (256n + q)];
    for (const [above, below] of [this.axes[0].odds(columns), this.axes[1].odds(rows)]) {
      [numerator, denominator] = [numerator * above, denominator * below];
    }
    [numerator, denominator] = reduced(numerator, denominator);
    const bits = BigInt(128 + bitLength(denominator) - bitLength(numerator));
    return reduced((numerator << bits) / denominator, 1n << bits);
  }

  /** Return the length of a displacement as a fraction, rounded down with a relative error below 2^-510. */
  #length(columns, rows) {
    const [[across, acrossScale], [along, alongScale]] = this.sides;
    const [one, other] = [columns * across * alongScale, rows * along * acrossScale];
    const [numerator, denominator] = reduced(one * one + other * other, (acrossScale * alongScale) ** 2n);
    const scale = power(512 + Math.max(0, bitLength(denominator) - bitLength(numerator)));
    return [squareRoot((numerator * scale * scale) / denominator), scale];
  }
}

// --- laws ------------------------------------------------------------------------------------------------------------

// Each reader takes the numbers of a mechanism and returns the function from a position to an output.

function readCloaking(law, values) {
  const regions = law.texts("regions", values.count);
  return (position) => regions[position];
}

function readDesign(law, values, random) {
  if (values.count !== 2) throw unusable(law.where, `${values.count} values`, "two values, the sensitive one first");
  const answers = law.texts("answers", 2);
  const chances = law.fractions("chances", 2);
  if (chances.some(([numerator, denominator]) => numerator > denominator)) {
    throw law.unusable("chances", "a fraction above 1", "probabilities");
  }
  const draws = chances.map((chance) => random.chance(chance));
  return (position) => answers[draws[position]() ? 0 : 1];
}

function readResponse(law, values, random) {
  let keeps;
  if (law.has("kept")) {
    const [numerator, denominator] = law.fraction("kept");
    if (numerator === 0n || numerator >= denominator) {
      throw law.unusable("kept", "no such probability", "a fraction above 0 and below 1");
    }
    keeps = random.chance([numerator, denominator]);
  } else keeps = readKeep(law, random);
  const respond = random.response(values.count, keeps);
  return (position) => values.text(respond(position));
}

function readKeep(law, random) {
  const width = law.width();
  return random.event(width, law.weight("keep", 1n, power(width)));
}

function readHashing(law, values, random) {
  const buckets = law.count("buckets", 2, MAX_BUCKETS);
  const respond = random.response(buckets, readKeep(law, random));
  return (position) => {
    const seed = fromBytes(random.bytes(8));
    return `${seed}:${respond(bucketOf(seed, position, buckets))}`;
  };
}

/** Return the whole number so many steps beyond the value at a position of a line, as text. */
function steppedFrom(values, position, steps) {
  const start = (values.low ?? 0) + position;
  const sum = start + steps;
  return Number.isSafeInteger(sum) ? String(sum) : String(BigInt(start) + BigInt(steps));
}

function readGeometric(law, values, random) {
  const noise = new LineNoise(law.inside("noise"), random, true);
  return (position) => steppedFrom(values, position, noise.draw());
}

function readWindow(law, values, random) {
  const reach = law.count("reach", 0, values.count);
  const near = random.below(BigInt(2 * reach + 1));
  const respond = random.response(values.count + 2 * reach, readKeep(law, random));
  return (position) => steppedFrom(values, 0, respond(position + Number(near())) - reach);
}

/** Two ends of a line: the value is rounded to one at random, and that is the truth of randomized response. */
function readEnds(law, values, random) {
  const far = random.below(BigInt(values.count - 1));
  const respond = random.response(2, readKeep(law, random));
  return (position) => ["-1", "1"][respond(far() < BigInt(position) ? 1 : 0)];
}

/** Noise in stairs: those beyond the lowest one are as long as the line. */
function readStairs(law, values, random) {
  const stair = values.count - 1;
  const reach = law.count("reach", 0, stair - 1);
  const [near, place] = [2 * reach + 1, stair].map((count) => random.below(BigInt(count)));
  const noise = new LineNoise(law.inside("noise"), random, true);
  return (position) => {
    const step = noise.draw();
    const away = step ? reach + 1 + (Math.abs(step) - 1) * stair + Number(place()) : Number(near()) - reach;
    return steppedFrom(values, position, step < 0 ? -away : away);
  };
}

function readClampedNoise(law, values, random) {
  const noise = new LineNoise(law.inside("noise"), random, false);
  return (position) => values.text(clamp(position + noise.draw(values.count), 0, values.count - 1));
}

function readPlanar(law, values, random) {
  const rate = law.fraction("rate");
  const readAxis = (axis) => new LineNoise(new Entries(axis, `${law.where}, axes`), random, true);
  const axes = law.list("axes", 2, () => true, "axes").map(readAxis);
  const truncated = law.checked("truncated", (content) => typeof content === "boolean", "true or false");
  const noise = new PlanarNoise(rate, values.exactSides, axes, random, law.where);
  return (position) => {
    const [moved, own] = [noise.draw(), values.place(position)];
    const [column, row] = [own[0] + moved[0], own[1] + moved[1]];
    return truncated ? values.text(values.nearest(column, row)) : `${column}:${row}`;
  };
}

/** Return whether an odd number of bits are ones: a Hadamard matrix is -1 where row and column share such a number. */
function parity(bits) {
  let odd = 0;
  for (let left = bits; left; left &= left - 1) odd ^= 1;
  return odd;
}

const isPower = (number) => (number & (number - 1)) === 0;

function isPrime(number) {
  let factor = 2;
  while (factor * factor <= number && number % factor) factor++;
  return factor * factor > number;
}

function readBlocks(law, values, random) {
  const blocks = law.count("blocks", 1, 2 * values.count - 1);
  if (!isPower(blocks)) throw law.unusable("blocks", blocks, "a power of two");
  const size = 2 ** (32 - Math.clz32(Math.ceil(values.count / blocks)));
  const draw = random.below(BigInt(size / 2));
  const respond = random.response(blocks * size, readKeep(law, random));
  return (position) => {
    const row = Math.floor(position / blocks) + 1;
    const bit = row & -row;
    const place = Number(draw());
    const column = place + (place & -bit); // a zero where the row has its lowest one, which makes the parity even
    return String(respond((position % blocks) * size + column + bit * parity(row & column)));
  };
}

function readPoints(law, values, random) {
  const prime = law.count("prime", 2, MAX_BUCKETS);
  const starts = [0, 1]; // how many points have their 1 before each coordinate
  while (starts.length < 3 || starts.at(-1) < values.count) starts.push(starts.at(-1) * prime + 1);
  if (!isPrime(prime) || starts.at(-1) > MAX_BUCKETS) throw law.unusable("prime", prime, "a prime, not too large");
  const digits = (index) => {
    const free = starts.filter((start) => start <= index).length - 1;
    return Array.from({ length: free }, (_, place) => Math.floor((index - starts[free]) / prime ** place) % prime);
  };
  const draw = random.below(BigInt(starts.at(-2)));
  const respond = random.response(starts.at(-1), readKeep(law, random));
  return (position) => {
    const own = digits(position).reverse(); // of values, what comes after the 1
    const point = [...digits(Number(draw())), 1];
    while (point.length < starts.length - 2) point.push(0);
    const at = point.length - own.length;
    const product = own.reduce((sum, digit, place) => (sum + digit * point[at + place]) % prime, 0);
    point.splice(at, 0, (prime - product) % prime);
    while (point.at(-1) === 0) point.pop();
    point.pop();
    return String(respond(starts[point.length] + point.reduceRight((sum, digit) => sum * prime + digit, 0)));
  };
}

function readSketch(law, values, random) {
  const draw = random.below(BigInt(law.count("hashes", 1, MAX_SKETCH)));
  const buckets = law.count("buckets", 2, MAX_SKETCH);
  const borders = readBorders(law);
  return (position) => {
    const hash = draw();
    return `${hash}:${drawBits(random, buckets, bucketOf(hash, position, buckets), borders).text()}`;
  };
}

function readSigns(law, values, random) {
  const draw = random.below(BigInt(law.count("hashes", 1, MAX_SKETCH)));
  const buckets = law.count("buckets", 2, MAX_SKETCH);
  if (!isPower(buckets)) throw law.unusable("buckets", buckets, "a power of two");
  const drawRow = random.below(BigInt(buckets));
  const respond = random.response(2, readKeep(law, random));
  return (position) => {
    const hash = draw();
    const row = Number(drawRow());
    const sign = parity(row & bucketOf(hash, position, buckets));
    return String(2 * (Number(hash) * buckets + row) + respond(sign));
  };
}

function readBorders(law) {
  const width = law.width();
  return new Borders(width, ["own", "other"].map((name) => law.weight(name, 1n, power(width))));
}

function readUnary(law, values, random) {
  if (law.has("chances")) {
    const chances = law.fractions("chances", 2);
    if (chances.some(([one, whole]) => !one || one >= whole)) {
      throw law.unusable("chances", "no such probabilities", "fractions above 0 and below 1");
    }
    const [own, other] = chances.map((chance) => random.chance(chance));
    return (position) => {
      const row = new BitRow(values.count);
      for (let value = 0; value < values.count; value++) if ((value === position ? own : other)()) row.flip(value);
      return row.text();
    };
  }
  const borders = readBorders(law);
  return (position) => drawBits(random, values.count, position, borders).text();
}

// Of a mechanism with memory, `permanent` makes a response from a position and from earlier ones of the same person,
// `report` makes a report of it, `write` turns it into a text, and `read` turns that back (null: a text of others).

/** Return the draw of a mechanism with memory. */
function remembered({ permanent, report, write, read, form }) {
  function kept(text, where) {
    const response = typeof text === "string" ? read(text) : null;
    if (response !== null) return response;
    throw new ClientError("not a permanent response", {
      where,
      got: `something of type ${kindOf(text)}`, // the response is as private as the value
      expected: form,
      remedy: "pass what permanent(value) returned for this study",
    });
  }
  const draw = (position) => report(permanent(position, []));
  draw.permanent = (position, earlier) => {
    const known = earlier.map((text) => kept(text, "permanent(value, mechanism, earlier)"));
    return write(permanent(position, known));
  };
  draw.instantaneous = (text) => report(kept(text, "instantaneous(permanent)"));
  return draw;
}

function readTwoRows(law, values, random, kind) {
  const [width, { count }] = [law.width(), values];
  const isRappor = kind === "longitudinal-rappor"; // whose bits are all alike
  const atMostHalf = (name) => law.weight(name, 1n, power(width - 1) + 1n);
  const other = atMostHalf(isRappor ? "one" : "other");
  const own = isRappor ? power(width) - other : law.weight("own", 1n, power(width));
  const raised = atMostHalf(isRappor ? "turned" : "raised");
  const lost = isRappor ? raised : atMostHalf("lost");
  const [bits, flips] = [new Borders(width, [own, other]), new Borders(width, [lost, raised])];
  return remembered({
    permanent: (position) => drawBits(random, count, position, bits),
    report: (row) => flipBits(random, row, flips).text(),
    write: (row) => row.text(),
    read: (text) => BitRow.read(count, text),
    form: `0x and ${2 * ((count + 7) >> 3)} hexadecimal digits: ${count} bits, then zeros`,
  });
}

/** Return the functions that respond among `count` positions: permanently, and to that response. */
function twoResponses(law, count, random) {
  const width = law.width();
  return ["permanent", "instantaneous"].map((name) =>
    random.response(count, random.event(width, law.weight(name, 1n, power(width)))),
  );
}

/** Return the whole number below a limit that a text is, as a BigInt; null for other texts. */
function wholeBelow(text, limit) {
  const number = /^[0-9]{1,20}$/.test(text) ? BigInt(text) : limit;
  return number < limit ? number : null;
}

function readTwoResponses(law, values, random) {
  const [respond, repeat] = twoResponses(law, values.count, random);
  return remembered({
    permanent: respond,
    report: (kept) => values.text(repeat(Number(kept))),
    write: String,
    read: (text) => wholeBelow(text, BigInt(values.count)),
    form: `a whole number below ${values.count}`,
  });
}

/** Responses to hashes: the seed stays, and each bucket has one permanent response. */
function readTwoHashes(law, _values, random) {
  const buckets = law.count("buckets", 2, MAX_BUCKETS);
  const [respond, repeat] = twoResponses(law, buckets, random);
  const limits = [WORD + 1n, BigInt(buckets), BigInt(buckets)];
  return remembered({
    permanent(position, earlier) {
      const seed = earlier[0]?.[0] ?? fromBytes(random.bytes(8));
      const own = bucketOf(seed, position, buckets);
      return earlier.find((kept) => kept[0] === seed && Number(kept[2]) === own) ?? [seed, respond(own), own];
    },
    report: ([seed, kept]) => `${seed}:${repeat(Number(kept))}`,
    write: (kept) => kept.join(":"),
    read(text) {
      const kept = text.split(":").map((part, at) => wholeBelow(part, limits[at] ?? 0n));
      return kept.length === 3 && !kept.includes(null) ? kept : null;
    },
    form: `a seed and two buckets below ${buckets}, with colons between`,
  });
}

/** Answers about some buckets: which ones stays, and all values whose bucket is not among them have one response. */
function readAsked(law, values, random) {
  const buckets = law.count("buckets", 2, values.count);
  const bits = law.count("bits", 1, buckets);
  const width = law.width();
  const weights = ["own", "other"].map((name) => law.weight(name, 1n, power(width)));
  const borders = new Borders(width, weights);
  const draws = Array.from({ length: bits }, (_, place) => random.below(BigInt(buckets - place)));
  function ask() {
    const row = new BitRow(buckets);
    for (const bucket of drawPlaces(draws)) row.flip(bucket);
    return row;
  }
  const places = (row) => Array.from({ length: buckets }, (_, bucket) => bucket).filter((bucket) => row.has(bucket));
  const report = ({ asked, ones }) => asked.text() + hexadecimal(ones.bytes);
  return remembered({
    permanent(position, earlier) {
      const asked = earlier[0]?.asked ?? ask();
      const bucket = Number((BigInt(position) * BigInt(buckets)) / BigInt(values.count));
      const own = asked.has(bucket) ? bucket : -1;
      const found = earlier.find((kept) => kept.asked.text() === asked.text() && kept.own === own);
      if (found) return found;
      const ones = new BitRow(buckets);
      const listed = places(asked);
      random.each(bits, borders.size, (at, bytes, start) => {
        if (borders.isAbove(bytes, start, listed[at] === own ? 0 : 1)) ones.flip(listed[at]);
      });
      return { asked, ones, own };
    },
    report,
    write: (kept) => `${report(kept)}:${kept.own}`,
    read(text) {
      const [written, last, more] = text.replace(/^0x/, "").split(":");
      const half = 2 * ((buckets + 7) >> 3);
      const [asked, ones] = [0, half].map((start) => BitRow.read(buckets, written.slice(start, start + half)));
      const own = last === "-1" ? -1 : wholeBelow(last, BigInt(buckets));
      if (written.length !== 2 * half || more !== undefined || !asked || !ones || own === null) return null;
      const isOdd = places(asked).length !== bits || places(ones).some((bucket) => !asked.has(bucket));
      return isOdd || (own >= 0 && !asked.has(Number(own))) ? null : { asked, ones, own: Number(own) };
    },
    form: `0x and ${4 * ((buckets + 7) >> 3)} hexadecimal digits, a colon, and a bucket or -1`,
  });
}

const MD5_SHIFTS = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
const MD5_STEPS = Array.from({ length: 64 }, (_, step) => Math.floor(Math.abs(Math.sin(step + 1)) * 2 ** 32));

/** Return the MD5 of bytes. It spreads texts over bits as other programs do, and protects nothing. */
function md5(bytes) {
  const words = new Uint32Array((((bytes.length + 8) >> 6) + 1) << 4);
  bytes.forEach((byte, at) => (words[at >> 2] |= byte << (8 * (at & 3))));
  words[bytes.length >> 2] |= 0x80 << (8 * (bytes.length & 3));
  words[words.length - 2] = 8 * bytes.length;
  const state = new Uint32Array([0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476]);
  for (let block = 0; block < words.length; block += 16) {
    let [a, b, c, d] = state;
    for (let step = 0; step < 64; step++) {
      const round = step >> 4;
      const mixed = [(b & c) | (~b & d), (d & b) | (~d & c), b ^ c ^ d, c ^ (b | ~d)][round];
      const word = words[block + (([1, 5, 3, 7][round] * step + [0, 1, 5, 0][round]) & 15)];
      const sum = (a + mixed + MD5_STEPS[step] + word) | 0;
      const shift = MD5_SHIFTS[4 * round + (step & 3)];
      [a, d, c, b] = [d, c, b, (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0];
    }
    [a, b, c, d].forEach((part, at) => (state[at] += part));
  }
  return Uint8Array.from({ length: 16 }, (_, at) => state[at >> 2] >>> (8 * (at & 3)));
}

/** Noisy Bloom filters: the cohort stays, and each filter has one permanent response. */
function readBloom(law, values, random) {
  const cohorts = law.count("cohorts", 1, MAX_COHORTS);
  const bits = law.count("bits", 2, MAX_FILTER_BITS);
  const hashes = law.count("hashes", 1, MAX_HASHES);
  const rest = law.has("rest") ? law.count("rest", 0, values.count - 1) : null;
  const [turns, raises, keeps] = ["half", "p", "q"].map((name) => {
    const chance = law.fraction(name);
    if (chance[0] > chance[1]) throw law.unusable(name, "more than 1", "a probability");
    return random.chance(chance);
  });
  const [anyCohort, anyBit] = [cohorts, bits].map((count) => random.below(BigInt(count)));
  const filled = (draw) => {
    const row = new BitRow(bits);
    for (let bit = 0; bit < bits; bit++) if (draw(bit)) row.flip(bit);
    return row;
  };
  function hashed(text, cohort) {
    const encoded = new TextEncoder().encode(text);
    const bytes = new Uint8Array(4 + encoded.length);
    new DataView(bytes.buffer).setUint32(0, cohort);
    bytes.set(encoded, 4);
    return [...md5(bytes).subarray(0, hashes)].map((byte) => byte % bits);
  }
  const write = (kept) => kept.map((part) => (part instanceof BitRow ? part.text() : part)).join(":");
  const draw = remembered({
    permanent(value, earlier) {
      const cohort = Number(earlier[0]?.[0] ?? anyCohort());
      const text = typeof value === "string" ? value : values.text(value);
      const any = () => Array.from({ length: hashes }, () => Number(anyBit()));
      const places = value === rest ? any() : hashed(text, cohort);
      const own = filled((bit) => places.includes(bit));
      const found = earlier.find((kept) => kept[0] === cohort && kept[2].text() === own.text());
      return found ?? [cohort, filled((bit) => turns() !== own.has(bit)), own];
    },
    report: ([cohort, row]) => write([cohort, filled((bit) => (row.has(bit) ? keeps : raises)())]),
    write,
    read(text) {
      const parts = text.split(":");
      const cohort = wholeBelow(parts[0], BigInt(cohorts));
      const [row, own] = parts.slice(1).map((part) => BitRow.read(bits, part));
      const ones = own ? Array.from({ length: bits }, (_, bit) => own.has(bit)).filter(Boolean).length : 0;
      return parts.length === 3 && cohort !== null && row && ones && ones <= hashes ? [Number(cohort), row, own] : null;
    },
    form: `a cohort below ${cohorts} and two rows of ${bits} bits in hexadecimal digits, with colons between`,
  });
  draw.takesTexts = rest !== null;
  return draw;
}

function readSubset(law, values, random) {
  const { count } = values;
  const size = law.count("size", 1, count - 1);
  const width = law.width();
  const leavesOut = random.event(width, law.weight("out", 1n, power(width)));
  const draws = Array.from({ length: size }, (_, place) => random.below(BigInt(count - 1 - place)));
  return (position) => {
    const row = new BitRow(count);
    const out = leavesOut();
    if (!out) row.flip(position);
    const others = drawPlaces(draws); // as many draws with the true value as without it
    for (const other of others.slice(0, out ? size : size - 1)) row.flip(other + (other >= position));
    return row.text();
  };
}

const areWeights = (listed) => Array.isArray(listed) && listed.every((digits) => parseWeight(digits) !== null);

/** Return the borders of a table of weights, which must add up to 2^width. */
function readTable(law, name, width, weights) {
  const sums = runningSums(weights);
  if (!sums.length || sums.at(-1) !== power(width)) {
    throw law.unusable(name, "probabilities that do not add up to 1", `whole numbers that add up to 2^${width}`);
  }
  return new Borders(width, sums.slice(0, sums.indexOf(power(width)))); // nothing that is drawn reaches 2^width
}

function readRows(law, values, random, kind) {
  const width = law.width();
  const outputs = law.texts("outputs", kind === "matrix" ? undefined : values.count);
  if (new Set(outputs).size < outputs.length) throw law.unusable("outputs", "an output twice", "each output once");
  if (kind !== "matrix" && outputs.some((output, position) => output !== values.text(position))) {
    throw law.unusable("outputs", shorten(outputs), "the study's values");
  }
  const isRow = (row) => areWeights(row) && row.length === outputs.length;
  const rows = law.list("rows", values.count, isRow, `rows of ${outputs.length} hexadecimal numbers`);
  const tables = rows.map((row) => readTable(law, "rows", width, row.map(parseWeight)));
  return (position) => outputs[tables[position].rank(random.bytes(width / 8))];
}

function readQuarter(law, values, random) {
  const width = law.width();
  const quarter = law.list("quarter", undefined, areWeights, "columns of hexadecimal numbers");
  const [columns, rows] = [quarter.length - 1, Math.max(0, ...quarter.map((column) => column.length)) - 1];
  // Displacements this long leave the window, which is larger than the grid only if cells are missing.
  const beyond = [columns - values.columns, rows - values.rows];
  const fits = Math.min(...beyond) >= 0 && (!values.whole || Math.max(...beyond) === 0);
  if (!fits || quarter.some((column) => column.length !== rows + 1)) {
    throw law.unusable("quarter", `${columns + 1} x ${rows + 1}`, `those of ${values.columns} x ${values.rows} cells`);
  }
  const window = [[0 - beyond[0], 0 - beyond[1]], [columns - 1, rows - 1]];
  law.checked("window", (content) => JSON.stringify(content) === JSON.stringify(window), JSON.stringify(window));
  const weights = [];
  for (let column = -columns; column <= columns; column++) {
    for (let row = -rows; row <= rows; row++) weights.push(parseWeight(quarter[Math.abs(column)][Math.abs(row)]));
  }
  const table = readTable(law, "quarter", width, weights);
  const [[left, bottom], [right, top]] = window;
  return (position) => {
    const cell = table.rank(random.bytes(width / 8));
    const [column, row] = values.place(position);
    const across = column + Math.floor(cell / (2 * rows + 1)) - columns;
    const along = row + (cell % (2 * rows + 1)) - rows;
    return values.text(values.nearest(clamp(across, left, right), clamp(along, bottom, top)));
  };
}

function readLaplace(law, values, random, kind) {
  return law.has("noise") ? readClampedNoise(law, values, random) : readRows(law, values, random, kind);
}

/** Return the function that draws outputs of several attributes; it takes the position of each. */
function readSeveral(law, values, random, kind) {
  const names = [...values.attributes.keys()];
  const parts = law.inside("parts");
  const draws = names.map((name) => {
    const part = parts.inside(name);
    const draw = readLaw(part, values.attributes.get(name), random, PART_KINDS);
    part.close();
    return draw;
  });
  parts.close();
  const all = (places) => writtenTogether(names.map((name, at) => [name, draws[at](places[at])]));
  if (kind === "split") return all;
  const weights = law.weights("weights", names.length);
  if (weights.includes(0n)) throw law.unusable("weights", "an attribute that is never sent", "positive weights");
  const choose = random.weighted(weights);
  if (kind === "sample-one") {
    return (places) => {
      const chosen = choose();
      return writtenTogether([[names[chosen], draws[chosen](places[chosen])]]);
    };
  }
  const fakes = law.inside("fakes");
  const fake = names.map((name) => {
    const { count } = values.attributes.get(name);
    if (!fakes.has(name)) {
      const any = random.below(BigInt(count));
      return () => Number(any());
    }
    const own = fakes.weights(name, count);
    if (!own.some((weight) => weight > 0n)) throw fakes.unusable(name, "no weight", "a positive weight");
    return random.weighted(own);
  });
  fakes.close();
  return (places) => {
    const chosen = choose();
    const drawn = fake.map((draw, at) => {
      const other = draw(); // for the chosen one, too, so that the draws are the same
      return at === chosen ? places[at] : other;
    });
    return all(drawn);
  };
}

const ALL_DOMAINS = Object.keys(DOMAINS);
const LAWS = {
  "bloom-rappor": [["categories"], readBloom],
  cloaking: [ALL_DOMAINS, readCloaking],
  "count-mean-sketch": [ALL_DOMAINS, readSketch],
  "crosswise-model": [["categories"], readDesign],
  "d-bit-flip": [ALL_DOMAINS, readAsked],
  duchi: [["integers", "bins"], readEnds],
  exponential: [ALL_DOMAINS, readRows],
  "forced-response": [["categories"], readDesign],
  geometric: [["integers"], readGeometric],
  "hadamard-count-mean-sketch": [ALL_DOMAINS, readSigns],
  "hadamard-response": [ALL_DOMAINS, readBlocks],
  laplace: [["integers", "bins"], readLaplace],
  "local-hashing": [ALL_DOMAINS, readHashing],
  "longitudinal-hashing": [ALL_DOMAINS, readTwoHashes],
  "longitudinal-rappor": [ALL_DOMAINS, readTwoRows],
  "longitudinal-response": [ALL_DOMAINS, readTwoResponses],
  "longitudinal-unary": [ALL_DOMAINS, readTwoRows],
  matrix: [ALL_DOMAINS, readRows],
  "optimized-unary": [ALL_DOMAINS, readUnary],
  piecewise: [["integers", "bins"], readWindow],
  "planar-geometric": [["grid"], readPlanar],
  "planar-laplace": [["grid"], readQuarter],
  "projective-response": [ALL_DOMAINS, readPoints],
  "randomized-response": [ALL_DOMAINS, readResponse],
  rappor: [ALL_DOMAINS, readUnary],
  "sample-one": [["product"], readSeveral],
  "sample-one-with-fakes": [["product"], readSeveral],
  split: [["product"], readSeveral],
  "square-wave": [["integers", "bins"], readWindow],
  staircase: [["integers", "bins"], readStairs],
  "subset-selection": [ALL_DOMAINS, readSubset],
  "truncated-geometric": [["integers"], readClampedNoise],
  unary: [ALL_DOMAINS, readUnary],
  "unrelated-question": [["categories"], readDesign],
  warner: [["categories"], readDesign],
};
const KINDS = Object.keys(LAWS);
const WITH_MEMORY = [readBloom, readTwoRows, readTwoResponses, readTwoHashes, readAsked];
const MEMORY_KINDS = KINDS.filter((kind) => WITH_MEMORY.includes(LAWS[kind][1]));
const PART_KINDS = KINDS.filter((kind) => LAWS[kind][1] !== readSeveral && !MEMORY_KINDS.includes(kind));

/** Return the draw of a law; the numbers in it are checked. */
function readLaw(law, values, random, kinds = KINDS) {
  const kind = law.checked("kind", (name) => kinds.includes(name), kinds.join(", "));
  const [domains, read] = LAWS[kind];
  if (!domains.includes(values.kind)) {
    throw unusable(law.where, `${kind} on ${values.kind}`, `a domain of ${domains.join(" or ")}`);
  }
  const draw = read(law, values, random, kind);
  draw.kind = kind;
  return draw;
}

/** Return the draw of a mechanism, with what it promises. */
function readMechanism(name, content, values, random) {
  const law = new Entries(content, `study.json, mechanism ${name}`);
  const draw = readLaw(law, values, random);
  const about = { name, kind: draw.kind, promise: law.text("promise") };
  const isNumber = (text) => text === null || (typeof text === "string" && NUMBER.test(text));
  const epsilon = law.checked("epsilon", isNumber, "a number as a text, or null if there is no bound");
  about.epsilon = epsilon === null ? null : Number(epsilon);
  if (law.has("unit")) about.unit = law.text("unit");
  if (draw.permanent) about.first = law.float("first", about.epsilon ?? Infinity);
  law.close();
  return { draw, about: Object.freeze(about) };
}

// --- memory ----------------------------------------------------------------------------------------------------------

/** Permanent responses of mechanisms with memory, kept in a storage of the page's choice. */
class ResponseMemory {
  #storage;

  constructor(storage, fingerprint) {
    const isMap = storage instanceof Map;
    const [read, write] = isMap ? ["get", "set"] : ["getItem", "setItem"];
    if (typeof storage?.[read] !== "function" || typeof storage?.[write] !== "function") {
      throw this.#unusable("Client.remember(storage)", kindOf(storage));
    }
    this.#storage = { read: (key) => storage[read](key) ?? null, write: (key, text) => storage[write](key, text) };
    this.fingerprint = fingerprint;
  }

  #unusable(where, got) {
    return new ClientError("permanent responses cannot be kept", {
      where,
      got,
      expected: "a storage with getItem and setItem that keeps texts, such as localStorage, or a Map",
      remedy: "allow the page to store data, or pass another storage: without one, every report spends epsilon anew",
    });
  }

  key(mechanism) {
    return `hubbub:${this.fingerprint}:${mechanism}`;
  }

  read(mechanism) {
    const key = this.key(mechanism);
    let content = null;
    try {
      content = this.#storage.read(key);
    } catch {
      throw this.#unusable(`storage, ${key}`, "a storage that cannot be read");
    }
    if (content === null) return {};
    try {
      const responses = JSON.parse(content);
      if (kindOf(responses) === "object" && Object.values(responses).every(isLabel)) return responses;
    } catch {
      // told below, like any other content that is not ours
    }
    throw new ClientError("what is kept of earlier responses cannot be read", {
      where: `storage, ${key}`,
      got: `something of type ${kindOf(content)}`, // as private as the value
      expected: "what this client wrote there",
      remedy: "remove this item; a new permanent response spends epsilon once more",
    });
  }

  /** Return the permanent response to a value: the one that is kept, or a new one once it is kept. */
  permanent(mechanism, position, draw) {
    const responses = this.read(mechanism);
    if (!Object.hasOwn(responses, position)) {
      responses[position] = draw(Object.values(responses));
      const [key, content] = [this.key(mechanism), JSON.stringify(responses)];
      let kept = null;
      try {
        this.#storage.write(key, content);
        kept = this.#storage.read(key);
      } catch {
        // told below: nothing is reported unless it is kept
      }
      if (kept !== content) throw this.#unusable(`storage, ${key}`, "a storage that does not keep what is written");
    }
    return responses[position];
  }
}

// --- the client ------------------------------------------------------------------------------------------------------

const OPTIONS = ["fingerprint", "digest", "randomBytes"];
const MADE_HERE = Symbol("made by Client.from");

/** Return the entries of an argument; a name that would be ignored, such as a pin with a typing mistake, is refused. */
function checkedOptions(options, known, where) {
  const names = kindOf(options) === "object" ? Object.keys(options) : null;
  if (names?.every((name) => known.includes(name))) return options;
  throw new ClientError("an option is unknown", {
    where,
    got: names ? "an entry of another name" : kindOf(options),
    expected: `an object with some of ${known.join(", ")}`,
    remedy: "check the names; options that would be ignored are refused",
  });
}

/** Privatizes values by the mechanisms of a study. */
export class Client {
  #values;
  #mechanisms = new Map();
  #random;
  #memory = null;

  constructor(made, content, randomBytes) {
    if (made !== MADE_HERE) {
      throw new ClientError("a client is made by Client.from", {
        where: "new Client()",
        got: "new",
        expected: "await Client.from(document)",
        remedy: "the document is checked by its digest, which takes a moment",
      });
    }
    const entries = new Entries(content, "study.json");
    entries.take("version");
    entries.take("digest");
    entries.text("study", SHA256);
    this.fingerprint = entries.text("fingerprint", SHA256);
    this.name = entries.text("name", /^/);
    this.domain = content.domain;
    const isObject = (part) => kindOf(part) === "object";
    this.question = entries.has("question") ? entries.checked("question", isObject, "an object") : null;
    this.#random = new Randomness(randomBytes);
    this.#values = readDomain(new Entries(entries.take("domain"), "study.json, domain"));
    const mechanisms = entries.checked("mechanisms", isObject, "an object");
    entries.close();
    for (const [name, law] of Object.entries(mechanisms)) {
      if (!NAME.test(name)) throw unusable("study.json, mechanisms", shorten(name), "letters, digits, - and _");
      this.#mechanisms.set(name, readMechanism(name, law, this.#values, this.#random));
    }
    if (!this.#mechanisms.size) throw unusable("study.json, mechanisms", "no mechanism", "at least one");
    this.mechanisms = Object.freeze([...this.#mechanisms.values()].map(({ about }) => about));
    frozen(content);
    Object.freeze(this);
  }

  /**
   * Return a client for what `hubbub export-client` wrote: its text, or the parsed object.
   *
   * It is refused if it is damaged, of another version, or not the one that `fingerprint` or `digest` pins.
   */
  static async from(document, options = {}) {
    const where = "Client.from(document)";
    const { randomBytes = systemBytes, ...pinned } = checkedOptions(options, OPTIONS, "Client.from(document, options)");
    let parsed = document;
    if (typeof document === "string") {
      try {
        parsed = JSON.parse(document);
      } catch {
        throw unusable(where, `a text of ${document.length} letters`, "a complete JSON file");
      }
    }
    if (kindOf(parsed) !== "object") throw unusable(where, kindOf(parsed), "a JSON object, or its text");
    if (parsed.version !== VERSION) {
      throw new ClientError("unsupported version of the study", {
        where: "study.json, version",
        got: shorten(parsed.version),
        expected: `version ${VERSION}`,
        remedy: "use the client that belongs to the program that wrote it",
      });
    }
    const { digest, ...rest } = parsed;
    const text = canonical(rest);
    const computed = await sha256(text);
    if (digest !== computed) {
      throw unusable("study.json, digest", `digest ${computed}`, `digest ${shorten(digest)}`, "the study is damaged");
    }
    for (const [name, pin] of Object.entries(pinned)) {
      if (typeof pin !== "string" || pin !== parsed[name]) {
        throw new ClientError("this is another study than the page expects", {
          where: `study.json, ${name}`,
          got: shorten(parsed[name]),
          expected: typeof pin === "string" ? shorten(pin) : `a text as ${name}, not ${kindOf(pin)}`,
          remedy: "serve the study that the page was made for, or pin the new one",
        });
      }
    }
    // What was checked is what is used: the text's own content, whatever becomes of the object.
    return new Client(MADE_HERE, { ...JSON.parse(text), digest }, randomBytes);
  }

  /** Return one output for a value, as reports write it. Every call is a new report that spends epsilon again. */
  privatize(value, mechanism) {
    const { draw, about } = this.#named(mechanism);
    if (draw.permanent && this.#memory) {
      const position = this.#position(draw, value);
      const drawn = (earlier) => draw.permanent(position, earlier);
      const key = typeof position === "string" ? `=${position}` : position; // a text may look like a position
      return draw.instantaneous(this.#memory.permanent(about.name, key, drawn));
    }
    const together = LAWS[draw.kind][1] === readSeveral;
    return draw(together ? this.#values.coordinates(value) : this.#position(draw, value));
  }

  /** Return one report, ready to be sent; its key makes a second sending of the same report count once. */
  report(value, options = {}) {
    const { mechanism, user } = checkedOptions(options, ["mechanism", "user"], "report(value, options)");
    if (user !== undefined && !isLabel(user)) {
      throw new ClientError("the user's token is not a text", {
        where: "report(value, { user })",
        got: kindOf(user),
        expected: "a text, or nothing",
        remedy: "pass the token as it was given out",
      });
    }
    const { about } = this.#named(mechanism);
    const output = this.privatize(value, about.name);
    const key = hexadecimal(this.#random.bytes(16));
    return { mechanism: about.name, output, key, ...(user === undefined ? {} : { user }) };
  }

  /**
   * Return the permanent response of a mechanism with memory, to be kept for the value, and never sent.
   *
   * `earlier` are the responses that are kept for other values of the same person.
   */
  permanent(value, mechanism, earlier = []) {
    const draw = this.#longitudinal(mechanism);
    return draw.permanent(this.#position(draw, value), [earlier].flat());
  }

  /** Return one report from a permanent response, to be sent. */
  instantaneous(permanent, mechanism) {
    return this.#longitudinal(mechanism).instantaneous(permanent);
  }

  /**
   * Keep the permanent responses of mechanisms with memory in a storage, and make all further reports from them.
   *
   * Returns what is kept, in words for people.
   */
  remember(storage) {
    const memory = new ResponseMemory(storage, this.fingerprint);
    const names = this.mechanisms.filter(({ kind }) => MEMORY_KINDS.includes(kind)).map(({ name }) => name);
    if (!names.length) return "Nothing is kept on this device.";
    for (const name of names) memory.read(name); // what cannot be read is told now, not at the first report
    this.#memory = memory;
    return `For each value that you report, a noisy response is kept on this device (${names
      .map((name) => memory.key(name))
      .join(", ")}). Reports are made from it, so that many of them give away no more than it does. It is never sent.`;
  }

  /** Return the position of a value; a text itself, where the study takes texts that it does not list. */
  #position(draw, value) {
    const isNew = draw.takesTexts && isLabel(value) && this.#values.find(value) === undefined;
    return isNew ? value : positionOf(this.#values, value);
  }

  #longitudinal(mechanism) {
    const { draw, about } = this.#named(mechanism);
    if (draw.permanent) return draw;
    throw new ClientError("this mechanism has no permanent response", {
      where: `study.json, mechanism ${about.name}`,
      got: about.kind,
      expected: `one of ${MEMORY_KINDS.join(", ")}`,
      remedy: "use privatize",
    });
  }

  #named(mechanism) {
    const only = mechanism === undefined && this.#mechanisms.size === 1 ? this.mechanisms[0].name : mechanism;
    const named = this.#mechanisms.get(only);
    if (named) return named;
    throw new ClientError("no such mechanism", {
      where: "privatize(value, mechanism)",
      got: mechanism === undefined ? "no name" : `a ${kindOf(mechanism)}`, // perhaps the value, in the wrong place
      expected: `one of ${[...this.#mechanisms.keys()].join(", ")}`,
      remedy: "name a mechanism of the study",
    });
  }
}

function frozen(part) {
  if (part !== null && typeof part === "object") Object.values(Object.freeze(part)).forEach(frozen);
}
