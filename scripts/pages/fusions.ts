/** docs/fusions.md: every rule, as its definition says it. */
import type { Rule } from "../../src/rewrite/rule.ts";
import { stages } from "../../src/rewrite/rule.ts";
import { attention } from "./catalogue-attention.ts";
import { contractions, epilogues } from "./catalogue-contractions.ts";
import { elements } from "./catalogue-elements.ts";
import { movement } from "./catalogue-movement.ts";
import { normalisation } from "./catalogue-normalisation.ts";
import { quantisation } from "./catalogue-quantisation.ts";
import { grouping, wholeGraph } from "./catalogue-whole-graph.ts";
import { cataloguePage } from "./catalogue.ts";
import { guardsPage } from "./guards.ts";
import type { CodedCall } from "./calls.ts";

const numericsOf = ({ numerics: n }: Rule): string =>
  n.kind === "exact" ? "exact" : n.kind === "reassociates" ? `reassociates, within ${n.bound} of the largest output` : `approximates, within ${n.bound}: ${n.why}`;

const stageTitles = { recognise: "Recognising spelled-out functions", fold: "Folding into neighbours", decompose: "Taking apart what could not be folded", merge: "Joining what stands side by side", move: "Moving what is left" } as const;

export function fusionsPage(rules: readonly Rule[], refusals: readonly CodedCall[]): string {
  const lines = [
    "# Fusions",
    "",
    "Generated from the rules by `npm run generate`. Fusion happens in two steps: *rules* rewrite the graph, *partition* then groups what is left into regions, one kernel each. Both record every site they fired at or refused, and why; `onnxfuse explain MODEL` shows that record.",
    "",
    "A rule is switched by its name, or by the name of GE's pass that does the same: `--fusion_switch_file`, or `GE_DISABLE_<NAME>_FUSION=1` with the name in capitals and underscores. A region kind is switched by its own name in the same way (`GE_DISABLE_CONV_BN_RELU_FUSION=1`).",
  ];
  for (const stage of stages) {
    lines.push("", `## ${stageTitles[stage]}`);
    for (const rule of rules.filter((r) => (r.stage ?? "fold") === stage)) {
      lines.push("", `### ${rule.name}`, "", rule.doc.trim(), "", `- Numerics: ${numericsOf(rule)}`);
      if (rule.gePass) lines.push(`- GE's pass: \`${rule.gePass}\``);
      const codes = Object.keys(rule.refuses).sort();
      if (codes.length) lines.push(`- Refuses: ${codes.map((c) => `\`${c}\``).join(", ")}`);
    }
  }
  lines.push("", "## Regions", "", "A region is named by the original operators in it: `ConvBNReLU`, `MatMulAddRelu`, `FlashAttention`, `LayerNormalization`, `FusedElementwise`.");
  lines.push(...cataloguePage([contractions, epilogues, elements, normalisation, attention, movement, quantisation, wholeGraph, grouping]));
  lines.push(...guardsPage());
  lines.push("", "## Refusals", "", "Every reason for which a rule or a region may be refused; `…` stands for names and values.", "", "| code | reason | remedy |", "|---|---|---|");
  lines.push(...refusals.map((r) => `| \`${r.code}\` | ${cell(r.message)} | ${cell(r.hint)} |`));
  return `${lines.join("\n")}\n`;
}

const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ");
