/** What is known of chosen nodes: origin, types of results, step, traffic, fate, and the sites they take part in. */
import { bytesText, html } from "./elements.ts";
import type { PageData, PageNode } from "./page-data.ts";

export interface Chosen {
  readonly nodes: readonly PageNode[];
  /** Names of the original nodes. */
  readonly origins: readonly string[];
}

const listed = 30;

export function details(data: PageData, { nodes, origins }: Chosen): readonly HTMLElement[] {
  const [only] = nodes;
  if (!only) return [html("p", { class: "soft" }, "Click a node. Double-click a dashed box to open it. The wheel zooms, dragging moves.")];
  const names = new Set(origins);
  const sites = data.sites.filter((s) => s.nodes.some((n) => names.has(n)));
  const fates = data.fates.filter((f) => f.nodes.some((n) => names.has(n)));
  const steps = [...new Set(nodes.flatMap((n) => (n.step === undefined ? [] : [n.step])))];
  return [
    html("h2", {}, nodes.length === 1 ? `${only.type}: ${only.name}` : `${nodes.length} nodes`),
    ...list("Original nodes", origins),
    ...list("Results", nodes.flatMap((n) => n.outputs)),
    ...steps.slice(0, listed).map((i) => stepOf(data, i)),
    ...fates.slice(0, listed).map((f) => html("p", {}, html("b", {}, f.kind), `: ${f.why}`)),
    ...sites.slice(0, listed).map((s) => html("div", { class: s.outcome }, html("b", {}, `${s.name} ${s.outcome}`), ` at ${s.at}${s.code === undefined ? "" : ` [${s.code}]`}`,
      s.reason === undefined ? undefined : html("div", {}, s.reason), s.remedy === undefined ? undefined : html("div", { class: "soft" }, `Remedy: ${s.remedy}`))),
  ];
}

function list(title: string, items: readonly string[]): HTMLElement[] {
  if (items.length === 0) return [];
  const more = items.length - listed;
  return [html("b", {}, title), html("ul", {}, ...items.slice(0, listed).map((i) => html("li", {}, i)), ...(more > 0 ? [html("li", { class: "soft" }, `and ${more} more`)] : []))];
}

function stepOf({ steps }: PageData, i: number): HTMLElement {
  const step = steps[i];
  const bytes = step?.traffic ? `: ${bytesText(step.traffic.before)} moved before, ${bytesText(step.traffic.after)} after, weights ${bytesText(step.traffic.weights)}` : "";
  return html("p", {}, html("b", {}, `Step ${i}, ${step?.execution ?? ""} ${step?.kind ?? ""}`), bytes);
}
