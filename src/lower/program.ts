/**
 * Graph + Regions → Program: a step per region, buffers for values, placements for buffers. Views and concatenations by
 * placement cost no step; results that lie in inputs, constants or parts of other values get copies; steps whose
 * results nothing reads are left out.
 */
import { invariant, present } from "../core/assert.ts";
import { isHeld } from "../core/container.ts";
import { dimEqual, formatDim, symbol, symbolsOf, type Dim } from "../core/dim.ts";
import { dimFromJson, type DimJson } from "../core/dim-json.ts";
import { freshSymbol } from "../graph/fresh.ts";
import type { Graph, Node, Value } from "../graph/graph.ts";
import { isTypeAttribute } from "../graph/op.ts";
import type { Region } from "../graph/region.ts";
import type { Buffer } from "../kernel/expr.ts";
import type { AttributeJson, Placement, Program, ProgramInput, ProgramOutput, ProgramState, Step, StepOrigin, Storage } from "../kernel/program.ts";
import { copyKernel } from "./copy.ts";
import { lowerControl, type ControlContext } from "./control.ts";
import { liveSteps, usedBuffers } from "./live-steps.ts";
import { denseLayout, Places, sameLayout, storageBytes } from "./placement.ts";
import { lowerRegion } from "./region.ts";

/** Lowers a graph whose nodes the regions cover exactly, in an order where producers come first. */
export function lowerProgram(graph: Graph, regions: readonly Region[]): Program {
  return new ProgramLowering(graph, regions).program();
}

class ProgramLowering implements ControlContext {
  readonly #graph: Graph;
  readonly #regions: readonly Region[];
  readonly places = new Places();
  /** Buffers that stand for no value: copies and working memory. */
  readonly #extra = new Map<Buffer, Placement>();
  /** Views whose memory could not say them. */
  readonly #computed = new Set<Region>();
  readonly #names = new Map<string, number>();
  readonly #states: ProgramState[] = [];
  /** Rooms of states by what they have to hold. */
  readonly #capacities = new Map<string, string>();

  constructor(graph: Graph, regions: readonly Region[]) {
    this.#graph = graph;
    this.#regions = regions;
  }

  program(): Program {
    for (const region of allRegions(this.#regions)) if (region.execution === "view" && !this.places.addView(region)) this.#computed.add(region);
    const inputs = this.#graph.inputs.map((value): ProgramInput => ({ name: value.name, buffer: this.places.bufferOf(value), ...(value.default ? { default: value.default } : {}) }));
    const results = this.#graph.outputs.map((value, i) => this.#result(value, i));
    const steps = [...this.steps(this.#regions), ...results.flatMap((r) => r.copy)];
    const outputs = results.map((r) => r.output);
    const placements = new Map([...this.places.placements(), ...this.#extra]);
    const live = checksLast(liveSteps(steps, inputs, outputs, placements));
    const used = usedBuffers(live, inputs, outputs);
    const storages = new Set([...used].map((b) => present(placements.get(b), `placement of ${b.name}`).storage));
    const weights = [...this.places.weights].filter(([storage]) => storages.has(storage)).map(([, weight]) => weight);
    for (const w of weights) used.add(w.buffer);
    return { inputs, outputs, ...(this.#states.length ? { states: this.#states } : {}), weights, steps: live, placements: new Map([...placements].filter(([b]) => used.has(b))) };
  }

  /** A graph output's buffer: the value's own where it can lie in the output's storage, else a copy. */
  #result(value: Value, i: number): { readonly output: ProgramOutput; readonly copy: readonly Step[] } {
    const own = this.places.bufferOf(value), { rank } = value.type;
    const output = (buffer: Buffer): ProgramOutput => ({ name: value.name, buffer, ...(rank === undefined ? {} : { rank }) });
    if (isHeld(own)) return { output: output(own), copy: [] };
    const link = this.#graph.states.find((s) => s.output === value.name), grows = link && this.#growing(link.input, value);
    if (link) this.#states.push({ ...link, ...(grows ? { grows } : {}) });
    if (grows) return { output: output(own), copy: [] };
    const placement: Placement = { storage: { name: value.name, kind: "output", bytes: storageBytes(own) }, layout: denseLayout(own.shape) };
    if (this.places.claim(value, placement)) return { output: output(own), copy: [] };
    const buffer: Buffer = { ...own, name: `${value.name}_result${i}` };
    this.#extra.set(buffer, placement);
    return { output: output(buffer), copy: [this.copy(own, buffer, originOf(value))] };
  }

  /** Gives an output that begins with an input, whose next value it is, a storage with room to grow; undefined where it cannot lie so. */
  #growing(name: string, value: Value): ProgramState["grows"] {
    const input = this.#graph.inputs.find((v) => v.name === name), { shape } = value.type;
    if (!input || this.places.rootOf(input) !== value) return undefined;
    const axis = shape.findIndex((d, i) => !dimEqual(d, input.type.shape[i] ?? 0)), size = shape[axis];
    const known = new Set(this.#graph.inputs.flatMap((v) => v.type.shape.flatMap((d) => [...symbolsOf(d)])));
    if (size === undefined || shape.some((d) => [...symbolsOf(d)].some((s) => !known.has(s)))) return undefined;
    const capacity = this.#capacities.get(formatDim(size)) ?? [...symbolsOf(freshSymbol(this.#graph, "capacity"))].join("");
    this.#capacities.set(formatDim(size), capacity);
    const room = shape.map((d, i): Dim => (i === axis ? symbol(capacity) : d));
    const storage: Storage = { name: value.name, kind: "state", bytes: storageBytes({ dtype: value.type.dtype, shape: room }) };
    return this.places.claim(value, { storage, layout: denseLayout(room) }) ? { axis, capacity, storage } : undefined;
  }

  steps(regions: readonly Region[]): Step[] { return regions.flatMap((region) => this.#step(region)); }
  #step(region: Region): readonly Step[] {
    switch (region.execution) {
      case "view": return this.#computed.has(region) ? [this.#call(region)] : [];
      case "kernel": return [this.#call(region)];
      case "host": return this.#host(region);
      case "check": return [this.#check(region)];
      case "control": return lowerControl(region, regionOrigin(region), this);
    }
  }
  #call(region: Region): Step {
    const kernel = lowerRegion(region, this.#name(region.kind), (v) => this.places.bufferOf(v));
    for (const b of kernel.scratch) this.#extra.set(b, this.#arena(`${kernel.name}_${b.name}`, b));
    return { kind: "call", kernel, origin: regionOrigin(region) };
  }
  #arena(name: string, buffer: Buffer): Placement {
    return { storage: { name, kind: "arena", bytes: storageBytes(buffer) }, layout: denseLayout(buffer.shape) };
  }
  copy(from: Buffer, to: Buffer, origin: StepOrigin): Step {
    if (isHeld(from)) return { kind: "move", moves: [{ from, to }], origin };
    return { kind: "call", kernel: copyKernel(this.#name("copy"), from, to), origin };
  }
  temporary(like: Buffer): Buffer {
    const buffer: Buffer = { ...like, name: `${like.name}_dense${this.#extra.size}` };
    this.#extra.set(buffer, this.#arena(buffer.name, buffer));
    return buffer;
  }
  /** `conv_bn_relu_12`, numbered a name. */
  #name(kind: string): string {
    const base = kind.replace(/([a-z0-9])([A-Z])/g, "$1_$2").replace(/([A-Z]+)([A-Z][a-z])/g, "$1_$2").replace(/\W+/g, "_").toLowerCase();
    const n = this.#names.get(base) ?? 0;
    this.#names.set(base, n + 1);
    return `${base}_${n}`;
  }

  #check(region: Region): Step {
    const node = present(region.nodes[0], "check"), [low, high] = node.inputs.map((v) => this.places.bufferOf(present(v, "range")));
    const { sizes, node: at, value } = node.attributes;
    invariant(low && high && Array.isArray(sizes), `${node.name} checks nothing`);
    return { kind: "check", low, high, sizes: sizes.map((s) => dimFromJson(JSON.parse(String(s)) as DimJson)), node: String(at), value: String(value), origin: regionOrigin(region) };
  }

  /** A host operator with copies of the inputs that are not row-major where they lie. */
  #host(region: Region): readonly Step[] {
    const node = present(region.nodes[0], "host node");
    const copies: Step[] = [];
    const inputs = node.inputs.map((value) => {
      if (!value) return undefined;
      const own = this.places.bufferOf(value);
      if (isHeld(own) || sameLayout(this.places.of(value).layout, denseLayout(own.shape))) return own;
      const buffer = this.temporary(own);
      copies.push(this.copy(own, buffer, regionOrigin(region)));
      return buffer;
    });
    const outputs = node.outputs.map((v) => this.places.bufferOf(v));
    return [...copies, { kind: "host", domain: node.op.domain, op: node.op.type, attributes: attributesJson(node), inputs, outputs, origin: regionOrigin(region) }];
  }
}

/** Checks after everything beside them, so that they do not come between kernels. */
function checksLast(steps: readonly Step[]): Step[] {
  const nested = steps.map((s) => (s.kind === "if" ? { ...s, then: checksLast(s.then), else: checksLast(s.else) } : s.kind === "loop" ? { ...s, body: checksLast(s.body) } : s));
  return [...nested.filter((s) => s.kind !== "check"), ...nested.filter((s) => s.kind === "check")];
}

function allRegions(regions: readonly Region[]): Region[] {
  return regions.flatMap((r) => [r, ...(r.branches ?? []).flatMap(allRegions)]);
}
const regionOrigin = (region: Region): StepOrigin => ({ label: region.kind, nodes: [...new Set(region.nodes.flatMap((n) => n.origins))] });
const originOf = (value: Value): StepOrigin => ({ label: "Copy", nodes: value.producer?.node.origins ?? [] });

function attributesJson(node: Node): Readonly<Record<string, AttributeJson>> {
  const out: Record<string, AttributeJson> = {};
  for (const [name, value] of Object.entries(node.attributes)) {
    if (value === undefined || isTypeAttribute(value)) continue;
    if (typeof value === "number" || typeof value === "string") out[name] = value;
    else if (Array.isArray(value)) out[name] = value as readonly number[] | readonly string[];
    else {
      invariant("dims" in value && "data" in value, `attribute ${name} of ${node.name} is a graph`);
      out[name] = { tensor: value };
    }
  }
  return out;
}

