// What the client refuses, what it keeps, and what it never says.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import * as everything from "../hubbub-client.js";

const { Client, ClientError } = everything;
const FOLDER = new URL("../../vectors/", import.meta.url);
const FILES = Object.fromEntries(
  readdirSync(FOLDER).map((name) => [name.replace(".json", ""), JSON.parse(readFileSync(new URL(name, FOLDER), "utf8"))]),
);

/** Return the document of a study of the vectors, as a copy. */
const documentOf = (kind, name) => {
  const { studies } = FILES[kind];
  return structuredClone((name ? studies.find((study) => study.name === name) : studies[0]).document);
};

/** Return the digest as its definition says: written apart from the client, and for documents in ASCII alone. */
function digestOf({ digest: _, ...content }) {
  const sorted = (part) =>
    Array.isArray(part)
      ? part.map(sorted)
      : part && typeof part === "object"
        ? new Map(Object.keys(part).sort().map((name) => [name, sorted(part[name])]))
        : part;
  const write = (part) =>
    part instanceof Map
      ? `{${[...part].map(([name, own]) => `${JSON.stringify(name)}:${write(own)}`).join(",")}}`
      : Array.isArray(part)
        ? `[${part.map(write).join(",")}]`
        : JSON.stringify(part);
  return createHash("sha256").update(write(sorted(content))).digest("hex");
}

const sealed = (document) => ({ ...document, digest: digestOf(document) });

/** Check that an error has its five parts, none of which says what it must not. */
function told(error, what, secret) {
  assert.ok(error instanceof ClientError, `${error?.stack}`);
  assert.match(error.what, what);
  for (const part of ["what", "where", "got", "expected", "remedy"]) {
    assert.ok(typeof error[part] === "string" && error[part] !== "", part);
    assert.ok(error.message.includes(error[part]));
    if (secret !== undefined) assert.ok(!`${error[part]}${error.stack}`.includes(secret), `${part} contains the value`);
  }
  return true;
}

const refused = (run, what, secret) => assert.throws(run, (error) => told(error, what, secret));
const refusedLater = (promise, what) => assert.rejects(promise, (error) => told(error, what));

// -- documents --------------------------------------------------------------------------------------------------------

test("a text, an object and a document with pins are taken", async () => {
  const document = documentOf("randomized-response");
  const { fingerprint, digest } = document;
  assert.equal(digestOf(document), digest);
  for (const given of [document, JSON.stringify(document), JSON.stringify(document, null, 2)]) {
    const client = await Client.from(given, { fingerprint, digest });
    assert.equal(client.fingerprint, fingerprint);
    assert.ok(["a", "b", "7"].includes(client.privatize("a")));
  }
});

test("damage, another version and other pins are refused", async () => {
  const document = documentOf("randomized-response");
  const other = documentOf("warner");
  await refusedLater(Client.from({ ...document, name: "changed" }), /damaged/);
  await refusedLater(Client.from({ ...document, digest: other.digest }), /damaged/);
  await refusedLater(Client.from({ ...document, digest: undefined }), /damaged/);
  await refusedLater(Client.from(sealed({ ...document, version: 2 })), /version/);
  await refusedLater(Client.from(sealed({ ...document, version: "1" })), /version/);
  for (const name of ["fingerprint", "digest"]) {
    for (const pin of [other[name], "", undefined, null, document[name].toUpperCase()]) {
      await refusedLater(Client.from(document, { [name]: pin }), /another study/);
    }
  }
  await refusedLater(Client.from(document, { fingerprints: document.fingerprint }), /option is unknown/);
  await refusedLater(Client.from(document, "pin"), /option is unknown/);
  for (const wrong of ["", "{", "[]", "null", '"text"', undefined, null, 7, [], () => document, 7n]) {
    await refusedLater(Client.from(wrong), /cannot be used/);
  }
  let deep = {};
  for (let depth = 0; depth < 100_000; depth++) deep = { deep };
  await refusedLater(Client.from({ ...document, name: deep }), /cannot be used/);
  await refusedLater(Client.from({ ...document, name: 7n }), /cannot be used/);
  await refusedLater(Client.from({ ...document, name: 0.5 }), /cannot be used/);
  refused(() => new Client(), /made by Client.from/);
});

test("the object may change while its digest is computed: what was checked is what is used", async () => {
  const document = documentOf("warner");
  const promise = Client.from(document);
  document.mechanisms.m.chances = ["1/1", "0/1"];
  document.domain.labels[0] = "changed";
  const client = await promise;
  assert.equal(client.domain.labels[0], "yes");
  assert.throws(() => (client.domain.labels[0] = "changed"), TypeError);
});

function* paths(part, path = []) {
  if (path.length) yield path;
  if (part === null || typeof part !== "object") return;
  const names = Array.isArray(part) ? [0, part.length - 1] : Object.keys(part);
  for (const name of new Set(names)) if (name in part) yield* paths(part[name], [...path, name]);
}

function changed(document, path, ...replacement) {
  const copy = structuredClone(document);
  const inner = path.slice(0, -1).reduce((part, name) => part[name], copy);
  const last = path.at(-1);
  if (replacement.length) [inner[last]] = replacement;
  else if (Array.isArray(inner)) inner.splice(last, 1);
  else delete inner[last];
  return sealed(copy);
}

const WRONG = [null, true, -1, 2 ** 53, "", "0", "1/0", "ff".repeat(40), [[]], { kind: "split" }];
const OPTIONAL = ["box", "cells", "unit"];

for (const kind of Object.keys(FILES)) {
  test(`no entry can be left out, be added, or be of another type: ${kind}`, async () => {
    const document = documentOf(kind);
    const value = FILES[kind].studies[0].cases[0].value;
    let number = 0;
    for (const path of paths(document)) {
      const name = path.at(-1);
      if (path[0] === "digest") continue;
      const free = ["impossible", "fakes"].some((each) => path.slice(0, -1).includes(each)); // attributes of choice
      if (typeof name === "string" && !OPTIONAL.includes(name) && !free) {
        await refusedLater(Client.from(changed(document, path)), /cannot be used|version/);
      }
      number += 1;
      for (const wrong of WRONG.filter((_, place) => (place + number) % 2 === 0)) {
        let client;
        try {
          client = await Client.from(changed(document, path, wrong));
        } catch (error) {
          told(error, /cannot be used|version/);
          continue;
        }
        const before = path.reduce((part, each) => part[each], document);
        const alike = typeof wrong === typeof before && Array.isArray(wrong) === Array.isArray(before);
        assert.ok(alike || name === "epsilon", `${path} = ${JSON.stringify(wrong)}`);
        try {
          assert.equal(typeof client.privatize(value, "m"), "string");
        } catch (error) {
          told(error, /./);
        }
      }
    }
    for (const path of [["more"], ["domain", "more"], ["mechanisms", "m", "more"]]) {
      await refusedLater(Client.from(changed(document, path, 1)), /cannot be used/);
    }
  });
}

test("numbers that do not fit are refused", async () => {
  const top = "1" + "0".repeat(64);
  const cases = [
    ["randomized-response", "words", { keep: "0" }],
    ["randomized-response", "words", { keep: top }],
    ["randomized-response", "words", { width: 250 }],
    ["randomized-response", "by p", { kept: "3/3" }],
    ["randomized-response", "by p", { kept: "0/3" }],
    ["warner", "coin", { chances: ["2/1", "1/2"] }],
    ["warner", "coin", { answers: ["yes"] }],
    ["geometric", "integers", { noise: { width: 320, side: "f".repeat(80), ratio: "1", steps: 5 } }],
    ["geometric", "integers", { noise: { width: 320, side: "1", ratio: "1", steps: 0 } }],
    ["geometric", "integers", { noise: { width: 320, side: "1", ratio: "1", steps: 5000 } }],
    ["rappor", "words", { own: "0" }],
    ["longitudinal-rappor", "words", { one: "f".repeat(64) }],
    ["subset-selection", "integers", { size: 7 }],
    ["local-hashing", "integers", { buckets: 1 }],
    ["cloaking", "words", { regions: ["left", "right"] }],
    ["matrix", "words", { outputs: ["x", "x"] }],
    ["exponential", "words", { outputs: ["a", "b", "8"] }],
    ["planar-laplace", "grid", { window: [[0, 0], [3, 3]] }],
    ["sample-one", "people", { weights: ["1", "0", "1"] }],
    ["sample-one", "people", { kind: "split" }],
    ["randomized-response", "words", { kind: "rot13" }],
    ["randomized-response", "words", { kind: "toString" }],
    ["randomized-response", "words", { kind: "geometric" }],
  ];
  for (const [kind, name, entries] of cases) {
    const document = documentOf(kind, name);
    Object.assign(document.mechanisms.m, entries);
    await refusedLater(Client.from(sealed(document)), /cannot be used/);
  }
  const rows = documentOf("exponential", "words");
  const row = rows.mechanisms.m.rows[0];
  row[0] = (BigInt(`0x${row[0]}`) + 1n).toString(16);
  await refusedLater(Client.from(sealed(rows)), /cannot be used/);
});

test("noise along the axes that falls too quickly is found when it is drawn", async () => {
  const document = documentOf("planar-geometric", "grid");
  document.mechanisms.m.rate = "1/1000000";
  const client = await Client.from(sealed(document));
  refused(() => { for (;;) client.privatize(5); }, /cannot be used/);
});

// -- values -----------------------------------------------------------------------------------------------------------

test("no error contains the value", async () => {
  for (const [kind, name, value] of [
    ["values", "words", "4711x"],
    ["values", "integers", 4711],
    ["values", "integers", "4711.5"],
    ["values", "bins", 4711],
    ["values", "map", [47.11, -122.4711]],
    ["values", "people", [4711, "f", 5]],
    ["values", "people", { age: 30, 10: "4711", place: 0 }],
    ["values", "people", { age: 4711 }],
    ["values", "grid", { toString: () => "4711" }],
  ]) {
    const client = await Client.from(documentOf(kind, name));
    const secret = "4711";
    refused(() => client.privatize(value, "m"), /value/, secret);
    refused(() => client.report(value), /value/, secret);
    refused(() => client.privatize("a", value), /no such mechanism/, secret); // the arguments in the wrong order
    refused(() => client.report("a", value), /option is unknown|no such mechanism/, secret);
    refused(() => client.report("a", { mechanism: value }), /no such mechanism/, secret);
    refused(() => client.permanent(value, "m"), /no permanent response/, secret);
  }
});

test("whole numbers may be BigInts", async () => {
  const large = await Client.from(documentOf("values", "large integers"));
  assert.equal(large.privatize(2n ** 53n), "value 9");
  refused(() => large.privatize(2 ** 53), /domain/); // it may be 2^53 + 1, rounded
  refused(() => large.privatize(2n ** 53n + 1n), /domain/);
  const words = await Client.from(documentOf("values", "odd words"));
  assert.equal(words.privatize(9223372036854775809n), "value 3");
  const bins = await Client.from(documentOf("values", "bins"));
  assert.equal(bins.privatize(7n), "value 3");
  refused(() => bins.privatize(10n ** 400n), /domain/);
});

// -- randomness -------------------------------------------------------------------------------------------------------

test("draws come from the system, and each byte is used once", async () => {
  const client = await Client.from(documentOf("randomized-response", "256 values"));
  const keys = new Set();
  for (let turn = 0; turn < 20; turn++) {
    for (let count = 0; count < 500; count++) keys.add(client.report(7).key);
    await null; // what is left of the pool is forgotten here
  }
  assert.equal(keys.size, 10_000);
  for (const key of keys) assert.match(key, /^[0-9a-f]{32}$/);
  const set = [...keys].reduce((sum, key) => sum + BigInt(`0x${key}`).toString(2).replaceAll("0", "").length, 0);
  assert.ok(Math.abs(set - 640_000) < 6 * Math.sqrt(320_000), `${set} of 1,280,000 bits`); // wrong once in 5e8 runs
});

test("without secure randomness nothing is drawn", async () => {
  const client = await Client.from(documentOf("warner"));
  const longer = await Client.from(documentOf("rappor"));
  const system = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  Object.defineProperty(globalThis, "crypto", { value: { subtle: crypto.subtle }, configurable: true });
  try {
    refused(() => client.privatize("yes"), /no secure randomness/);
    refused(() => longer.report("a"), /no secure randomness/);
    Object.defineProperty(globalThis, "crypto", { value: {}, configurable: true });
    await refusedLater(Client.from(documentOf("warner")), /digest cannot be computed/);
  } finally {
    Object.defineProperty(globalThis, "crypto", system);
  }
  for (const randomBytes of [() => [1], () => new Uint8Array(3), () => "x".repeat(9), () => null]) {
    const odd = await Client.from(documentOf("warner"), { randomBytes });
    refused(() => odd.privatize("yes"), /randomBytes/);
  }
});

test("many displacements are drawn without keeping all their probabilities", async () => {
  const client = await Client.from(documentOf("planar-geometric", "small epsilon"));
  const outputs = new Set();
  for (let count = 0; count < 1500; count++) outputs.add(client.privatize(5));
  assert.ok(outputs.size > 1024);
});

// -- reports and memory -----------------------------------------------------------------------------------------------

test("a report is ready to be sent", async () => {
  const client = await Client.from(documentOf("randomized-response", "words"));
  const report = client.report("a", { user: "token", mechanism: "m" });
  assert.deepEqual(Object.keys(report), ["mechanism", "output", "key", "user"]);
  assert.equal(report.user, "token");
  assert.deepEqual(Object.keys(client.report(7)), ["mechanism", "output", "key"]);
  for (const user of ["", 7, null]) refused(() => client.report("a", { user }), /token/);
  assert.equal(client.mechanisms[0].epsilon, 0.3);
  assert.match(client.mechanisms[0].promise, /odds/);
  const people = await Client.from(documentOf("split"));
  assert.deepEqual(Object.keys(JSON.parse(people.report([34.5, "f", 5]).output)).sort(), ["10", "age", "place"]);
});

class Shelf {
  constructor() {
    this.items = new Map();
  }
  getItem(key) {
    return this.items.has(key) ? this.items.get(key) : null;
  }
  setItem(key, text) {
    this.items.set(key, String(text));
  }
}

test("permanent responses are kept, one for each value, and nothing else", async () => {
  const document = documentOf("longitudinal-rappor", "words");
  for (const storage of [new Shelf(), new Map()]) {
    const client = await Client.from(document);
    const told = client.remember(storage);
    const key = `hubbub:${document.fingerprint}:m`;
    assert.ok(told.includes(key) && told.includes("never sent"));
    for (let count = 0; count < 20; count++) client.report("b");
    client.privatize(7);
    const items = storage instanceof Map ? storage : storage.items;
    assert.deepEqual([...items.keys()], [key]);
    const kept = JSON.parse(items.get(key));
    assert.deepEqual(Object.keys(kept), ["1", "2"]);
    const again = await Client.from(document);
    again.remember(storage);
    again.report("b");
    assert.deepEqual(JSON.parse(items.get(key)), kept);
  }
});

test("reports are made from the permanent response", async () => {
  const document = documentOf("longitudinal-rappor", "sixteen values");
  const client = await Client.from(document);
  const storage = new Map();
  client.remember(storage);
  client.report(3);
  const [[key, text]] = storage;
  const row = JSON.parse(text)[3];
  const [ones, reports] = [Array(16).fill(0), 2000];
  for (let count = 0; count < reports; count++) {
    const bits = BigInt(client.report(3).output).toString(2).padStart(16, "0");
    for (let bit = 0; bit < 16; bit++) ones[bit] += Number(bits[bit]);
  }
  const law = document.mechanisms.m;
  const turned = Number(BigInt(`0x${law.turned}`) >> 192n) / 2 ** (law.width - 192);
  const permanent = BigInt(row).toString(2).padStart(16, "0");
  for (let bit = 0; bit < 16; bit++) {
    const chance = permanent[bit] === "1" ? 1 - turned : turned;
    assert.ok(Math.abs(ones[bit] - reports * chance) < 6 * Math.sqrt(reports * chance * (1 - chance)));
  }
  assert.equal(storage.get(key), text);
});

test("a storage that keeps nothing, or is blocked, stops reports", async () => {
  const client = await Client.from(documentOf("longitudinal-rappor", "words"));
  const fails = () => {
    throw new Error("blocked: 4711");
  };
  const never = { getItem: () => null, setItem: () => {} };
  for (const storage of [null, undefined, {}, { getItem: () => null }, "text"]) {
    refused(() => client.remember(storage), /cannot be kept/);
  }
  refused(() => client.remember({ getItem: fails, setItem: fails }), /cannot be kept/, "4711");
  for (const storage of [never, { getItem: () => null, setItem: fails }]) {
    client.remember(storage);
    refused(() => client.report("a"), /cannot be kept/, "4711");
  }
  for (const content of ["", "{", "[]", "7", '{"0": 7}', Promise.resolve("{}")]) {
    refused(() => client.remember({ getItem: () => content, setItem: () => {} }), /cannot be read/);
  }
  client.remember(new Map([[`hubbub:${client.fingerprint}:m`, '{"0": "0x4711"}']]));
  refused(() => client.report("a"), /not a permanent response/, "4711");
  const other = await Client.from(documentOf("warner"));
  assert.match(other.remember(new Map()), /^Nothing is kept/);
});

test("every exported name is declared, and every member", () => {
  const declared = readFileSync(new URL("../hubbub-client.d.ts", import.meta.url), "utf8");
  for (const name of Object.keys(everything)) {
    assert.match(declared, new RegExp(`export class ${name}\\b`));
    const members = [...Object.getOwnPropertyNames(everything[name].prototype)].filter((own) => own !== "constructor");
    for (const member of members) assert.match(declared, new RegExp(`^  ${member}\\(`, "m"), member);
  }
  assert.deepEqual(Object.keys(everything).sort(), ["Client", "ClientError"]);
});
