/** The report page's script: both graphs side by side, details, search, charts. Needs nothing but the page it is in. */
import { memoryMap, timeChart, trafficChart } from "./charts.ts";
import { details } from "./details.ts";
import { html } from "./elements.ts";
import { graphView } from "./graph-view.ts";
import type { PageData, PageNode } from "./page-data.ts";

function show(data: PageData): void {
  const side = html("aside", { id: "details" });
  const nameOf = (step: number): string => data.steps[step]?.kind ?? "";
  const originsOf = (n: PageNode, inAfter: boolean): readonly string[] => (inAfter ? data.steps[n.step ?? -1]?.nodes ?? [] : [n.name]);
  const choose = (nodes: readonly PageNode[], inAfter: boolean): void => {
    side.replaceChildren(...details(data, { nodes, origins: [...new Set(nodes.flatMap((n) => originsOf(n, inAfter)))] }));
    const steps = new Set(nodes.flatMap((n) => (n.step === undefined ? [] : [n.step])));
    const other = inAfter ? before : after, graph = inAfter ? data.before : data.after;
    other.show(graph.nodes.flatMap((n, i) => (n.step !== undefined && steps.has(n.step) ? [i] : [])), "chosen");
  };
  const pick = (nodes: readonly PageNode[], indices: readonly number[]): PageNode[] => indices.flatMap((i) => nodes[i] ?? []);
  const before = graphView(`Before: ${data.original} nodes`, data.before, nameOf, (chosen) => { choose(pick(data.before.nodes, chosen), false); });
  const after = graphView(`After: ${data.compiled} steps`, data.after, nameOf, (chosen) => { choose(pick(data.after.nodes, chosen), true); });
  const search = html("input", { type: "search", placeholder: "search nodes, types, kernels", "aria-label": "search" }), found = html("span", { class: "soft", id: "found" });
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    const matches = (nodes: readonly PageNode[], inAfter: boolean): number[] => nodes.flatMap((n, i) => (wanted !== "" && [n.name, n.type, ...originsOf(n, inAfter)].some((t) => t.toLowerCase().includes(wanted)) ? [i] : []));
    const inBefore = matches(data.before.nodes, false), inAfter = matches(data.after.nodes, true);
    before.show(inBefore, "found");
    after.show(inAfter, "found");
    found.textContent = wanted === "" ? "" : `${inBefore.length} before, ${inAfter.length} after`;
    if (inBefore.length === 1) choose(pick(data.before.nodes, inBefore), false);
  });
  side.replaceChildren(...details(data, { nodes: [], origins: [] }));
  const refused = data.sites.filter((s) => s.outcome === "refused").length;
  const chooseStep = (step: number): void => {
    choose(data.after.nodes.filter((n) => n.step === step), true);
    after.show(data.after.nodes.flatMap((n, i) => (n.step === step ? [i] : [])), "found");
  };
  const time = timeChart(data, chooseStep);
  document.body.append(
    html("header", {}, html("h1", {}, data.model), html("span", { class: "soft" }, `${data.original} nodes → ${data.compiled} steps, ${data.sites.length - refused} sites fused, ${refused} refused`), search, found),
    html("main", {}, before.element, after.element, side),
    html("div", { class: "charts" }, trafficChart(data, chooseStep), memoryMap(data), ...(time ? [time] : [])),
  );
}

show(JSON.parse(document.getElementById("data")?.textContent ?? "{}") as PageData);
