// Simulated people who answer a collector's question as its page does, with the client that it serves.
//
//   node simulated-browsers.mjs URL < TASK
//
// The task is a JSON object with the shares of answers, the number of people, and within how many seconds they answer.

import { readFileSync } from "node:fs";

const url = process.argv[2];
const { shares, people, seconds } = JSON.parse(readFileSync(0, "utf8"));
const RETRY = 1_000; // milliseconds

const names = Object.keys(shares);
const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Return what a person would answer: drawn by the shares. */
function drawnAnswer() {
  let left = Math.random();
  return names.find((name) => (left -= shares[name]) < 0) ?? names.at(-1);
}

/** Do something until it succeeds: the collector may be busy, or about to start again. */
async function persistently(attempt) {
  for (;;) {
    try {
      return await attempt();
    } catch {
      await wait(RETRY);
    }
  }
}

async function fetched(path, options) {
  const answer = await fetch(`${url}/${path}`, options);
  const text = await answer.text();
  if (!answer.ok) throw new Error(path);
  return text;
}

const script = await persistently(() => fetched("assets/hubbub-client.js"));
const { Client } = await import(`data:text/javascript,${encodeURIComponent(script)}`);

async function person() {
  const client = await Client.from(await persistently(() => fetched("study.json")));
  const body = JSON.stringify({ fingerprint: client.fingerprint, reports: [client.report(drawnAnswer())] });
  const headers = { "content-type": "application/json" };
  await persistently(() => fetched("reports", { method: "POST", headers, body })); // the same key each time
}

const start = performance.now();
const all = [];
for (let number = 0; number < people; number++) {
  const pause = start + (1000 * seconds * number) / people - performance.now();
  if (pause > 0) await wait(pause);
  all.push(person());
  if (all.length >= 32) await all.shift();
}
await Promise.all(all);
console.log(`${people.toLocaleString("en")} simulated browsers (Node ${process.version}) have answered`);
