/**
 * Inference for nodes that read tensors whose rank only running tells. Operators say types for known ranks, so each is
 * asked under every rank that such an input may have; what all answers share holds. Where no rank fits, the error is that
 * of a matrix. Nothing is lost by asking too little: when the model runs, results are held against what was said of them.
 */
import { isUnranked, mapSizes, type Container } from "../core/container.ts";
import { DiagnosticError } from "../core/diagnostic.ts";
import { dimEqual, symbol, symbolsOf, type Dim } from "../core/dim.ts";
import { joinHeldTypes, unranked } from "./container-type.ts";
import type { TypeInfo } from "./op.ts";

/** Ranks that are tried: tensors of more axes are next to unknown. */
const mostTried = 8;
/** Two inputs, or the first and all others, may differ in rank. */
const ranks = Array.from({ length: mostTried + 1 }, (_, r) => r);

type Infer = (inputs: readonly (TypeInfo | undefined)[], fresh: (hint: string) => Dim) => readonly TypeInfo[];

/** Whether a node reads a tensor of any rank. */
export const readsAnyRank = (inputs: readonly (TypeInfo | undefined)[]): boolean => inputs.some(isUnranked);

/** What `infer` says of the results under every rank; sizes that differ, or hang on an input's sizes, are `fresh`. */
export function inferAnyRank(inputs: readonly (TypeInfo | undefined)[], infer: Infer, fresh: (hint: string) => Dim): readonly TypeInfo[] {
  const [first] = inputs.flatMap((t, i) => (isUnranked(t) ? [i] : []));
  const several = inputs.filter(isUnranked).length > 1;
  const tried = new Set<string>(), answers: (readonly TypeInfo[])[] = [];
  let refusal: DiagnosticError | undefined;
  for (const own of ranks) for (const others of several ? ranks : [0]) {
    const ranked = inputs.map((t, i) => (t && isUnranked(t) ? { dtype: t.dtype, shape: sizes(`any.${i}`, i === first ? own : others, tried) } : t));
    let made = 0;
    const local = (): Dim => { const name = `any.made_${made++}`; tried.add(name); return symbol(name); };
    try {
      answers.push(infer(ranked, local));
    } catch (error) {
      if (!(error instanceof DiagnosticError)) throw error;
      if (!refusal || (own === 2 && others <= 2)) refusal = error;
    }
  }
  const [some, ...more] = answers;
  if (!some) throw refusal ?? new Error("no rank was tried");
  const count = Math.min(...answers.map((a) => a.length));
  return some.slice(0, count).map((type, i) => more.reduce((joined, answer) => join(joined, answer[i] ?? joined), type)).map((type) => settled(type, tried, fresh));
}

function sizes(name: string, rank: number, tried: Set<string>): Dim[] {
  return Array.from({ length: rank }, (_, axis) => { const own = `${name}_${axis}`; tried.add(own); return symbol(own); });
}

/** What two answers share. Element types differ for no operator that its attributes do not tell; then the first stays. */
function join(a: TypeInfo, b: TypeInfo): TypeInfo {
  if (a.container || b.container) return joinHeldTypes(a, b) ?? a;
  if (a.shape.length !== b.shape.length) return unranked(a.dtype);
  const shape = a.shape.map((d, axis) => (dimEqual(d, b.shape[axis] ?? -1) ? d : differs));
  const same = a.elements?.length === b.elements?.length && a.elements?.every((d, i) => dimEqual(d, b.elements?.[i] ?? -1));
  return { dtype: a.dtype, shape, ...(same && a.elements ? { elements: a.elements } : {}) };
}
/** Stands where answers have different sizes. */
const differs = symbol("any.differs");

/** The type without what was made up to ask. */
function settled(type: TypeInfo, tried: ReadonlySet<string>, fresh: (hint: string) => Dim): TypeInfo {
  const known = (d: Dim): boolean => [...symbolsOf(d)].every((s) => s !== "any.differs" && !tried.has(s));
  if (type.container) return { ...type, container: forget(type.container, known) };
  const { dtype, shape, elements } = type;
  return { dtype, shape: shape.map((d, axis) => (known(d) ? d : fresh(`axis_${axis}`))), ...(elements?.every(known) ? { elements } : {}) };
}
const forget = (c: Container, known: (d: Dim) => boolean): Container => mapSizes(c, (d) => (known(d) ? d : null));
