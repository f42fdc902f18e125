// Values and outputs of a study in words for people.

const MAX_NAMED = 6; // values of a set that are named one by one

/** Return a bin in words, from its edges. */
export const binWords = (edges, place) => `${Number(edges[place])} to ${Number(edges[place + 1])}`;

/** Return the place in words of a cell of a map. */
export function cellWords(domain, column, row) {
  if (!domain.box) return `column ${column + 1} from the west, row ${row + 1} from the south`;
  const [south, west, north, east] = ["south", "west", "north", "east"].map((side) => Number(domain.box[side]));
  const latitude = south + ((row + 0.5) * (north - south)) / domain.rows;
  const longitude = west + ((column + 0.5) * (east - west)) / domain.columns;
  return `around ${latitude.toFixed(4)}, ${longitude.toFixed(4)}`;
}

/** Return how many values a domain of one attribute has. */
export function sizeOf(domain) {
  if (domain.kind === "categories") return domain.labels.length;
  if (domain.kind === "integers") return domain.high - domain.low + 1;
  if (domain.kind === "bins") return domain.edges.length - 1;
  return domain.cells ? domain.cells.length : domain.columns * domain.rows;
}

/** Return the value at a position in words. */
function positionWords(domain, position) {
  if (domain.kind === "categories") return domain.labels[position];
  if (domain.kind === "integers") return String(domain.low + position);
  if (domain.kind === "bins") return binWords(domain.edges, position);
  const cell = domain.cells ? domain.cells[position] : position;
  return cellWords(domain, cell % domain.columns, Math.floor(cell / domain.columns));
}

/** Return a label, as reports write it, in words. */
function labelWords(domain, label) {
  if (domain.kind === "bins") return binWords(domain.edges, Number(label));
  if (domain.kind !== "grid") return label;
  return cellWords(domain, Number(label) % domain.columns, Math.floor(Number(label) / domain.columns));
}

/** Return a set of values, written as hexadecimal digits, in words. */
function setWords(domain, output) {
  const bytes = output.slice(2).match(/../g).map((digits) => parseInt(digits, 16));
  const inside = [];
  const size = sizeOf(domain);
  for (let place = 0; place < size; place++) if (bytes[place >> 3] & (0x80 >> (place & 7))) inside.push(place);
  if (!inside.length) return `none of the ${size} possible answers is marked`;
  const named = inside.slice(0, MAX_NAMED).map((place) => positionWords(domain, place));
  const more = inside.length > named.length ? ` and ${inside.length - named.length} more` : "";
  return `marked: ${named.join("; ")}${more} (${inside.length} of ${size} possible answers)`;
}

/** Return answers about some groups of values, two rows of hexadecimal digits, in words. */
function answerWords({ buckets }, output) {
  const bytes = output.slice(2).match(/../g).map((digits) => parseInt(digits, 16));
  const has = (group, from) => bytes[from + (group >> 3)] & (0x80 >> (group & 7));
  const asked = Array.from({ length: buckets }, (_, group) => group).filter((group) => has(group, 0));
  const yes = asked.filter((group) => has(group, bytes.length / 2)).map((group) => group + 1);
  const named = yes.length > MAX_NAMED ? `${yes.slice(0, MAX_NAMED).join(", ")} and more` : yes.join(", ");
  return `asked about ${asked.length} of ${buckets} groups of answers: yes ${named ? `to ${named}` : "to none"}`;
}

const SETS = ["rappor", "optimized-unary", "unary", "longitudinal-rappor", "longitudinal-unary", "subset-selection"];
const HASHED = ["local-hashing", "longitudinal-hashing"];
const NUMBERED = ["hadamard-response", "projective-response", "hadamard-count-mean-sketch"];
const DESIGNS = ["warner", "forced-response", "unrelated-question", "crosswise-model"];
const NUMBERS = ["geometric", "square-wave", "piecewise", "duchi", "staircase"]; // also beyond the values
const OWN_WORDS = ["matrix", "cloaking", ...NUMBERS, ...DESIGNS]; // outputs that are words already

/** Return what says nothing to people but that it is noise: a number among many, or bits about groups. */
function codeWords(law, output) {
  if (NUMBERED.includes(law.kind)) return `number ${Number(output) + 1} of many, each of which stands for many answers`;
  const ones = [...output.slice(output.indexOf("x") + 1)].reduce((sum, digit) => sum + BITS[parseInt(digit, 16)], 0);
  return `yes to ${ones} of ${law.buckets} groups of answers, dealt in way ${Number(output.split(":")[0]) + 1}`;
}

const BITS = [0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4]; // ones in a hexadecimal digit
const CODED = [...NUMBERED, "count-mean-sketch"];

/** Return an output of a law in words: one for each attribute that it says something about. */
export function outputWords(domain, law, output) {
  if (domain.kind === "product") {
    if (SETS.includes(law.kind)) return ["a row of marks, one for each combination of answers"];
    if (HASHED.includes(law.kind)) return [hashWords(law, output)];
    if (law.kind === "d-bit-flip") return [answerWords(law, output)];
    if (CODED.includes(law.kind)) return [codeWords(law, output)];
    const parts = law.parts ?? {};
    const domains = new Map(domain.attributes.map((attribute) => [attribute.name, attribute]));
    return Object.entries(JSON.parse(output)).flatMap(([name, own]) =>
      outputWords(domains.get(name), parts[name] ?? { kind: "" }, own).map((words) => `${name}: ${words}`),
    );
  }
  if (SETS.includes(law.kind)) return [setWords(domain, output)];
  if (HASHED.includes(law.kind)) return [hashWords(law, output)];
  if (law.kind === "d-bit-flip") return [answerWords(law, output)];
  if (law.kind === "bloom-rappor") return ["a row of marks, many of them by chance"];
  if (CODED.includes(law.kind)) return [codeWords(law, output)];
  if (OWN_WORDS.includes(law.kind)) return [output];
  if (output.includes(":") && domain.kind === "grid") {
    const [column, row] = output.split(":").map(Number);
    return [cellWords(domain, column, row)];
  }
  return [labelWords(domain, output)];
}

const hashWords = ({ buckets }, output) => `group ${Number(output.split(":")[1]) + 1} of ${buckets}, dealt by chance`;
