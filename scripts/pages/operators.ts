/** docs/operators.md: every operator, how it runs and since when. */
import type { OpDef } from "../../src/graph/op.ts";

const domainName = (domain: string): string => (domain === "" ? "ai.onnx" : domain);

function execution(op: OpDef): string {
  if (op.whole || op.anchor) return op.lowerable ? "kernel, some forms on the host" : "kernel";
  if (op.lower) return op.lowerable ? "kernel, some forms on the host" : "kernel";
  return op.evaluate ? "host" : "control flow";
}

export function operatorsPage(operators: readonly OpDef[]): string {
  const sorted = [...operators].sort((a, b) => (a.domain === b.domain ? (a.type < b.type ? -1 : 1) : a.domain < b.domain ? -1 : 1));
  const kernels = sorted.filter((op) => execution(op).startsWith("kernel")).length;
  const lines = [
    "# Operators",
    "",
    `Generated from the operator definitions by \`npm run generate\`. ${sorted.length} operators, ${kernels} of them compiled to kernels. Older spellings, from opset 7 on, are brought to the form of the version named here when a model is read.`,
    "",
    "*Host* operators run their naive evaluation, loaded when first needed, on the same memory. They are right and slow; `onnxfuse inspect` lists those a model uses with their share of its time.",
    "",
    "| operator | domain | form since opset | inputs | attributes | runs as | fuses as |",
    "|---|---|---|---|---|---|---|",
  ];
  for (const op of sorted) {
    const inputs = Object.entries(op.inputs).map(([n, k]) => (k === "required" ? n : k === "optional" ? `${n}?` : `${n}…`)).join(", ");
    lines.push(`| ${op.type} | ${domainName(op.domain)} | ${op.since} | ${inputs} | ${Object.keys(op.attributes).join(", ")} | ${execution(op)} | ${op.fusionKind} |`);
  }
  return `${lines.join("\n")}\n`;
}
