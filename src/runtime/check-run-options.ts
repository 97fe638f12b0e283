/** Options of `load` and `run` as callers without types may give them. */
import { fail } from "../core/diagnostic.ts";
import type { RunOptions, SessionOptions } from "./session.ts";

const isObject = (v: unknown): v is Readonly<Record<string, unknown>> => typeof v === "object" && v !== null && !Array.isArray(v);
const isNames = (v: unknown): boolean => Array.isArray(v) && v.every((name) => typeof name === "string");
const isFunction = (v: unknown): boolean => typeof v === "function";

type Check = readonly [wanted: string, isRight: (value: unknown) => boolean];
const runChecks: Readonly<Record<keyof RunOptions, Check>> = {
  outputs: ["a list of names", isNames],
  keep: ["a list of names", isNames],
  into: ["an object of tensors", isObject],
  onStep: ["a function", isFunction],
  timeLimit: ["a number of milliseconds", (v) => typeof v === "number" && v >= 0],
};
const loadChecks: Readonly<Record<keyof SessionOptions | "externalData", Check>> = {
  engine: ["'simd' or 'relaxed-simd'", (v) => v === "simd" || v === "relaxed-simd"],
  threads: ["a positive integer", (v) => Number.isInteger(v) && Number(v) >= 1],
  workerUrl: ["a URL", (v) => typeof v === "string" || v instanceof URL],
  externalData: ["a function", isFunction],
};

/** Fails with OF7022 where options of a run are not what they should be. */
export const checkRunOptions = (options: unknown): void => checkAll(options, runChecks, "run");
/** Fails with OF7022 where options of a session are not what they should be. */
export const checkLoadOptions = (options: unknown): void => checkAll(options, loadChecks, "load");

function checkAll(options: unknown, checks: Readonly<Record<string, Check>>, what: string): void {
  if (!isObject(options)) return fail("OF7022", `the options of ${what} are not an object`);
  for (const [name, [wanted, isRight]] of Object.entries(checks)) {
    const value = options[name];
    if (value !== undefined && !isRight(value)) fail("OF7022", `option '${name}' of ${what} is not ${wanted}`, { place: { field: name } });
  }
}
