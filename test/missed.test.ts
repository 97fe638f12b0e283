/**
 * What `explain --missed` lists on the real models: nothing that nothing can be done about; and for the first three of
 * each, the model changed as the remedy says makes that site fire.
 */
import { toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { fuseModel } from "../src/compiler/compile.ts";
import { missedOf, withCosts } from "../src/compiler/accounts/missed.ts";
import type { CompileOptions } from "../src/compiler/options.ts";
import type { Graph, Value } from "../src/graph/graph.ts";
import type { TypeInfo } from "../src/graph/op.ts";
import { decodeModel } from "../src/onnx/decode.ts";
import { ModelProtoSchema, type ModelProto } from "../src/onnx/schema/onnx_pb.ts";
import { writeType } from "../src/onnx/type-proto.ts";
import type { Site } from "../src/rewrite/site.ts";
import { caseIds, loadCase } from "./support/cases.ts";

/** The model, its nodes named, so that sites say which they are. */
function named(bytes: Uint8Array): ModelProto {
  const model = decodeModel(bytes);
  model.graph?.node.forEach((n, i) => { if (n.name === "") n.name = `node ${i}`; });
  return model;
}
interface Fused { readonly sites: readonly Site[]; readonly types: ReadonlyMap<string, TypeInfo> }
function fused(model: ModelProto, options: CompileOptions = {}): Fused {
  const types = new Map<string, TypeInfo>();
  const note = (graph: Graph): void => { for (const v of [...graph.inputs, ...graph.nodes.flatMap((n): readonly Value[] => n.outputs)]) types.set(v.name, v.type); };
  const { sites, regions } = fuseModel(toBinary(ModelProtoSchema, model), { ...options, onStage: (s) => { if (s.name === "read") note(s.graph); } }, true);
  return { sites: withCosts(sites, regions), types };
}

/** The options, or the model, changed as a remedy says; undefined for a remedy of a kind that this does not know. */
function applied(site: Site, bytes: Uint8Array, types: Fused["types"]): { readonly model: ModelProto; readonly options: CompileOptions } | undefined {
  const model = named(bytes), remedy = site.remedy ?? "";
  const options: CompileOptions = { ...(remedy.includes("--allow_approximate") ? { allowApproximate: [site.name] } : {}), ...(remedy.includes("--freeze_initializers") ? { freezeInitializers: true } : {}) };
  const elsewhere = /^use '(.*)' nowhere else/.exec(remedy)?.[1] ?? (remedy.startsWith("remove the other use") ? /^'(.*?)', the output/.exec(site.reason ?? "")?.[1] : undefined);
  const removed = /^remove '(.*)' from the graph's outputs/.exec(remedy)?.[1] ?? elsewhere;
  if (removed !== undefined) return useNowhereElse(model, removed, site.nodes, types) ? { model, options } : undefined;
  return Object.keys(options).length > 0 ? { model, options } : undefined;
}

/** Other nodes read an input of the same type instead of a value, which is no result any more. */
function useNowhereElse({ graph }: ModelProto, value: string, nodes: readonly string[], types: Fused["types"]): boolean {
  const type = types.get(value), other = `${value} elsewhere`;
  if (!graph || !type) return false;
  let changed = false;
  for (const node of graph.node.filter((n) => !nodes.includes(n.name)))
    node.input.forEach((name, i) => { if (name === value) { node.input[i] = other; changed = true; } });
  if (changed) graph.input.push(writeType(other, { dtype: type.dtype, shape: type.shape }));
  const results = graph.output.length;
  graph.output = graph.output.filter((o) => o.name !== value);
  return changed || graph.output.length < results;
}

const ids = caseIds();
test.skipIf(ids.length > 0)("set ONNXFUSE_TEST_DATA to run the real models", ({ skip }) => skip());
let tried = 0;
describe.each(ids)("%s", { timeout: 300_000 }, (id) => {
  test("what was missed can be had", () => {
    const { bytes } = loadCase(id), before = fused(named(bytes)), missed = missedOf(before, {});
    for (const { site } of missed) expect(site.remedy).toMatch(/^(?!none|nothing)./);
    for (const { site } of missed.slice(0, 3)) {
      const change = applied(site, bytes, before.types);
      if (!change) { expect.unreachable(`no way to do '${site.remedy}' (${site.name} at ${site.at})`); continue; }
      const fires = ({ sites }: Fused): boolean => sites.some((s) => s.outcome === "fired" && s.kind === site.kind && (s.kind === "rule" ? s.name === site.name && s.at === site.at : site.nodes.every((n) => s.nodes.includes(n))));
      expect(fires(before)).toBe(false);
      tried++;
      expect(fires(fused(change.model, change.options)), `${site.name} at ${site.at}: ${site.reason}; ${site.remedy}`).toBe(true);
    }
  });
});
test.skipIf(ids.length === 0)("there is something to be had", () => expect(tried).toBeGreaterThan(8));
