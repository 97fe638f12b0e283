/**
 * All benchmarks one after the other, each in processes of its own; their results go to bench/*.json and into the tables
 * of docs/performance.md and the README's. The machine must have nothing else to do. Takes about 20 minutes; `--scaling`
 * adds the growth of compile time up to 64,000 nodes, which takes as long again.
 * Usage: npm run bench:all [-- --scaling]
 */
import { spawnSync } from "node:child_process";

const scripts: readonly (readonly string[])[] = [
  ["bench/bench.ts", "--publish"],
  ["bench/threads.ts", "--publish"],
  ["bench/against-node.ts", "--publish"],
  ["bench/first-inference.ts", "--publish"],
  ["bench/compile-time.ts", "--publish"],
  ["bench/kernels.ts", "--publish"],
  ...(process.argv.includes("--scaling") ? [["bench/scaling.ts", "--publish"]] : []),
];
for (const script of scripts) {
  const start = performance.now();
  const { status } = spawnSync(process.execPath, ["--import", "tsx", ...script], { stdio: "inherit" });
  console.log(`\n${script.join(" ")}: ${((performance.now() - start) / 60_000).toFixed(1)} min${status === 0 ? "" : `, failed with ${status}`}\n`);
  if (status !== 0) process.exitCode = 1;
}
