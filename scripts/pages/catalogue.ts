/** The field's fusions, row by row: what does each here, or why nothing does. Data of the catalogue in docs/fusions.md. */

/**
 * `rule`: the rules named. `simplified`: inference, folding, canonical spelling or elimination. `partition`: it is one
 * kernel, without a rule. `kernel`: how an operator's kernel is built. `operator`: read as an operator, or taken apart by
 * its definition. `layout`: placements and strides. `missing`: not done yet. `none`: it does not apply.
 */
export type Means = "rule" | "simplified" | "partition" | "kernel" | "operator" | "layout" | "missing" | "none";
export interface CatalogueRow {
  readonly what: string;
  readonly means: Means;
  /** For `rule`: their names. */
  readonly rules?: readonly string[];
  /** How, with its limits; for `missing` and `none` the reason. */
  readonly note: string;
}
export interface CatalogueSection { readonly title: string; readonly rows: readonly CatalogueRow[] }

/** One row; rules by name for `rule`. */
export const row = (what: string, means: Means, note: string, ...rules: readonly string[]): CatalogueRow => ({ what, means, note, rules });

/** The sections as tables of Markdown. */
export function cataloguePage(sections: readonly CatalogueSection[]): string[] {
  const lines = ["", "## Catalogue", "", "The fusions of the field, and what does each here: a rule, simplification (inference, folding, one spelling, elimination), partition (one kernel without a rule), a kernel's own loops, an operator, or placement in memory. Where nothing does, the reason."];
  for (const { title, rows } of sections) {
    lines.push("", `### ${title}`, "", "| fusion | by | how |", "|---|---|---|");
    for (const { what, means, rules = [], note } of rows)
      lines.push(`| ${cell(what)} | ${means === "rule" ? rules.map((r) => `\`${r}\``).join(", ") : means === "none" ? "does not apply" : means} | ${cell(note)} |`);
  }
  return lines;
}
const cell = (text: string): string => text.replaceAll("|", "\\|");
