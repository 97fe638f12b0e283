/**
 * Loop: runs a subgraph a number of times, or while a condition holds, carrying values around and stacking others.
 * The body's inputs are the iteration number, the condition, and the carried values; its results the next condition,
 * the next carried values, and one slice of each stacked result.
 */
import { formatContainer, isUnranked, mapSizes, sizesIn } from "../core/container.ts";
import { symbolsOf, type Dim } from "../core/dim.ts";
import { containerType, withoutElements } from "../graph/container-type.ts";
import { captures, type Graph } from "../graph/graph.ts";
import { defineOp, required, type InferContext, type TypeInfo } from "../graph/op.ts";
import { joinTypes } from "./if.ts";

export const Loop = defineOp({
  type: "Loop", domain: "", since: 25,
  inputs: { M: "optional", cond: "optional", v_initial: "variadic" },
  attributes: { body: required("graph") },
  fusionKind: "opaque", containers: true, anyRank: true,
  infer({ M, cond, v_initial }, { body }, context) {
    if (M && M.dtype !== "int64") context.fail("OF3101", `the trip count must be int64, got ${M.dtype}`);
    if (cond && cond.dtype !== "bool") context.fail("OF3101", `the condition must be bool, got ${cond.dtype}`);
    if (body.outputs.length < v_initial.length + 1) context.fail("OF3102", `the body gives ${body.outputs.length} results to ${v_initial.length} carried values`);
    const outer = symbolsAround(body, v_initial);
    const results = body.outputs.slice(1).map((v) => outsideType(v.type, outer, context));
    const trips = context.fresh("iterations");
    return results.map((type, i) => {
      const initial = v_initial[i];
      if (initial) return joinTypes(withoutElements(initial), type, `output_${i}`, context);
      if (isUnranked(type)) return type;
      if (type.container) context.fail("OF3017", `a ${formatContainer(type.container)} cannot be stacked`, "carry it around the loop, and insert into a sequence");
      return { dtype: type.dtype, shape: [trips, ...type.shape] };
    });
  },
});

/** Symbols that mean something around a body: those of what it is given and what it captures. */
export function symbolsAround(body: Graph, given: readonly TypeInfo[]): ReadonlySet<string> {
  const out = new Set<string>();
  for (const type of [...given, ...captures(body).map((v) => v.type)]) for (const d of [...type.shape, ...(type.container ? sizesIn(type.container) : [])]) symbolsOf(d, out);
  return out;
}

/** A result's type as seen from outside the body: sizes that only the body knows become fresh symbols; elements are not known. */
export function outsideType(type: TypeInfo, outer: ReadonlySet<string>, context: InferContext): TypeInfo {
  const seen = (d: Dim): boolean => [...symbolsOf(d)].every((s) => outer.has(s));
  if (type.container) return containerType(mapSizes(type.container, (d) => (seen(d) ? d : null)));
  const shape = type.shape.map((d, axis): Dim => (seen(d) ? d : context.fresh(`result_${axis}`)));
  return { dtype: type.dtype, shape };
}
