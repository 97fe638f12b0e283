/**
 * The first inference of a process that has done nothing else: loads a model or artifact, runs it once, and prints JSON:
 * milliseconds from here to the first result (`first`), of it up to the session (`load`), since the process began
 * (`process`), and the most memory that was resident (`peak`, bytes). Plain JavaScript, so that nothing else is loaded.
 * Usage: node bench/fresh.mjs ENGINE FILE FEEDS
 */
import { readFileSync } from "node:fs";
import { engines, readFeeds } from "./engines.mjs";

const [, , engine, file, feedsFile] = process.argv;
const feeds = readFeeds(feedsFile);
const start = performance.now();
const run = await engines[engine](file, feeds);
const loaded = performance.now();
await run();
const end = performance.now();
const peak = Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1]) * 1024;
console.log(JSON.stringify({ first: end - start, load: loaded - start, process: end, peak }));
process.exit(0);
