// Draws from studies for as long as it is told, and prints how many outputs a second each mechanism gives.
//
// node benchmarks/javascript.mjs MODULE SECONDS STUDY.json VALUE ...

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [module, seconds, ...studies] = process.argv.slice(2);
const { Client } = await import(pathToFileURL(module));
const rates = {};
for (let place = 0; place < studies.length; place += 2) {
  const client = await Client.from(readFileSync(studies[place], "utf8"));
  const value = JSON.parse(studies[place + 1]);
  for (const { name } of client.mechanisms) {
    for (let count = 0; count < 200; count++) client.privatize(value, name); // compiled by then
    let [start, outputs] = [performance.now(), 0];
    for (; performance.now() - start < 1000 * seconds; outputs += 10) {
      for (let count = 0; count < 10; count++) client.privatize(value, name);
    }
    rates[name] = (1000 * outputs) / (performance.now() - start);
  }
}
console.log(JSON.stringify(rates));
