/**
 * Small graphs for the rows of the catalogue of fusions, each by its row: compiled from a file of the newest opset with
 * fusion on, it takes the calls that are stated, the rules fire that are named, and on awkward values it gives what the
 * reference interpreter gives. A graph on which something must not fuse says which rule must stay away.
 */
import { describe, expect, test } from "vitest";
import { row, type CatalogueSection } from "../../scripts/pages/catalogue.ts";
import { compileModel } from "../../src/compiler/compile.ts";
import { evaluateDim } from "../../src/core/dim.ts";
import { isFloat, type DType } from "../../src/core/dtype.ts";
import { fromNumbers, sizeOf, type Tensor } from "../../src/core/tensor.ts";
import { GraphBuilder } from "../../src/graph/build.ts";
import type { Graph, Value } from "../../src/graph/graph.ts";
import { countNodes } from "../../src/passes/ledger.ts";
import type { ModelInfo } from "../../src/onnx/model-info.ts";
import { newestOpset } from "../../src/onnx/operators.ts";
import { writeModel } from "../../src/onnx/write.ts";
import { interpret } from "../../src/reference/interpret.ts";
import { reassociates } from "../../src/rewrite/rule.ts";
import { load, Tensor as RuntimeTensor } from "../../src/runtime/index.ts";
import { randomFrom, type Random } from "./random.ts";
import { difference } from "./rule-check.ts";

export type Build = (b: GraphBuilder) => Value | readonly Value[];
/** What inputs may hold; those a case leaves out are outside what its original promises anything for. */
export type Kind = "normal" | "negative" | "zero" | "large" | "tiny" | "special";
export interface Case {
  /** Kernels, host operators and copies that remain. */
  readonly calls: number;
  readonly build: Build;
  readonly fires: readonly string[];
  readonly never: readonly string[];
  /** Nodes that the graph has left before partition, where that is what the row is about. */
  readonly nodes?: number;
  /** Of the largest element. Default 3e-5. */
  readonly bound?: number;
  /** Approximations are allowed. */
  readonly loose?: true;
  readonly without?: readonly Kind[];
}
type Settings = Pick<Case, "bound" | "without">;
const isList = <T>(x: T | readonly T[]): x is readonly T[] => Array.isArray(x);
const list = (names: string | readonly string[]): readonly string[] => (isList(names) ? names : [names]);

/** Takes so many calls, by these rules if any are named. */
export const fuses = (calls: number, build: Build, fires: string | readonly string[] = [], settings: Settings = {}): Case => ({ calls, build, fires: list(fires), never: [], ...settings });
/** As `fuses`, where approximations are allowed; without that the rules stay away. */
export const fusesLoosely = (calls: number, build: Build, fires: string | readonly string[], settings: Settings = {}): Case => ({ ...fuses(calls, build, fires, { without: ["special"], ...settings }), loose: true });
/** Takes so many calls, and these rules must not fire. */
export const keeps = (calls: number, build: Build, never: string | readonly string[] = [], settings: Settings = {}): Case => ({ calls, build, fires: [], never: list(never), ...settings });

/** Of its nodes so many are left, in so many calls. */
export const leaves = (nodes: number, calls: number, build: Build, settings: Settings = {}): Case => ({ ...fuses(calls, build, [], settings), nodes });

/** Cases by their row of the catalogue, then by what they are. */
export type Cases = Readonly<Record<string, Readonly<Record<string, Case>>>>;

/** Tests all cases; rows that nothing carries out need only stand on the page. */
export function testCatalogue(section: CatalogueSection, cases: Cases, notDone: readonly string[] = []): void {
  test("every row of these is on the page", () => expect(strangers(section, [...Object.keys(cases), ...notDone])).toEqual([]));
  describe.each(Object.entries(cases))("%s", (_, own) => {
    test.each(Object.entries(own))("%s", async (__, c) => {
      const found = await outcomeOf(c);
      const { calls, fires, never, nodes = found.nodes } = c;
      expect(found, found.steps).toMatchObject({ nodes, calls, fired: expect.arrayContaining([...fires]) as readonly string[], wrong: [] });
      expect(found.fired.filter((rule) => never.includes(rule))).toEqual([]);
      if (c.loose) expect(compileModel(modelOf(c.build)).report.sites.filter((s) => s.outcome === "fired" && fires.includes(s.name))).toEqual([]);
    });
  });
}
/** Rows that a section does not have. */
export const strangers = ({ rows }: CatalogueSection, named: readonly string[]): readonly string[] => named.filter((name) => !rows.some((r) => r.what === name));

export interface Outcome {
  readonly nodes: number;
  readonly calls: number;
  readonly fired: readonly string[];
  /** Where results differ from the interpreter's. */
  readonly wrong: readonly string[];
  /** For messages. */
  readonly steps: string;
}
/** Compiles and runs a case; `expected` is the graph whose results it must have. */
export async function outcomeOf({ build, loose, bound = 3e-5, without = [] }: Case, expected: Graph = graphOf(build)): Promise<Outcome> {
  let nodes = 0;
  const { artifact, report } = compileModel(modelOf(build), { ...(loose ? { allowApproximate: true } : {}), onStage: (s) => { if (s.name === "partitioned") nodes = countNodes(s.graph); } });
  const session = await load(artifact), wrong: string[] = [];
  try {
    for (const kind of Object.keys(elements) as Kind[]) for (const size of [1, 3]) {
      if (without.includes(kind)) continue;
      const feeds = feedsFor(expected, kind, size), results = await session.run(Object.fromEntries(Object.entries(feeds).map(([name, t]) => [name, RuntimeTensor.of(t)])));
      for (const [name, t] of Object.entries(interpret(expected, feeds))) {
        const actual = results[name], found = actual ? difference(t, actual.unpacked(), reassociates(bound)) : "missing";
        if (found !== undefined) wrong.push(`${name}, ${kind}, ${size}: ${found}`);
      }
    }
  } finally {
    session.dispose();
  }
  const fired = [...new Set(report.sites.filter((s) => s.kind === "rule" && s.outcome === "fired").map((s) => s.name))];
  const refused = report.sites.filter((s) => s.outcome === "refused").map((s) => `${s.name}: ${s.code}`);
  return { nodes, calls: report.nodes.compiled, fired, wrong, steps: `${report.traffic.map((t) => `${t.region}(${t.nodes.join(" ")})`).join(", ")}; refused: ${refused.join(", ")}` };
}

export function graphOf(build: Build): Graph {
  const b = new GraphBuilder(), y = build(b);
  return b.build(...(isList(y) ? y : [y]));
}
const info: ModelInfo = {
  irVersion: 10, opsets: new Map([["", newestOpset], ["com.microsoft", 1], ["ai.onnx.ml", 4]]), producerName: "", producerVersion: "", domain: "", modelVersion: 0, docString: "",
  name: "catalogue", metadata: {}, originalNodes: 0, variants: 1, nodeTypes: new Map(), agreements: [], warnings: [],
};
const modelOf = (build: Build): Uint8Array => writeModel(graphOf(build), info);

const specials = [NaN, Infinity, -Infinity, -0, 0, 1];
const elements: Readonly<Record<Kind, (random: Random) => number>> = {
  normal: (random) => random.normal(), negative: (random) => -Math.abs(random.normal()), zero: () => 0, large: (random) => (random() < 0.5 ? -1e4 : 1e4),
  tiny: (random) => 1e-40 * random.normal(), special: (random) => (random() < 0.2 ? random.pick(specials) : random.normal()),
};
const range: Readonly<Partial<Record<DType, readonly [low: number, count: number]>>> = { uint8: [0, 256], int8: [-128, 256] };
/** Integers other than bytes are 0 or 1, so that they may be indices. */
function feedsFor(graph: Graph, kind: Kind, size: number): Readonly<Record<string, Tensor>> {
  const random = randomFrom(size + 7);
  return Object.fromEntries(graph.inputs.map(({ name, type: { dtype, shape } }) => {
    const dims = shape.map((d) => evaluateDim(d, () => size)), [low, count] = range[dtype] ?? [0, 2];
    return [name, fromNumbers(dtype, dims, Array.from({ length: sizeOf(dims) }, () => (isFloat(dtype) ? elements[kind](random) : low + random.int(count))))];
  }));
}

/** A row for tests of the tests. */
export const sectionOf = (...names: readonly string[]): CatalogueSection => ({ title: "a section", rows: names.map((name) => row(name, "none", "a reason")) });
