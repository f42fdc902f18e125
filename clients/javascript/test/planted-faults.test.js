// Copies of the client with one fault each: the vectors must find all of them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { runVectors } from "./run-vectors.js";

const SOURCE = readFileSync(new URL("../hubbub-client.js", import.meta.url), "utf8");
const FAULTS = {
  "at most instead of below": {
    kind: "rappor",
    correct: "if (difference !== 0) return difference < 0;\n    }\n    return false;",
    faulty: "if (difference !== 0) return difference < 0;\n    }\n    return true;",
  },
  "the last byte first": {
    kind: "randomized-response",
    correct: "for (let byte = this.size - 1; byte >= 0; byte--)",
    faulty: "for (let byte = 0; byte < this.size; byte++)",
  },
  "64 bits decide": { kind: "optimized-unary", correct: "byte >= 0; byte--", faulty: "byte >= this.size - 8; byte--" },
  "no word is redrawn": { kind: "subset-selection", correct: "if (drawn < limit)", faulty: "if (drawn >= 0n)" },
  "bytes in the other order": {
    kind: "local-hashing",
    correct: "part = part * 256 + bytes[place]",
    faulty: "part = part * 256 + bytes[end - 1 + start - place]",
  },
  "another value is drawn only if it is needed": {
    kind: "randomized-response",
    correct: "const other = Number(any());\n      return keeps() ? position : other;",
    faulty: "return keeps() ? position : Number(any());",
  },
  "the other sign": {
    kind: "geometric",
    correct: "return side === 0 ? gone : -gone;",
    faulty: "return side === 0 ? -gone : gone;",
  },
  "noise of one block": { kind: "geometric", correct: "while (step ===", faulty: "if (step ===" },
  "one block too many": { kind: "truncated-geometric", correct: "gone < most) {", faulty: "gone <= most) {" },
  "an unfair shuffle": {
    kind: "subset-selection",
    correct: "const other = at + Number(draw());",
    faulty: "const other = Number(draw());",
  },
  "the true value is left out of the shuffle's draws": {
    kind: "subset-selection",
    correct: "out ? size : size - 1",
    faulty: "size - 1",
  },
  "the last bit first": { kind: "rappor", correct: "^= 0x80 >> (position & 7)", faulty: "^= 1 << (position & 7)" },
  "bits of the neighbour": {
    kind: "optimized-unary",
    correct: "value === position ? 0 : 1)) row.flip(value)",
    faulty: "value === position + 1 ? 0 : 1)) row.flip(value)",
  },
  "a hash of the position before": {
    kind: "local-hashing",
    correct: "BigInt(position + 1) * GOLDEN",
    faulty: "BigInt(position) * GOLDEN",
  },
  "acceptance in fewer bits": {
    kind: "planar-geometric",
    correct: "BigInt(128 + bitLength(denominator)",
    faulty: "BigInt(64 + bitLength(denominator)",
  },
  "an exponential of few terms": {
    kind: "planar-geometric",
    correct: "term = ((term * rest) >> BigInt(inner)) / n;",
    faulty: "term = n < 20n ? ((term * rest) >> BigInt(inner)) / n : 0n;",
  },
  "fractions that are not reduced": {
    kind: "planar-geometric",
    correct: "[numerator, denominator] = reduced(numerator, denominator);",
    faulty: "",
  },
  "rows for columns": {
    kind: "planar-laplace",
    correct: "* columns + clamp(column, 0, columns - 1)",
    faulty: "* columns + clamp(column, 0, rows - 1)",
  },
  "another cell at equal distances": {
    kind: "planar-geometric",
    correct: "distances.findIndex((distance) => distance <= limit)",
    faulty: "distances.findLastIndex((distance) => distance <= limit)",
  },
  "rounded places": { kind: "values", correct: "Math.trunc(((latitude", faulty: "Math.round(((latitude" },
  "the value among the fakes": {
    kind: "sample-one-with-fakes",
    correct: "return at === chosen ? places[at] : other;",
    faulty: "return at === chosen ? other : places[at];",
  },
  "one attribute too often": {
    kind: "sample-one",
    correct: "sums.findIndex((sum) => drawn < sum)",
    faulty: "sums.findIndex((sum) => drawn <= sum)",
  },
  "no blank after a comma": { kind: "split", correct: '.join(", ")}}`;', faulty: '.join(",")}}`;' },
  "rounded sums": { kind: "geometric", correct: "Number.isSafeInteger(sum) ?", faulty: "true ?" },
  "permanent bits that are hardly ever flipped": {
    kind: "longitudinal-rappor",
    correct: "isRappor ? power(width) - other :",
    faulty: "isRappor ? power(width) - 1n :",
  },
  "ones are raised and zeros lost": {
    kind: "longitudinal-unary",
    correct: "row.has(value) ? 0 : 1",
    faulty: "row.has(value) ? 1 : 0",
  },
  "two permanent responses": {
    kind: "longitudinal-response",
    correct: "values.text(repeat(Number(kept)))",
    faulty: "values.text(respond(Number(kept)))",
  },
  "one response for all buckets": {
    kind: "longitudinal-hashing",
    correct: "kept[0] === seed && Number(kept[2]) === own",
    faulty: "kept[0] === seed",
  },
  "a new seed for each value": {
    kind: "longitudinal-hashing",
    correct: "earlier[0]?.[0] ?? fromBytes",
    faulty: "null ?? fromBytes",
  },
  "other questions for each value": {
    kind: "d-bit-flip",
    correct: "earlier[0]?.asked ?? ask()",
    faulty: "ask()",
  },
  "the answers of the value before": {
    kind: "d-bit-flip",
    correct: "kept.asked.text() === asked.text() && kept.own === own",
    faulty: "kept.asked.text() === asked.text()",
  },
  "texts with blanks": {
    kind: "values",
    correct: "WHOLE_NUMBER.test(value)) return",
    faulty: "WHOLE_NUMBER.test(value.trim())) return",
  },
};

for (const [name, { kind, correct, faulty }] of Object.entries(FAULTS)) {
  test(`found: ${name}`, async () => {
    assert.equal(SOURCE.split(correct).length, 2, "the client has no such line, or several");
    const text = Buffer.from(SOURCE.replace(correct, () => faulty)).toString("base64");
    const module = await import(`data:text/javascript;base64,${text}`);
    const file = JSON.parse(readFileSync(new URL(`../../vectors/${kind}.json`, import.meta.url), "utf8"));
    const { failures } = await runVectors(file, module);
    assert.ok(failures.length > 0);
  });
}
