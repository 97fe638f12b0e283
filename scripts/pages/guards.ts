/** The guards that hold for every fusion, with the codes of their refusals. Data of docs/fusions.md; tested in test/guards.test.ts. */

export interface UniversalGuard {
  /** Its number in the field's catalogue. */
  readonly id: string;
  readonly holds: string;
  /** Codes of refusals, or, where no fusion is asked, of what the reader and the writer say. */
  readonly codes: readonly string[];
  readonly how?: string;
}

const guard = (id: string, holds: string, codes: readonly string[], how?: string): UniversalGuard => ({ id, holds, codes, ...(how === undefined ? {} : { how }) });

export const universalGuards: readonly UniversalGuard[] = [
  guard("U1", "nobody else reads an inner value, from a subgraph neither", ["interior-value-used", "captured-by-subgraph"], "in partition such a value is stored as well"),
  guard("U2", "an inner value is no result", ["graph-output"]),
  guard("U3", "a constant is one", ["overridable-initializer", "not-constant"]),
  guard("U4", "a weight is copied, never changed, and a large one that others read is not copied", ["shared-weight"]),
  guard("U5", "what the model's opset does not have is not written", [], "it is written as the operators it consists of; what has none is refused with OF2080"),
  guard("U6", "a folded constant keeps its value", ["precision-loss", "not-finite", "scale-range"]),
  guard("U7", "the result keeps its shape, by proof over symbolic sizes", ["shape-grows"]),
  guard("U8", "no further result of a node is in use", ["graph-output", "interior-value-used"]),
  guard("U9", "nothing trains, and nothing is random", ["batch-norm-training", "non-deterministic-between"]),
  guard("U10", "integers are not taken for reals", ["dtype"]),
  guard("U11", "NaN, infinities and overflow stay where they were", ["approximate"]),
  guard("U12", "no path leaves a group and comes back", ["residual-cycle"]),
  guard("U13", "nothing moves into or out of a branch", ["outside-subgraph"]),
  guard("U14", "attributes mean what they do at the model's opset", ["softmax-axis"], "every operator is read into its newest form first"),
  guard("U15", "nothing is quantised in between", ["quantized-between"]),
  guard("U16", "results keep names, order and types", ["graph-output"], "and every original node has a fate in the report"),
  guard("U17", "results stay within the rule's numerics", ["verification-failed"], "with `--verify`"),
  guard("U18", "a folded constant is not larger than it is worth", [], "folding leaves the node, at 64 MB or what its inputs have"),
  guard("U19", "there is a kernel for the element type", ["dtype"], "fused regions are lowered for every type; an operator without a kernel runs alone"),
  guard("U20", "an operator of another domain is not the one of that name", ["OF2052"], "attributes that an operator does not know are named in a warning"),
];

/** The table of them. */
export function guardsPage(): string[] {
  const lines = ["", "## Guards of every fusion", "", "| | a fusion fires only where | refused as |", "|---|---|---|"];
  for (const { id, holds, codes, how } of universalGuards) lines.push(`| ${id} | ${holds} | ${[codes.map((c) => `\`${c}\``).join(", "), how].filter((t) => t !== undefined && t !== "").join("; ")} |`);
  return lines;
}
