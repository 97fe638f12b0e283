/** Bytes that each kernel moves, before and after, and the memory plan as a map of lifetimes. */
import { bytesText, colourOf, html, svg } from "./elements.ts";
import type { PageData } from "./page-data.ts";

/** Kernels by what they moved before, most first. `onChoose` is told of the step that is clicked. */
export function trafficChart({ steps, sizes }: PageData, onChoose: (step: number) => void): HTMLElement {
  const rows = steps.flatMap((s, step) => (s.traffic ? [{ step, kind: s.kind, ...s.traffic }] : [])).sort((a, b) => b.before - a.before);
  const most = Math.max(1, ...rows.map((r) => r.before));
  const total = (key: "before" | "after"): number => rows.reduce((n, r) => n + r[key], 0);
  const share = (n: number): string => `width:${((100 * n) / most).toFixed(2)}%`;
  const given = Object.entries(sizes).map(([name, size]) => `${name} = ${size}`).join(", ");
  return html("section", { class: "chart", id: "traffic" },
    html("h2", {}, `Traffic of kernels: ${bytesText(total("before"))} before fusion, ${bytesText(total("after"))} after`),
    html("p", { class: "soft" }, `Bytes read and written in one run, without weights; grey before, coloured after. ${given === "" ? "" : `With ${given}; other sizes are taken for 64.`}`),
    ...rows.map((r) => {
      const row = html("div", { class: "row", title: `${r.kind}: ${r.before} bytes before, ${r.after} after, weights ${r.weights}` }, html("span", {}, r.kind),
        html("div", {}, html("i", { style: share(r.before) }), html("i", { style: `${share(r.after)};background:${colourOf(r.step)}` })), html("span", { class: "soft" }, `${bytesText(r.before)} → ${bytesText(r.after)}`));
      row.addEventListener("click", () => { onChoose(r.step); });
      return row;
    }));
}

/** Kernels by what they took before, most first; undefined where nothing was timed. */
export function timeChart({ steps }: PageData, onChoose: (step: number) => void): HTMLElement | undefined {
  const rows = steps.flatMap((s, step) => (s.time ? [{ step, kind: s.kind, ...s.time }] : [])).sort((a, b) => b.before - a.before);
  if (rows.length === 0) return undefined;
  const most = Math.max(...rows.flatMap((r) => [r.before, r.after])), text = (key: "before" | "after"): string => rows.reduce((n, r) => n + r[key], 0).toFixed(3);
  const share = (n: number): string => `width:${((100 * n) / most).toFixed(2)}%`;
  return html("section", { class: "chart", id: "time" },
    html("h2", {}, `Time of kernels: ${text("before")} ms before fusion, ${text("after")} ms after`),
    html("p", { class: "soft" }, "The least of five runs on random inputs, each kernel called on its own; grey before, coloured after."),
    ...rows.map((r) => {
      const row = html("div", { class: "row" }, html("span", {}, r.kind), html("div", {}, html("i", { style: share(r.before) }), html("i", { style: `${share(r.after)};background:${colourOf(r.step)}` })),
        html("span", { class: "soft" }, `${r.before.toFixed(3)} → ${r.after.toFixed(3)} ms`));
      row.addEventListener("click", () => { onChoose(r.step); });
      return row;
    }));
}

/** Blocks of the arena: address upwards, steps to the right. */
export function memoryMap({ memory }: PageData): HTMLElement {
  const { blocks, arena, lowerBound, weights } = memory;
  const section = html("section", { class: "chart", id: "memory" }, html("h2", {}, `Memory: ${blocks.length === 0 ? "" : `arena ${bytesText(arena)}, at least ${bytesText(lowerBound)} needed; `}weights ${bytesText(weights)}`));
  if (blocks.length === 0) {
    section.append(html("p", { class: "soft" }, "Addresses are chosen when the sizes are known: give them with --dim or --shape for a map."));
    return section;
  }
  const low = Math.min(...blocks.map((b) => b.at)), high = Math.max(...blocks.map((b) => b.at + b.bytes)), steps = Math.max(...blocks.map((b) => b.last)) + 1;
  const width = 560, height = 420, left = 56, top = 8;
  const across = (step: number): number => left + ((width - left) * step) / steps, up = (at: number): number => top + (height * (high - at)) / Math.max(1, high - low);
  const map = svg("svg", { class: "map", viewBox: `0 0 ${width} ${height + 30}`, width: "100%" });
  for (const [i, b] of blocks.entries()) {
    map.append(svg("rect", { x: across(b.first), y: up(b.at + b.bytes), width: Math.max(1, across(b.last + 1) - across(b.first)), height: Math.max(0.5, up(b.at) - up(b.at + b.bytes)), fill: colourOf(i) },
      svg("title", {}, `${b.name}: ${b.bytes} bytes at ${b.at}, alive from step ${b.first} to ${b.last}`)));
  }
  map.append(svg("text", { x: 2, y: top + 10 }, bytesText(high - low)), svg("text", { x: 2, y: top + height }, "0"), svg("text", { x: left, y: top + height + 16 }, `step 0 to ${steps - 1}`));
  section.append(html("p", { class: "soft" }, "Address upwards, steps to the right: a block is as wide as it lives."), map);
  return section;
}
