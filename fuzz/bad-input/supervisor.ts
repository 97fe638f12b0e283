/**
 * Workers, each a process of its own: one that ends, hangs or grows past the limits is replaced, and its mutant is a
 * failure, unless it runs machine code that was damaged, which may do both. Time is the processor's, so that a busy
 * machine does not make failures; a wall clock stops what sleeps.
 */
import { fork, type ChildProcess } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Answer, Message, Order, Settings } from "./worker.ts";

export const limits = { seconds: 5, megabytes: 1024 } as const;
/** Mutants per process: what earlier ones leave in the heap would otherwise count against later ones. */
const lifetime = 1000;
/** Processor seconds after which a worker is stopped, and seconds of time for one that sleeps. */
const patience = { processor: 2 * limits.seconds, time: 600 } as const;

/** What only took too long is tried again: processors that are shared count the time that others keep them waiting for memory. */
const mostTries = 3;
const isSlow = ({ answer, failure }: Result): boolean => failure !== undefined && answer !== undefined && answer.outcome !== "fault" && answer.seconds > limits.seconds;

export interface Result {
  readonly order: Order;
  /** Undefined where the process ended before it could answer. */
  readonly answer: Answer | undefined;
  /** Why this is a failure; undefined where it is none. */
  readonly failure: string | undefined;
  /** Stopped while it ran damaged machine code. */
  readonly stopped?: boolean;
}

/** Tries the orders on `jobs` workers, and tells each result as it comes. */
export async function supervise(orders: Iterable<Order>, jobs: number, settings: Settings, tell: (result: Result) => void): Promise<void> {
  const queue = orders[Symbol.iterator]();
  await Promise.all(Array.from({ length: jobs }, async () => {
    let worker: Worker | undefined;
    for (let next = queue.next(), served = 0; !next.done; next = queue.next(), served++) {
      if (served % lifetime === 0) { worker?.stop(); worker = undefined; }
      let result: Result | undefined;
      for (let tries = 0; tries < mostTries && (!result || isSlow(result)); tries++) {
        worker ??= await Worker.start(settings);
        result = await worker.try(next.value);
        if (result.answer === undefined || result.failure !== undefined) { worker.stop(); worker = undefined; }
      }
      if (result) tell(result);
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
    const started = Date.now(), spent = processorSeconds(child.pid);
    let stopped: string | undefined, damagedCode = false;
    const watch = setInterval(() => {
      const megabytes = residentMegabytes(child.pid), seconds = processorSeconds(child.pid) - spent;
      if (megabytes > 1.5 * limits.megabytes) stopped = `it grew to ${Math.round(megabytes)} MB`;
      if (seconds > patience.processor) stopped = `it took more than ${patience.processor} s of the processor`;
      if (Date.now() - started > 1000 * patience.time) stopped = `it took more than ${patience.time} s of time`;
      if (stopped !== undefined) child.kill("SIGKILL");
    }, 100);
    try {
      const answer = await new Promise<Answer | undefined>((resolve) => {
        const done = (value: Answer | undefined): void => { child.off("exit", end); child.off("message", hear); resolve(value); };
        const end = (): void => done(undefined), hear = (message: Message): void => { if (message === "damaged code runs") damagedCode = true; else done(message); };
        child.once("exit", end);
        child.on("message", hear);
        child.send(order);
      });
      if (!answer && stopped !== undefined && damagedCode) return { order, answer, failure: undefined, stopped: true };
      return { order, answer, failure: stopped ?? (answer ? failureOf(answer) : `the process ended: ${this.#stderr.trim() || "no word of why"}`) };
    } finally {
      clearInterval(watch);
    }
  }

  stop(): void { this.#process.kill("SIGKILL"); }
}

/** What running damaged code took says nothing. */
function failureOf(a: Answer): string | undefined {
  if (a.outcome === "fault") return a.said;
  if (a.damagedCode) return undefined;
  if (a.seconds > limits.seconds) return `it took ${a.seconds.toFixed(1)} s (${a.outcome} at ${a.stage} ${a.said})`;
  if (a.megabytes > limits.megabytes) return `it took ${Math.round(a.megabytes)} MB (${a.outcome} at ${a.stage} ${a.said})`;
  return undefined;
}

/** Processor time of a process, all threads, as Linux tells it; 0 elsewhere, where only the clock counts. */
function processorSeconds(pid: number | undefined): number {
  const file = `/proc/${pid ?? 0}/stat`;
  try {
    const [, after = ""] = existsSync(file) ? readFileSync(file, "utf8").split(") ") : [], fields = after.split(" ");
    return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / 100;
  } catch {
    return 0;
  }
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
