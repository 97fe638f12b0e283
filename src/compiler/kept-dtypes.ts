/**
 * Nodes whose results keep their element type wherever they stand (`--keep_dtype`): a 16-bit float result of such a
 * node is rounded to its type, as in the original model, instead of staying in float32 inside a fused kernel, and no
 * rule that reassociates takes the node in. Nodes are named by their original names, which survive every rewrite, or by
 * their original type as `OpType::Conv`. Nodes of other types lose nothing in fusion, so nothing is refused for them.
 */
import type { DType } from "../core/dtype.ts";
import type { Node } from "../graph/graph.ts";
import type { RuleSite } from "../rewrite/driver.ts";
import { refuse, type Rule } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";

const typePrefix = "OpType::";
const widened: readonly DType[] = ["float16", "bfloat16"];

export class KeptDtypes {
  readonly #names = new Set<string>();
  readonly #types = new Set<string>();
  readonly #typeOf: (node: string) => string | undefined;
  readonly #met = new Set<string>();

  /** `entries`: original node names, or `OpType::` and an operator type. */
  constructor(entries: readonly string[], typeOf: (node: string) => string | undefined) {
    for (const entry of entries) {
      if (entry.startsWith(typePrefix)) this.#types.add(entry.slice(typePrefix.length));
      else this.#names.add(entry);
    }
    this.#typeOf = typeOf;
  }

  /** Why a rule may not rewrite here. */
  rule(rule: Rule, site: RuleSite): Refusal | undefined {
    const kept = site.nodes.map((n) => this.#keptName(n)).find((n) => n !== undefined);
    return kept === undefined || rule.numerics.kind === "exact" ? undefined : this.#refusal(kept, `${rule.name} reassociates`);
  }

  /** Why these nodes may not share a kernel: one of them keeps its type and feeds another. */
  region(nodes: readonly Node[]): Refusal | undefined {
    if (this.#names.size + this.#types.size === 0 || nodes.length < 2) return undefined;
    const inside = new Set(nodes);
    const feeds = nodes.filter((n) => n.outputs.some((v) => v.uses.some((u) => inside.has(u.node))));
    const kept = feeds.map((n) => this.#keptName(n)).find((n) => n !== undefined);
    return kept === undefined ? undefined : this.#refusal(kept, "inside a fused kernel it would stay in float32");
  }

  /** Entries that no node of the model has: names among `nodes`, types by the nodes' types. */
  unmatched(nodes: Iterable<string>): string[] {
    for (const n of nodes) { this.#met.add(n); this.#met.add(`${typePrefix}${this.#typeOf(n) ?? ""}`); }
    return [...this.#names, ...[...this.#types].map((t) => `${typePrefix}${t}`)].filter((e) => !this.#met.has(e));
  }

  /** The original node behind this one that keeps a type which fusion would widen. */
  #keptName(node: Node): string | undefined {
    if (!node.outputs.some((v) => widened.includes(v.type.dtype))) return undefined;
    return node.origins.find((o) => this.#names.has(o) || this.#types.has(this.#typeOf(o) ?? ""));
  }

  #refusal(node: string, why: string): Refusal {
    return refuse("keeps-dtype", `the result of '${node}' keeps its element type; ${why}`, `leave '${node}' out of keep_dtype`);
  }
}
