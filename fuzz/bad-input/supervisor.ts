/**
 * Workers, each a process of its own: one that ends, hangs or grows past the limits is replaced, and its mutant is a
 * failure. Time is the processor's, so that a busy machine does not make failures; a wall clock stops what sleeps.
 */
import { fork, type ChildProcess } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Answer, Order, Settings } from "./worker.ts";

export const limits = { seconds: 5, megabytes: 1024 } as const;
/** Mutants per process: what earlier ones leave in the heap would otherwise count against later ones. */
const lifetime = 200;
/** A machine that is shared may take this many times longer than its processors. */
const slack = 20;

export interface Result {
  readonly order: Order;
  /** Undefined where the process ended before it could answer. */
  readonly answer: Answer | undefined;
  /** Why this is a failure; undefined where it is none. */
  readonly failure: string | undefined;
}

/** Tries the orders on `jobs` workers, and tells each result as it comes. */
export async function supervise(orders: Iterable<Order>, jobs: number, settings: Settings, tell: (result: Result) => void): Promise<void> {
  const queue = orders[Symbol.iterator]();
  await Promise.all(Array.from({ length: jobs }, async () => {
    let worker: Worker | undefined;
    for (let next = queue.next(), served = 0; !next.done; next = queue.next(), served++) {
      if (served % lifetime === 0) { worker?.stop(); worker = undefined; }
      worker ??= await Worker.start(settings);
      const result = await worker.try(next.value);
      if (result.failure !== undefined) { worker.stop(); worker = undefined; }
      tell(result);
    }
    worker?.stop();
  }));
}

class Worker {
  readonly #process: ChildProcess;
  #stderr = "";
  private constructor(child: ChildProcess) {
    this.#process = child;
    child.stderr?.on("data", (chunk: Buffer) => { this.#stderr = (this.#stderr + chunk.toString()).slice(-4000); });
  }

  static async start(settings: Settings): Promise<Worker> {
    const child = fork(fileURLToPath(new URL("worker.ts", import.meta.url)), [JSON.stringify(settings)], { execArgv: ["--import", "tsx", "--expose-gc", `--max-old-space-size=${limits.megabytes}`], stdio: ["ignore", "ignore", "pipe", "ipc"] });
    const worker = new Worker(child);
    await new Promise<void>((resolve, reject) => {
      child.once("message", () => resolve());
      child.once("exit", () => reject(new Error(`a worker did not start: ${worker.#stderr}`)));
    });
    return worker;
  }

  async try(order: Order): Promise<Result> {
    const child = this.#process;
    let stopped: string | undefined;
    const watch = setInterval(() => {
      const megabytes = residentMegabytes(child.pid);
      if (megabytes > 1.5 * limits.megabytes) stopped = `it grew to ${Math.round(megabytes)} MB`;
      if (stopped !== undefined) child.kill("SIGKILL");
    }, 100);
    const late = setTimeout(() => { stopped = `it took more than ${limits.seconds * slack} s of time`; child.kill("SIGKILL"); }, limits.seconds * slack * 1000);
    try {
      const answer = await new Promise<Answer | undefined>((resolve) => {
        const end = (): void => resolve(undefined);
        child.once("exit", end);
        child.once("message", (message) => { child.off("exit", end); resolve(message as Answer); });
        child.send(order);
      });
      return { order, answer, failure: stopped ?? (answer ? failureOf(answer) : `the process ended: ${this.#stderr.trim() || "no word of why"}`) };
    } finally {
      clearInterval(watch);
      clearTimeout(late);
    }
  }

  stop(): void { this.#process.kill("SIGKILL"); }
}

function failureOf(a: Answer): string | undefined {
  if (a.outcome === "fault") return a.said;
  if (a.seconds > limits.seconds) return `it took ${a.seconds.toFixed(1)} s (${a.outcome} at ${a.stage} ${a.said})`;
  if (a.megabytes > limits.megabytes) return `it took ${Math.round(a.megabytes)} MB (${a.outcome} at ${a.stage} ${a.said})`;
  return undefined;
}

/** As Linux tells it; 0 elsewhere, where only the worker's own word counts. */
function residentMegabytes(pid: number | undefined): number {
  const file = `/proc/${pid ?? 0}/statm`;
  try {
    return existsSync(file) ? (Number(readFileSync(file, "utf8").split(" ")[1]) * 4096) / 2 ** 20 : 0;
  } catch {
    return 0;
  }
}
