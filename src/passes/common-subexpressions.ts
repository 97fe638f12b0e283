/**
 * Common subexpressions: nodes of one graph with the same operator, attributes (defaults included) and inputs compute
 * the same, so one of them does. Equal constants become one. Never merges what gives other results on every run, has
 * side effects or holds subgraphs.
 */
import { bytesOf, sameTensor, type Tensor } from "../core/tensor.ts";
import { Graph, subgraphs, type Node, type Value } from "../graph/graph.ts";
import { isTypeAttribute, type AttributeValue } from "../graph/op.ts";
import { Identity } from "../ops/index.ts";
import { isConstant } from "../rewrite/match.ts";
import type { Ledger } from "./ledger.ts";
import { replaceOutput } from "./replace.ts";

/** Returns whether anything was merged. */
export function mergeCommonSubexpressions(graph: Graph, ledger: Ledger, keys: ConstantKeys = new Map()): boolean {
  const merger = new Merger(keys);
  let changed = false;
  for (const node of graph.nodes) {
    for (const inner of subgraphs(node)) if (mergeCommonSubexpressions(inner, ledger, keys)) changed = true;
    merger.shareConstants(node);
    if (merger.merge(node, ledger)) changed = true;
  }
  return changed;
}

/** Keys of constants that have been looked at: passes that run again need not read them again. */
export type ConstantKeys = Map<Tensor, string>;

class Merger {
  readonly #keys: ConstantKeys;
  readonly #ids = new Map<object, number>();
  readonly #constants = new Map<string, Value[]>();
  readonly #nodes = new Map<string, Node>();

  constructor(keys: ConstantKeys) {
    this.#keys = keys;
  }

  /** Makes the node read the first of all equal constants of its graph. */
  shareConstants(node: Node): void {
    node.inputs.forEach((v, i) => {
      if (!v || !isConstant(v) || v.graph !== node.graph) return;
      const key = this.#constantKey(v.constant);
      const known = this.#constants.get(key) ?? [];
      const same = known.includes(v) ? v : known.find((other) => sameTensor(other.constant ?? v.constant, v.constant));
      if (!same) this.#constants.set(key, [...known, v]);
      else if (same !== v) node.graph.setInput(node, i, same);
    });
  }

  merge(node: Node, ledger: Ledger): boolean {
    if (node.op.deterministic === false || node.op.sideEffects || subgraphs(node).length || node.op === Identity) return false;
    const key = [this.#id(node.op), node.outputs.length, ...node.inputs.map((v) => (v ? this.#id(v) : "-")), attributesKey(node)].join(" ");
    const first = this.#nodes.get(key);
    if (!first) { this.#nodes.set(key, node); return false; }
    let changed = false;
    for (const [i, v] of node.outputs.entries()) {
      const by = first.outputs[i];
      if (!by || (v.uses.length === 0 && v.resultOf.length === 0)) continue;
      const saved = replaceOutput(node, by, i);
      if (saved === undefined) continue;
      ledger.record("merged", node.op.type, saved);
      ledger.trace("merged", [node], `it computes what '${first.name}' computes: the same operator on the same inputs`);
      changed = true;
    }
    return changed;
  }

  #constantKey(t: Tensor): string {
    let key = this.#keys.get(t);
    if (key === undefined) this.#keys.set(t, (key = constantKey(t)));
    return key;
  }

  #id(x: object): number {
    const id = this.#ids.get(x) ?? this.#ids.size;
    this.#ids.set(x, id);
    return id;
  }
}

const attributesKey = (node: Node): string =>
  Object.entries(node.attributes).filter(([, a]) => a !== undefined).sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, a]) => `${k}=${attributeKey(a)}`).join(";");

function attributeKey(a: AttributeValue | undefined): string {
  if (typeof a === "object" && "dims" in a) return constantKey(a) + (a.dtype === "string" ? JSON.stringify(a.data) : String(bytesOf(a)));
  if (isTypeAttribute(a)) return JSON.stringify(a);
  if (typeof a === "object" && !(a instanceof Graph)) return `[${a.map(scalarKey).join()}]`;
  return a instanceof Graph || a === undefined ? "" : scalarKey(a);
}

const scalarKey = (x: number | string): string => (typeof x === "string" ? JSON.stringify(x) : Object.is(x, -0) ? "-0" : String(x));

/** Equal tensors have equal keys; most others differ. */
function constantKey(t: Tensor): string {
  return `${t.dtype}[${t.dims.join()}]${t.dtype === "string" ? t.data.join("\0") : hash(bytesOf(t))}`;
}

/** FNV-1a over at most 4096 bytes spread over the whole. */
function hash(bytes: Uint8Array): number {
  const step = Math.max(1, Math.ceil(bytes.length / 4096));
  let h = 0x811c9dc5;
  for (let i = 0; i < bytes.length; i += step) h = Math.imul(h ^ (bytes[i] ?? 0), 0x01000193);
  return h >>> 0;
}
