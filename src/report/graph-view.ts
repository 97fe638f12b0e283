/** One graph as boxes and edges, laid out by dagre; it pans, zooms, opens groups, and shows what is found or chosen. */
import { Graph as LayoutGraph, layout } from "@dagrejs/dagre";
import { boxesOf, suited, type Boxes, type Collapse } from "./collapse.ts";
import { colourOf, html, svg } from "./elements.ts";
import type { PageGraph } from "./page-data.ts";

/** A box as it was laid out: its middle and size. */
interface Place { readonly x: number; readonly y: number; readonly width: number; readonly height: number }

export interface GraphView {
  readonly element: HTMLElement;
  /** Marks nodes, opens what hides the first, and brings that into view. */
  show(nodes: readonly number[], mark: "found" | "chosen"): void;
}

/** `onChoose` is told of the nodes of a box that is clicked. */
export function graphView(title: string, graph: PageGraph, nameOf: (step: number) => string, onChoose: (nodes: readonly number[]) => void): GraphView {
  let collapse: Collapse = suited(graph), drawn: Boxes = { boxes: [], edges: [], boxOf: [] };
  let places: readonly Place[] = [], elements: readonly SVGGElement[] = [];
  let x = 0, y = 0, scale = 1;
  const open = new Set<string>(), marks = { found: new Set<number>(), chosen: new Set<number>() };
  const world = svg("g"), canvas = svg("svg", {}, world);
  const select = html("select", { "aria-label": `collapse ${title}` }, ...(["nodes", "steps", "blocks"] as const).map((c) => html("option", { value: c }, { nodes: "every node", steps: "by kernel", blocks: "by repeated block" }[c])));
  select.value = collapse;
  const element = html("section", { class: "pane" }, html("div", { class: "bar" }, html("b", {}, title), select), canvas);

  const move = (): void => { world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`); };
  const centre = (place: Place): void => {
    const { width, height } = canvas.getBoundingClientRect();
    x = width / 2 - place.x * scale; y = height / 2 - place.y * scale;
    move();
  };
  const mark = (): void => elements.forEach((e, b) => {
    for (const name of ["found", "chosen"] as const) e.classList.toggle(name, drawn.boxes[b]?.nodes.some((n) => marks[name].has(n)) ?? false);
  });
  const draw = (): void => {
    drawn = boxesOf(graph, collapse, open, nameOf);
    const placed = laidOut(drawn);
    places = placed.places;
    elements = drawn.boxes.map((box, b) => {
      const place = places[b] ?? { x: 0, y: 0, width: 0, height: 0 };
      const g = svg("g", { class: box.key === undefined ? "node" : "node group", transform: `translate(${place.x - place.width / 2} ${place.y - place.height / 2})` },
        svg("rect", { width: place.width, height: place.height, fill: colourOf(box.step) }), svg("text", { x: place.width / 2, y: place.height / 2 + 4 }, box.label),
        svg("title", {}, box.nodes.slice(0, 12).map((n) => graph.nodes[n]?.name ?? "").join("\n")));
      g.addEventListener("click", () => { onChoose(box.nodes); });
      g.addEventListener("dblclick", () => {
        const { key } = box, [first = 0] = box.nodes;
        if (key === undefined) { for (const k of [...open]) if (keyOf(first) === k) open.delete(k); } else open.add(key);
        draw();
        const at = places[drawn.boxOf[first] ?? 0];
        if (at) centre(at);
      });
      return g;
    });
    world.replaceChildren(...placed.lines.map((d) => svg("path", { class: "edge", d })), ...elements);
    mark();
  };
  const keyOf = (node: number): string => `${collapse} ${(collapse === "blocks" ? graph.nodes[node]?.block : graph.nodes[node]?.step) ?? ""}`;
  select.addEventListener("change", () => {
    const chosen = (["nodes", "steps", "blocks"] as const).find((c) => c === select.value);
    if (chosen) collapse = chosen;
    open.clear();
    draw();
    if (places[0]) centre(places[0]);
  });
  canvas.addEventListener("wheel", (e) => {
    e.preventDefault();
    const box = canvas.getBoundingClientRect(), px = e.clientX - box.left, py = e.clientY - box.top;
    const next = Math.min(4, Math.max(0.03, scale * Math.exp(-e.deltaY / 500)));
    x = px - ((px - x) / scale) * next; y = py - ((py - y) / scale) * next; scale = next;
    move();
  }, { passive: false });
  canvas.addEventListener("pointerdown", (e) => {
    const from = { x: e.clientX - x, y: e.clientY - y };
    const drag = (m: PointerEvent): void => { x = m.clientX - from.x; y = m.clientY - from.y; move(); };
    window.addEventListener("pointermove", drag);
    window.addEventListener("pointerup", () => { window.removeEventListener("pointermove", drag); }, { once: true });
  });
  draw();
  requestAnimationFrame(() => {
    const first = places[0];
    if (!first) return;
    x = canvas.getBoundingClientRect().width / 2 - first.x; y = 60 - first.y;
    move();
  });
  return {
    element,
    show(nodes, name) {
      marks[name] = new Set(nodes);
      const [first] = nodes;
      if (first !== undefined && name === "found" && drawn.boxes[drawn.boxOf[first] ?? 0]?.key !== undefined) { open.add(keyOf(first)); draw(); }
      mark();
      const at = first === undefined ? undefined : places[drawn.boxOf[first] ?? 0];
      if (at) centre(at);
    },
  };
}

const lineHeight = 24, letter = 6.6;

function laidOut({ boxes, edges }: Boxes): { readonly places: readonly Place[]; readonly lines: readonly string[] } {
  const g = new LayoutGraph();
  // The network simplex gives shorter edges, and takes too long for thousands of boxes.
  g.setGraph({ rankdir: "TB", ranksep: 26, nodesep: 16, ranker: boxes.length > 250 ? "longest-path" : "network-simplex" });
  g.setDefaultEdgeLabel(() => ({}));
  boxes.forEach((box, i) => g.setNode(String(i), { width: Math.max(50, box.label.length * letter + 16), height: box.key === undefined ? lineHeight : lineHeight * 1.5 }));
  for (const [from, to] of edges) g.setEdge(String(from), String(to));
  layout(g);
  const number = (n: unknown): number => (typeof n === "number" ? n : 0);
  const places = boxes.map((_, i): Place => { const n = g.node(String(i)); return { x: number(n.x), y: number(n.y), width: number(n.width), height: number(n.height) }; });
  const lines = g.edges().map((e: { readonly v: string; readonly w: string }) => {
    const { points = [] } = g.edge(e) as { readonly points?: readonly { readonly x: number; readonly y: number }[] };
    return points.map((p, i) => `${i === 0 ? "M" : "L"}${p.x.toFixed(1)} ${p.y.toFixed(1)}`).join("");
  });
  return { places, lines };
}
