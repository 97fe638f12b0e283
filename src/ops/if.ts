/** If: runs one of two subgraphs, which read the values around them. Interpreters and lowering run it; there is nothing to evaluate. */
import { formatContainer } from "../core/container.ts";
import { dimEqual, formatShape, type Dim } from "../core/dim.ts";
import { joinHeldTypes, unranked } from "../graph/container-type.ts";
import { chooseDim } from "./element-values.ts";
import type { Graph } from "../graph/graph.ts";
import { typeWithConstant } from "../graph/infer-node.ts";
import { defineOp, required, type InferContext, type TypeInfo } from "../graph/op.ts";

export const If = defineOp({
  type: "If", domain: "", since: 25,
  inputs: { cond: "required" },
  attributes: { then_branch: required("graph"), else_branch: required("graph") },
  fusionKind: "opaque", containers: true,
  infer({ cond }, { then_branch, else_branch }, context) {
    if (cond.dtype !== "bool") context.fail("OF3101", `the condition must be bool, got ${cond.dtype}`);
    const taken = knownCondition(cond);
    if (taken !== undefined) return resultTypes(taken ? then_branch : else_branch);
    const yes = resultTypes(then_branch), no = resultTypes(else_branch);
    if (yes.length !== no.length) context.fail("OF3102", `the branches give ${yes.length} and ${no.length} results`);
    const predicate = cond.elements?.[0];
    return yes.map((type, i) => joinBranches(type, no[i] ?? type, `output_${i}`, predicate, context));
  },
});

const describe = ({ dtype, shape, container }: TypeInfo): string => (container ? formatContainer(container) : `${dtype}${formatShape(shape)}`);

/** Whether the condition is known before running. */
export function knownCondition(cond: TypeInfo): boolean | undefined {
  const element = cond.elements?.[0] ?? cond.constant?.data[0];
  return typeof element === "number" ? element !== 0 : undefined;
}

const resultTypes = (graph: Graph): TypeInfo[] => graph.outputs.map(typeWithConstant);

/** As `joinTypes`; where sizes decide, ranks may differ. */
function joinBranches(a: TypeInfo, b: TypeInfo, hint: string, predicate: Dim | undefined, context: InferContext): TypeInfo {
  const rankOf = (type: TypeInfo): Dim => type.rank ?? type.shape.length;
  if (predicate === undefined || a.container || b.container || (a.shape.length === b.shape.length && dimEqual(rankOf(a), rankOf(b)))) return joinTypes(a, b, hint, context);
  const rank = Math.max(a.shape.length, b.shape.length);
  const raised = ({ dtype, shape }: TypeInfo): TypeInfo => ({ dtype, shape: [...Array<Dim>(rank - shape.length).fill(1), ...shape] });
  return { ...joinTypes(raised(a), raised(b), hint, context), rank: chooseDim(predicate, rankOf(a), rankOf(b)) };
}

/** What holds of a value that is one or the other: sizes that differ become fresh symbols, and where ranks differ it is a tensor of any rank. */
export function joinTypes(a: TypeInfo, b: TypeInfo, hint: string, context: InferContext): TypeInfo {
  if (a.container || b.container) {
    const unlike = (): never => context.fail("OF3103", `${hint} is a ${describe(a)} on one path and a ${describe(b)} on the other`);
    return joinHeldTypes(a, b) ?? unlike();
  }
  if (a.dtype !== b.dtype) context.fail("OF3103", `${hint} is ${a.dtype} on one path and ${b.dtype} on the other`);
  if (a.shape.length !== b.shape.length) return unranked(a.dtype);
  const shape = a.shape.map((d, axis): Dim => (dimEqual(d, b.shape[axis] ?? -1) ? d : context.fresh(`${hint}_${axis}`)));
  const rank = a.rank !== undefined && dimEqual(a.rank, b.rank ?? -1) ? { rank: a.rank } : {};
  const same = a.elements && b.elements && a.elements.length === b.elements.length && a.elements.every((d, i) => dimEqual(d, b.elements?.[i] ?? NaN));
  return { dtype: a.dtype, shape, ...rank, ...(same && a.elements ? { elements: a.elements } : {}) };
}
