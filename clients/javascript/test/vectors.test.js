import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import * as module from "../hubbub-client.js";
import { runVectors } from "./run-vectors.js";

const FOLDER = new URL("../../vectors/", import.meta.url);

for (const name of readdirSync(FOLDER).filter((each) => each.endsWith(".json"))) {
  test(`the same bytes give the same outputs: ${name}`, async () => {
    const { cases, failures } = await runVectors(JSON.parse(readFileSync(new URL(name, FOLDER), "utf8")), module);
    assert.ok(cases > 0);
    assert.deepEqual(failures.slice(0, 5), []);
  });
}
