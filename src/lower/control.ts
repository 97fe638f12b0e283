/**
 * If and Loop → steps. Results lie where the steps after them read: a branch writes its own there where their sizes are
 * the same, and so does each iteration with what it carries; what changes its sizes is handed on by the runtime, which
 * binds them anew.
 */
import { invariant, present } from "../core/assert.ts";
import { isHeld } from "../core/container.ts";
import { shapeEqual } from "../core/dim.ts";
import { Graph, subgraphs, type Node, type Value } from "../graph/graph.ts";
import { typeWithConstant } from "../graph/infer-node.ts";
import type { Region } from "../graph/region.ts";
import type { Buffer } from "../kernel/expr.ts";
import type { Carry, LoopStep, Move, Stack, Step, StepOrigin, Storage } from "../kernel/program.ts";
import type { Places } from "./placement.ts";

/** What control flow needs of the lowering around it. */
export interface ControlContext {
  readonly places: Places;
  steps(regions: readonly Region[]): readonly Step[];
  copy(from: Buffer, to: Buffer, origin: StepOrigin): Step;
  /** Memory for something like `buffer`. */
  temporary(like: Buffer): Buffer;
}

/** The steps of a region with execution "control". */
export function lowerControl(region: Region, origin: StepOrigin, context: ControlContext): readonly Step[] {
  const node = present(region.nodes[0], "control node");
  const regionsOf = (name: string): { readonly graph: Graph; readonly regions: readonly Region[] } | undefined => {
    const graph = node.attributes[name];
    if (!(graph instanceof Graph)) return undefined;
    return { graph, regions: present(region.branches?.[subgraphs(node).indexOf(graph)], `regions of ${name}`) };
  };
  const then = regionsOf("then_branch"), otherwise = regionsOf("else_branch"), body = regionsOf("body");
  if (then && otherwise) return [ifStep(node, origin, { then, otherwise }, context)];
  invariant(body && node.attributes["num_scan_inputs"] === undefined, `${node.op.type} '${node.name}' is neither If nor Loop`);
  return loopSteps(node, origin, body, context);
}

interface Branch { readonly graph: Graph; readonly regions: readonly Region[] }
const copyOrigin = (value: Value): StepOrigin => ({ label: "Copy", nodes: value.producer?.node.origins ?? [] });
/** Whether two values can lie in one place; what is held lies in none and is handed on. */
const sizesFit = (a: Value, b: Value): boolean => !isHeld(a.type) && !isHeld(b.type) && shapeEqual(a.type.shape, b.type.shape);

function ifStep(node: Node, origin: StepOrigin, { then, otherwise }: { readonly then: Branch; readonly otherwise: Branch }, context: ControlContext): Step {
  const condition = present(node.inputs[0], "condition");
  const predicate = condition.type.elements?.[0];
  return {
    kind: "if", condition: predicate === undefined ? context.places.bufferOf(condition) : { predicate },
    then: branchSteps(node, then, context), else: branchSteps(node, otherwise, context),
    agreements: { then: then.graph.agreements, else: otherwise.graph.agreements }, origin,
  };
}

/** A branch writes its results where the If's results lie. */
function branchSteps(node: Node, { graph, regions }: Branch, context: ControlContext): readonly Step[] {
  const { places } = context;
  const copies: Step[] = [], moves: Move[] = [];
  node.outputs.forEach((result, i) => {
    const value = present(graph.outputs[i], `result ${i} of ${graph.name}`);
    const to = places.bufferOf(result);
    if (!sizesFit(result, value)) { moves.push({ from: places.bufferOf(value), to }); return; }
    if (value.graph === graph && places.claim(value, places.of(result))) return;
    copies.push(context.copy(places.bufferOf(value), to, copyOrigin(value)));
  });
  return [...context.steps(regions), ...copies, ...moveSteps(moves, node)];
}
const moveSteps = (moves: readonly Move[], node: Node): readonly Step[] => (moves.length ? [{ kind: "move", moves, origin: { label: "Copy", nodes: node.origins } }] : []);

/** A Loop, with the copies around it and in it for what it carries in one place. */
function loopSteps(node: Node, origin: StepOrigin, { graph, regions }: Branch, context: ControlContext): readonly Step[] {
  const { places } = context;
  const [count, condition, ...initial] = node.inputs;
  const [iteration, going, ...inputs] = graph.inputs;
  const [next, ...results] = graph.outputs;
  invariant(iteration && going && next, `${node.name} has a body without iteration number and condition`);
  invariant(going.uses.length === 0, `${node.name} reads its condition, which holds`);
  const carry: Carry[] = [], stack: Stack[] = [], around: Step[] = [], kept: { readonly next: Value; readonly input: Value }[] = [];
  const moved: { readonly initial: Buffer; readonly input: Value; readonly next: Value; readonly result: Value | undefined }[] = [];
  inputs.forEach((input, i) => {
    const first = present(initial[i], "initial value"), last = present(results[i], "next value"), result = node.outputs[i];
    const buffer = places.bufferOf(first);
    if (sizesFit(input, first) && sizesFit(input, last) && (!result || sizesFit(input, result))) {
      if (result) places.lie(input, places.of(result));
      around.push(context.copy(buffer, places.bufferOf(input), copyOrigin(first)));
      kept.push({ next: last, input });
    } else moved.push({ initial: buffer, input, next: last, result });
  });
  const within = context.steps(regions), handed = handOn(kept, context);
  for (const { initial: from, input, next: last, result } of moved) carry.push({ initial: from, input: places.bufferOf(input), next: handed.kept(last), ...(result ? { result: places.bufferOf(result) } : {}) });
  node.outputs.slice(inputs.length).forEach((result, i) => stack.push({ from: handed.kept(present(results[inputs.length + i], "slice")), to: places.bufferOf(result) }));
  const body = [...within, ...handed.steps()];
  const size = count?.type.elements?.[0];
  const step: LoopStep = {
    kind: "loop", body, carry, stack, agreements: graph.agreements, origin,
    ...(count ? { count: size === undefined ? places.bufferOf(count) : { size } } : {}),
    ...(condition && !holds(condition) ? { condition: places.bufferOf(condition) } : {}),
    ...(next === going || holds(next) ? {} : { next: places.bufferOf(next) }),
    ...(iteration.uses.length || iteration.resultOf.length ? { iteration: places.bufferOf(iteration) } : {}),
  };
  return [...around, step];
}

const holds = (condition: Value): boolean => {
  const { elements, constant } = typeWithConstant(condition);
  return (elements?.[0] ?? constant?.data[0]) === 1;
};

/**
 * Copies at the end of an iteration. What lies where others are written is set aside first; so is what the runtime takes
 * when the iteration has ended, whose buffer then `kept` tells.
 */
function handOn(carried: readonly { readonly next: Value; readonly input: Value }[], context: ControlContext): { kept(value: Value): Buffer; steps(): readonly Step[] } {
  const { places } = context;
  const changing = carried.filter(({ next, input }) => next !== input);
  const written = new Set<Storage>(changing.map(({ input }) => places.of(input).storage));
  const aside: Step[] = [];
  const kept = (value: Value): Buffer => {
    const own = places.bufferOf(value);
    if (!written.has(places.of(value).storage)) return own;
    const from = context.temporary(own);
    aside.push(context.copy(own, from, copyOrigin(value)));
    return from;
  };
  const copies = changing.map(({ next, input }) => context.copy(kept(next), places.bufferOf(input), copyOrigin(next)));
  return { kept, steps: () => [...aside, ...copies] };
}
