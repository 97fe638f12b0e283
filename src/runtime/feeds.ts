/** What is fed to a run: checked against the declared inputs, and the symbols it binds. */
import { evaluateDimJson, formatDimJson, type DimJson } from "../core/dim-json.ts";
import type { CheckJson, InputJson } from "../artifact/manifest.ts";
import { formatContainer } from "../core/container.ts";
import type { Datum } from "../core/datum.ts";
import { fail, nearestName } from "../core/diagnostic.ts";
import type { TensorData } from "../core/dtype.ts";
import { checkSizes, symbolsIn } from "./size-checks.ts";
import { elementsOf, isTensorLike, Tensor, type Resident } from "./tensor.ts";
import { containerFed, listedStrings, type Feed } from "./run-values.ts";

/** Compiled code counts in 32 bits. */
const largestSize = 2 ** 31 - 1;

/** What a session holds for inputs that need not be fed; sizes are undefined where it is still to be made. */
export interface HeldInputs { holds(input: string): boolean; dimsOf(input: string): readonly number[] | undefined }

export type Feeds = Readonly<Record<string, Feed>>;

/** An input as fed: elements in the dtype's storage, or where they lie in this session's memory. */
export interface Fed {
  readonly dims: readonly number[];
  readonly data: TensorData | Resident;
}

export interface BoundFeeds {
  readonly fed: ReadonlyMap<string, Fed>;
  /** Sequences, optionals and maps. */
  readonly held: ReadonlyMap<string, Datum>;
  /** Sizes of the inputs that are not fed because the session holds their values. */
  readonly states: ReadonlyMap<string, readonly number[]>;
  /** Values of the symbols in the inputs' sizes. */
  readonly symbols: Map<string, number>;
}

/**
 * Checks names (OF7001 missing, OF7002 unknown), dtypes (OF7003), shapes (OF7004), the agreement of symbols (OF7005) and
 * lengths (OF7006).
 */
export function bindFeeds(inputs: readonly InputJson[], feeds: Feeds, owner: object, checks: readonly CheckJson[] = [], states?: HeldInputs): BoundFeeds {
  if (typeof feeds !== "object" || feeds === null) fail("OF7001", "run takes an object of tensors by input name", { hint: "run({ x: new Tensor(type, data, dims) })" });
  for (const name of Object.keys(feeds)) {
    if (inputs.some((i) => i.name === name)) continue;
    const near = nearestName(name, inputs.map((i) => i.name));
    fail("OF7002", `there is no input '${name}'`, { hint: near === undefined ? `the inputs are ${inputs.map((i) => `'${i.name}'`).join(", ")}` : `did you mean '${near}'?` });
  }
  const fed = new Map<string, Fed>();
  const held = new Map<string, Datum>();
  const symbols = new Map<string, number>();
  const boundBy = new Map<string, string>();
  const kept = new Map<string, readonly number[]>();
  const first: InputJson[] = [], later: (() => void)[] = [];
  for (const input of inputs) {
    const feed = Object.hasOwn(feeds, input.name) ? feeds[input.name] : undefined;
    if (input.container) {
      if (feed === undefined && input.container.kind !== "optional") fail("OF7001", `input '${input.name}' is not fed`, { hint: `it takes a ${formatContainer(input.container)}` });
      held.set(input.name, containerFed(input.name, input.container, feed ?? null));
      continue;
    }
    const given = feed === undefined || feed === null ? undefined : accept(input, feed, owner);
    const before = given ? undefined : states?.dimsOf(input.name);
    if (given) fed.set(input.name, given);
    else if (before) kept.set(input.name, before);
    else if (states?.holds(input.name)) { first.push(input); continue; }
    else if (!input.default) fail("OF7001", `input '${input.name}' is not fed`, { hint: `it takes ${input.dtype} of ${formatShape(input.dims)}` });
    const dims = given?.dims ?? before ?? input.default?.dims ?? [];
    if (dims.length !== input.dims.length) wrongShape(input, dims, "");
    input.dims.forEach((declared, axis) => {
      const actual = dims[axis] ?? 0;
      if (typeof declared === "number") { if (declared !== actual) wrongShape(input, dims, ""); return; }
      if (typeof declared === "string") {
        const bound = symbols.get(declared);
        if (bound === undefined) { symbols.set(declared, actual); boundBy.set(declared, input.name); }
        else if (bound !== actual) fail("OF7005", `size '${declared}' is ${bound} in input '${boundBy.get(declared)}' and ${actual} in input '${input.name}'`);
        return;
      }
      later.push(() => { const is = evaluateDimJson(declared, symbols); if (is !== actual) wrongShape(input, dims, `; ${formatDimJson(declared)} is ${is}`); });
    });
  }
  for (const { dims } of first) for (const d of dims) for (const name of symbolsIn(d)) if (!symbols.has(name)) symbols.set(name, 0);
  for (const { name, dims } of first) kept.set(name, dims.map((d) => evaluateDimJson(d, symbols) ?? 0));
  later.forEach((check) => check());
  checkSizes(checks, symbols);
  return { fed, held, states: kept, symbols };
}

function accept(input: InputJson, value: Feed, owner: object): Fed {
  const feed = input.dtype === "string" ? (listedStrings(value) ?? value) : value;
  if (!isTensorLike(feed)) return fail("OF7003", `what is fed to '${input.name}' is not a tensor`, { hint: "feed new Tensor(type, data, dims)" });
  if (feed.type !== input.dtype) fail("OF7003", `input '${input.name}' takes ${input.dtype}, not ${feed.type}`);
  const dims = [...feed.dims];
  if (dims.some((d) => typeof d === "number" && d > largestSize)) fail("OF7004", `what is fed to '${input.name}' has dims [${dims.join(", ")}]; sizes are at most ${largestSize}`);
  if (feed instanceof Tensor && feed.resident?.owner === owner) return { dims, data: feed.resident };
  return { dims, data: elementsOf(input.dtype, feed.data, dims, `what is fed to '${input.name}'`) };
}

const formatShape = (dims: readonly DimJson[]): string => `[${dims.map(formatDimJson).join(", ")}]`;
const wrongShape = (input: InputJson, dims: readonly number[], more: string): never =>
  fail("OF7004", `input '${input.name}' takes ${formatShape(input.dims)}, not [${dims.join(", ")}]${more}`);
