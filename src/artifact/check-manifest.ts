/**
 * Checks a manifest before anything in it is believed: each field has its kind, indices and offsets lie where they
 * point, sizes are sizes. What only running can tell (that an address computed from sizes lies in memory) the runtime
 * checks when it uses it. Fields that only people read are not checked.
 */
import type { Container, ItemType } from "../core/container.ts";
import type { DimJson } from "../core/dim-json.ts";
import { dtypes, type DType } from "../core/dtype.ts";
import { packedBytes } from "../core/packed.ts";
import type { SectionKind } from "./container.ts";
import { inconsistent } from "./inconsistent.ts";
import { restoreTerms, type Json } from "./shared-terms.ts";
import type { AddressJson, AttributeValueJson, CheckJson, DataJson, Manifest, PortJson, StepJson, WeightJson } from "./manifest.ts";

/** WebAssembly's memory, of which no address is outside and no size is larger. */
const mostBytes = 2 ** 32;
/** More levels than any program has that was compiled. */
const mostLevels = 500;

/** The manifest. Fails with OF6004 where it has not the form of one or contradicts itself. `kinds` are the sections', `weightBytes` the length of the one of weights. */
export function checkManifest(json: unknown, kinds: readonly SectionKind[], weightBytes: number): Manifest {
  if (typeof json !== "object" || json === null) return inconsistent("its manifest is not an object");
  try {
    const manifest = restoreTerms(json as Record<string, Json>) as Manifest;
    new Check(manifest, kinds, manifest.external === undefined ? weightBytes : externalBytes(manifest)).all();
    return manifest;
  } catch (e) {
    // What is read of null, or of a number as if it were a list.
    if (e instanceof TypeError) return inconsistent("its manifest has not the form of one");
    throw e;
  }
}

/** Length of a weights section in other files, whose names stay beside the artifact. */
function externalBytes({ external }: Manifest): number {
  let end = 0;
  for (const { file, offset, length } of list(external, "external weights")) {
    if (typeof file !== "string" || /^[\\/]|^[A-Za-z][\w+.-]*:|(^|[\\/])\.\.([\\/]|$)|\0/.test(file)) inconsistent(`its weights lie in '${String(file)}', outside its folder`);
    end = Math.max(end, size(offset, "the place of external weights") + size(length, "the length of external weights"));
  }
  return end;
}

function list<T>(value: readonly T[] | undefined, what: string): readonly T[] {
  return Array.isArray(value) ? value : inconsistent(`its manifest has no ${what}`);
}
function text(value: unknown, what: string): void {
  if (typeof value !== "string") inconsistent(`${what} is not text`);
}
/** An integer from 0 to 4 GiB. */
function size(value: unknown, what: string): number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= mostBytes ? value : inconsistent(`${what} is ${JSON.stringify(value)}`);
}

class Check {
  readonly #manifest: Manifest;
  readonly #kinds: readonly SectionKind[];
  readonly #weightBytes: number;
  constructor(manifest: Manifest, kinds: readonly SectionKind[], weightBytes: number) {
    this.#manifest = manifest;
    this.#kinds = kinds;
    this.#weightBytes = weightBytes;
  }

  all(): void {
    const m = this.#manifest, names = new Set<string>();
    if (typeof m.metadata !== "object" || m.metadata === null) inconsistent("its manifest has no metadata");
    for (const c of list(m.code, "code")) {
      if (this.#kinds[c.section] !== "code") inconsistent(`section ${c.section} is not code`);
      if (c.relaxation !== undefined && this.#kinds[c.relaxation] !== "relaxation") inconsistent(`section ${c.relaxation} is no relaxation`);
      if (c.threads !== undefined && this.#kinds[c.threads] !== "threads") inconsistent(`section ${c.threads} is no code for threads`);
      if (c.relaxed !== undefined && c.relaxed !== true) inconsistent("its code is for no known engine");
    }
    this.#memory();
    for (const b of list(m.buffers, "buffers")) {
      this.#typed(b);
      if (b.at !== undefined) this.#address(b.at);
      else if (b.dtype !== "string" && !b.container) inconsistent(`'${b.name}' lies nowhere`);
      if (b.offset !== undefined) dim(b.offset);
      if (b.strides !== undefined && list(b.strides, "strides").length !== b.dims.length) inconsistent(`'${b.name}' has not a stride for each axis`);
      b.strides?.forEach((s) => dim(s));
    }
    for (const i of list(m.inputs, "inputs")) {
      this.#port(i, names);
      if (i.default !== undefined) this.#data(i.default);
    }
    names.clear();
    for (const o of list(m.outputs, "outputs")) this.#port(o, names);
    if (m.states !== undefined) this.#states();
    for (const w of list(m.weights, "weights")) {
      if (size(w.at, "a weight's address") + size(w.bytes, "a weight's length") > m.memory.fixedEnd) inconsistent("a weight lies outside the memory");
      if (w.quads !== undefined && (size(w.quads, "a weight's panel") === 0 || w.quads % 32 !== 0 || w.bytes % w.quads !== 0)) inconsistent("a weight's panels are not of quads");
      if (!("input" in w.source)) { this.#data(w.source); this.#widened(w.source, w); continue; }
      const { input } = w.source;
      if (!m.inputs.some((i) => i.name === input && i.default)) inconsistent(`there is no input '${input}' with a default`);
    }
    for (const h of m.held === undefined ? [] : list(m.held, "held constants")) { this.#buffer(h.buffer); this.#data(h.data); }
    this.#checks(m.checks);
    this.#steps(m.steps, 0);
  }

  #checks(checks: readonly CheckJson[] = []): void {
    for (const c of list(checks, "checks")) { dim(c.a); dim(c.b); text(c.node, "the node of a check"); }
  }

  #widened(source: DataJson, { widen, pack, bytes }: WeightJson): void {
    if (widen === undefined) return;
    const { scales } = widen, elements = source.dims.reduce((n, d) => n * d, 1);
    if (source.dtype !== (scales ? "int8" : "float16")) inconsistent(`a weight of ${source.dtype} is widened`);
    if (pack === undefined && elements * 4 !== bytes) inconsistent("a widened weight does not fill its place");
    if (!scales) return;
    this.#data(scales);
    if (scales.dtype !== "float32" || scales.dims.length !== source.dims.length || scales.dims.some((d, i) => d !== 1 && d !== source.dims[i])) inconsistent("a weight's scales do not fit it");
  }

  #states(): void {
    const m = this.#manifest, of = (ports: readonly PortJson[], name: string): PortJson => ports.find((p) => p.name === name) ?? inconsistent(`a state is of '${name}', which it does not have`);
    for (const { input, output, grows } of list(m.states, "states")) {
      const from = of(m.outputs, output), to = of(m.inputs, input);
      if (from.dtype !== to.dtype || from.dims.length !== to.dims.length || from.container || from.dtype === "string") inconsistent(`'${input}' cannot take '${output}'`);
      if (grows === undefined) continue;
      if (size(grows.axis, "the axis of a state") >= to.dims.length) inconsistent("a state grows along no axis of it");
      text(grows.capacity, "the room of a state");
      dim(grows.bytes);
      this.#address(grows.at);
    }
  }

  #memory(): void {
    const { memory } = this.#manifest;
    for (const what of ["table", "slots", "fixedEnd", "weightBytes"] as const) size(memory[what], `its memory's ${what}`);
    if (memory.table + 4 * memory.slots > memory.fixedEnd) inconsistent("its table lies outside the memory");
    const { length } = list(memory.sizes, "memory plan");
    if (length > memory.slots) inconsistent("its table has no room for its sizes");
    memory.sizes.forEach((d) => dim(d));
    if (memory.threadScratch !== undefined) list(memory.threadScratch, "memory of threads").forEach((d) => dim(d));
    for (const b of list(memory.arena, "memory plan")) { dim(b.bytes); if (!Number.isSafeInteger(b.first) || !Number.isSafeInteger(b.last)) inconsistent("a block is of no time"); this.#address(b.at); }
  }

  #address(at: AddressJson): void {
    if (typeof at === "number") size(at, "an address");
    else if (size(at.slot, "a slot") >= this.#manifest.memory.slots) inconsistent(`there is no slot ${at.slot}`);
  }

  #typed(p: { readonly name: string; readonly dtype: DType; readonly dims: readonly DimJson[]; readonly container?: Container }): void {
    text(p.name, "a name");
    if (typeof p.dtype !== "string" || !Object.hasOwn(dtypes, p.dtype)) inconsistent(`'${p.name}' has no type`);
    for (const d of list(p.dims, `sizes of '${p.name}'`)) dim(d);
    if (p.container !== undefined) container(p.container, 0);
  }

  #port(p: PortJson, names: Set<string>): void {
    this.#typed(p);
    if (names.has(p.name)) inconsistent(`'${p.name}' stands twice`);
    names.add(p.name);
    this.#buffer(p.buffer);
    const b = this.#manifest.buffers[p.buffer];
    if (b?.dtype !== p.dtype || b.dims.length !== p.dims.length || (b.container === undefined) !== (p.container === undefined)) inconsistent(`'${p.name}' is not of its buffer's type`);
  }

  #buffer(index: number | null): void {
    if (index !== null && (!Number.isInteger(index) || !this.#manifest.buffers[index])) inconsistent(`there is no buffer ${String(index)}`);
  }

  #data(d: DataJson): void {
    if (typeof d.dtype !== "string" || !Object.hasOwn(dtypes, d.dtype)) inconsistent("a weight has no type");
    const count = list(d.dims, "sizes of a weight").reduce((n, s) => n * size(s, "a weight's size"), 1);
    if (size(d.offset, "a weight's offset") + size(d.length, "a weight's length") > this.#weightBytes) inconsistent("a weight lies outside its section");
    if (count * Math.max(dtypes[d.dtype].size, 1) > mostBytes) inconsistent("a weight is larger than memory");
    const needed = d.dtype === "string" ? 4 * count : d.fill ? dtypes[d.dtype].size : packedBytes(d.dtype, count);
    if (d.dtype === "string" ? d.length < needed : d.length !== needed) inconsistent(`a weight of [${d.dims.join(", ")}] has ${d.length} bytes`);
  }

  #steps(steps: readonly StepJson[], level: number): void {
    if (level > mostLevels) inconsistent("its steps are nested too deep");
    for (const s of list(steps, "steps")) this.#step(s, level);
  }

  #step(s: StepJson, level: number): void {
    const buffers = (all: readonly (number | null)[], what: string): void => { for (const i of list(all, what)) this.#buffer(i); };
    if ("host" in s) {
      for (const what of ["host", "domain", "label"] as const) text(s[what], `a host operator's ${what}`);
      buffers(s.inputs, "inputs of a host operator");
      buffers(s.outputs, "outputs of a host operator");
      for (const a of Object.values(s.attributes)) this.#attribute(a);
    } else if ("if" in s) {
      if (typeof s.if === "number") this.#scalar(s.if); else dim(s.if.predicate);
      this.#steps(s.then, level + 1);
      this.#steps(s.else, level + 1);
      for (const checks of list(s.checks ?? [], "checks of branches")) this.#checks(checks);
    } else if ("loop" in s) {
      if (typeof s.count === "number") this.#scalar(s.count); else if (s.count !== null) dim(s.count.size);
      for (const i of [s.condition, s.next]) if (i !== null) this.#scalar(i);
      buffers([s.iteration], "iteration");
      for (const c of list(s.carry, "carried values")) { if (list(c, "carried value").length !== 4 || c.slice(0, 3).includes(null)) inconsistent("a loop carries something else"); buffers(c, "carried value"); }
      for (const pair of list(s.stack, "stacked values")) this.#pair(pair);
      this.#checks(s.checks);
      this.#steps(s.loop, level + 1);
    } else if ("move" in s) for (const pair of list(s.move, "moved values")) this.#pair(pair);
    else if ("check" in s) {
      this.#pair(s.check);
      if (s.check.some((i) => this.#manifest.buffers[i]?.dtype !== "int64")) inconsistent("a check looks at something else");
      for (const d of list(s.sizes, "checked sizes")) dim(d);
      text(s.node, "a check's node");
      text(s.value, "a check's value");
    }
    else if ("run" in s) { size(s.run, "a segment"); for (const call of list(s.calls, "calls")) { list(call, "call").slice(0, 2).forEach((name) => text(name, "a call")); if (call.length > 2) size(call[2], "the functions of a call"); } }
    else inconsistent("it has a step of no known kind");
  }

  #pair(pair: readonly [number, number]): void {
    if (list(pair, "pair of buffers").length !== 2 || pair.some((i) => typeof i !== "number")) inconsistent("a step moves something else");
    pair.forEach((i) => this.#buffer(i));
  }

  /** A buffer that a number is read from. */
  #scalar(index: number): void {
    this.#buffer(index);
    const b = this.#manifest.buffers[index];
    if (b?.dtype === "string" || (b?.container && b.container.kind !== "tensor")) inconsistent(`'${b.name}' is not a number`);
  }

  #attribute(a: AttributeValueJson): void {
    if (Array.isArray(a)) { if (!a.every((x) => typeof x === "number") && !a.every((x) => typeof x === "string")) inconsistent("an attribute holds something else"); return; }
    if (typeof a !== "object") return;
    if ("tensor" in a) this.#data(a.tensor);
    else if ("floats" in a) list(a.floats, "floats").forEach((f) => text(f, "a float"));
    else if ("float" in a) text(a.float, "a float");
    else inconsistent("an attribute holds something else");
  }
}

const operations = new Set(["+", "*", "/", "%", "min", "max", "broadcast"]);

/** A size: an integer, a symbol, or an operation over sizes. */
function dim(d: DimJson, level = 0): void {
  if (typeof d === "number") { if (!Number.isSafeInteger(d)) inconsistent(`a size is ${d}`); return; }
  if (typeof d === "string") return;
  const [operation, ...rest] = list(d, "size");
  if (typeof operation !== "string" || !operations.has(operation) || !rest.length || level > mostLevels) inconsistent("a size is no known operation");
  for (const operand of rest) dim(operand, level + 1);
}

function container(c: Container, level: number): void {
  if (level > 20 || !["sequence", "optional", "map", "tensor"].includes(c.kind) || (c.kind === "map" && !Object.hasOwn(dtypes, c.key))) inconsistent("a container is of no known kind");
  item(c.item, level);
}
function item(i: ItemType, level: number): void {
  if (typeof i.dtype !== "string" || !Object.hasOwn(dtypes, i.dtype)) inconsistent("the items of a container have no type");
  if (i.shape !== undefined) list(i.shape, "sizes of items");
  if (i.container !== undefined) container(i.container, level + 1);
}
