/** The process in which mutants are tried: told an index or a file, it answers with the verdict and what it took. */
import { readFileSync } from "node:fs";
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
}

const settings = JSON.parse(process.argv[2] ?? "{}") as Settings;
const corpus = new Corpus(settings.own);

const fromFile = (file: string, seed: number): Mutant => {
  const bytes = readFileSync(file);
  return { kind: file.endsWith(".om") ? "artifact" : "model", bytes, story: file, seed, otherCode: false };
};

process.on("message", (order: Order) => {
  void (async (): Promise<void> => {
    const mutant = "file" in order ? fromFile(order.file, order.seed) : await mutantOf(corpus, settings.seed, order.index, settings.kind);
    const before = process.cpuUsage();
    const verdict = await attempt(mutant);
    const { user, system } = process.cpuUsage(before);
    const answer: Answer = { ...verdict, story: mutant.story, seconds: (user + system) / 1e6, megabytes: process.resourceUsage().maxRSS / 1024 };
    process.send?.(answer);
    if (process.memoryUsage.rss() > 400 * 2 ** 20) globalThis.gc?.();
  })();
});
process.send?.("ready");
