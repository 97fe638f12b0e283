/**
 * Conditions of custom rules asked of a site: each one that fails is a refusal with the values it found and the remedy.
 * A symbolic size passes only what holds for every size.
 */
import { dimMod, formatDim, isSymbolic, type Dim } from "../../core/dim.ts";
import type { Node, Value } from "../../graph/graph.ts";
import { isConstant } from "../../rewrite/match.ts";
import { refuse, type Verdict } from "../../rewrite/rule.ts";
import { passes, wanted, type AttributeCondition, type AttributeTest, type Condition, type NumberTest, type Port, type Scalar, type ValueCondition } from "./rule-conditions.ts";

/** Nodes and values of a site by the names that the rule gives them. */
export interface NamedSite {
  node(name: string): Node | undefined;
  value(port: Port): Value | undefined;
}

/** The first condition that fails; true where all hold. */
export function checkConditions(conditions: readonly Condition[], site: NamedSite): Verdict {
  for (const condition of conditions) {
    const verdict = condition.kind === "attribute" ? attribute(condition, site.node(condition.node)) : value(condition, site.value(condition.value));
    if (verdict !== true) return verdict;
  }
  return true;
}

const failed = (reason: string, remedy: string): Verdict => refuse("condition-failed", reason, remedy);

function attribute({ attribute: name, test }: AttributeCondition, node: Node | undefined): Verdict {
  if (!node) return true;
  const actual = node.attributes[name];
  if (isPlain(actual) && holds(actual, test)) return true;
  const is = actual === undefined ? "is not given" : `is ${isPlain(actual) ? format(actual) : "no number or text"}`;
  return failed(`${name} of ${node.op.type} '${node.name}' ${is}, wanted ${wanted(test)}`, `set it to ${wanted(test)}, or change the rule's condition`);
}

const isPlain = (x: unknown): x is Scalar | readonly Scalar[] => typeof x === "number" || typeof x === "string" || (Array.isArray(x) && x.every((y) => typeof y === "number" || typeof y === "string"));
const same = (a: Scalar | readonly Scalar[], b: Scalar | readonly Scalar[]): boolean => {
  const x: readonly Scalar[] = Array.isArray(a) ? a : [a as Scalar], y: readonly Scalar[] = Array.isArray(b) ? b : [b as Scalar];
  return Array.isArray(a) === Array.isArray(b) && x.length === y.length && x.every((v, i) => near(v, y[i]));
};
/** Attributes of type float are stored with the precision of a float32. */
const near = (a: Scalar, b: Scalar | undefined): boolean => a === b || (typeof a === "number" && typeof b === "number" && Math.fround(a) === Math.fround(b));
const format = (x: Scalar | readonly Scalar[]): string => (Array.isArray(x) ? `[${x.join(", ")}]` : String(x));

function holds(actual: Scalar | readonly Scalar[], { equals, in: choices, min, max }: AttributeTest): boolean {
  const numbers = (Array.isArray(actual) ? actual : [actual]).every((x) => typeof x === "number" && (min === undefined || x >= min) && (max === undefined || x <= max));
  return (equals === undefined || same(actual, equals)) && (choices === undefined || choices.some((c) => same(actual, c))) && ((min === undefined && max === undefined) || numbers);
}

function value({ dtypes, rank, dims, constant }: ValueCondition, v: Value | undefined): Verdict {
  if (!v) return true;
  const { dtype, shape } = v.type;
  if (dtypes && !dtypes.includes(dtype)) return failed(`'${v.name}' is ${dtype}, wanted ${dtypes.join(" or ")}`, `make it ${dtypes.join(" or ")}, or change the rule's condition`);
  if (rank && !passes(shape.length, rank)) return failed(`'${v.name}' has rank ${shape.length}, wanted ${wanted(rank)}`, "change the rule's condition");
  for (const { axis, test } of dims) {
    const d = shape[axis < 0 ? shape.length + axis : axis];
    if (d === undefined) return failed(`'${v.name}' of rank ${shape.length} has no axis ${axis}`, "change the rule's condition");
    if (!sizePasses(d, test)) return failed(`'${v.name}' has the size ${formatDim(d)} on axis ${axis}, wanted ${wanted(test)}`, isSymbolic(d) ? "fix the size, with --dim or --shape" : "change the rule's condition");
  }
  if (constant !== undefined && isConstant(v) !== constant) return failed(`'${v.name}' is ${constant ? "not " : ""}a constant`, constant ? `make '${v.name}' an initializer` : "change the rule's condition");
  return true;
}

/** Whether a size passes whatever its symbols are. */
function sizePasses(d: Dim, test: NumberTest): boolean {
  if (!isSymbolic(d)) return passes(d, test);
  const { multipleOf, min = 0, ...rest } = test;
  return Object.keys(rest).length === 0 && min <= 0 && (multipleOf === undefined || dimMod(d, multipleOf) === 0);
}
