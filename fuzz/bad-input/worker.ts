/** The process in which mutants are tried: told an index or a file, it answers with the verdict and what it took. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { attempt, type Verdict } from "./attempt.ts";
import { Corpus } from "./corpus.ts";
import { mutantOf, type Mutant } from "./mutant.ts";

export interface Settings { readonly seed: number; readonly own: boolean; readonly kind: "models" | "artifacts" | "all" }
/** What a worker is told. */
export type Order = { readonly index: number } | { readonly file: string; readonly seed: number };
export interface Answer extends Verdict {
  readonly story: string;
  /** Of this process, all threads. */
  readonly seconds: number;
  readonly megabytes: number;
  readonly damagedCode: boolean;
}
/** What a worker says: that it is about to run code that nothing vouches for, and how it ended. */
export type Message = "damaged code runs" | Answer;

const settings = JSON.parse(process.argv[2] ?? "{}") as Settings;
const corpus = new Corpus(settings.own);

const fromFile = (file: string, seed: number): Mutant => {
  const bytes = readFileSync(file);
  return { kind: file.endsWith(".om") ? "artifact" : "model", bytes, story: file, seed, otherCode: false };
};

/** Memory counts from now on, where Linux lets a process say so. */
function forgetPeak(): void {
  if (existsSync("/proc/self/clear_refs")) writeFileSync("/proc/self/clear_refs", "5");
}

process.on("message", (order: Order) => {
  void (async (): Promise<void> => {
    const mutant = "file" in order ? fromFile(order.file, order.seed) : await mutantOf(corpus, settings.seed, order.index, settings.kind);
    if (mutant.otherCode) process.send?.("damaged code runs");
    forgetPeak();
    const before = process.cpuUsage();
    const verdict = await attempt(mutant);
    const { user, system } = process.cpuUsage(before);
    const answer: Answer = { ...verdict, story: mutant.story, seconds: (user + system) / 1e6, megabytes: process.resourceUsage().maxRSS / 1024, damagedCode: mutant.otherCode };
    process.send?.(answer);
    if (process.memoryUsage.rss() > 400 * 2 ** 20) globalThis.gc?.();
  })();
});
process.send?.("ready");
