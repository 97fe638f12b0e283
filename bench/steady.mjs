/**
 * How fast one engine runs a model once it is warm, in a process of its own: at least WARM milliseconds of runs, then
 * SAMPLES samples of at least 8 ms. Prints JSON: quartiles and least milliseconds a run.
 * Usage: node bench/steady.mjs ENGINE FILE FEEDS [WARM] [SAMPLES]
 */
import { engines, readFeeds } from "./engines.mjs";

const [, , engine, file, feedsFile, warm = "1500", count = "31"] = process.argv;
const run = await engines[engine](file, readFeeds(feedsFile));
const start = performance.now();
let runs = 0;
while (performance.now() - start < Number(warm) || runs < 2) { await run(); runs++; }
const batch = Math.max(1, Math.ceil(8 / ((performance.now() - start) / runs)));
const samples = [];
for (let i = 0; i < Number(count); i++) {
  const from = performance.now();
  for (let n = 0; n < batch; n++) await run();
  samples.push((performance.now() - from) / batch);
}
samples.sort((a, b) => a - b);
const at = (p) => samples[Math.round(p * (samples.length - 1))];
console.log(JSON.stringify({ min: samples[0], q1: at(0.25), median: at(0.5), q3: at(0.75) }));
process.exit(0);
