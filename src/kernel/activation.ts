/** Gate activations of recurrences, for scalars and vectors alike. */
import { assertNever } from "../core/assert.ts";
import { add, binary, constant, exp, gt, lt, max, min, mul, select, sub, unary, type Expr } from "./expr.ts";
import type { Activation } from "./structure.ts";

/** The activation of a value, which is used several times: pass a local. */
export function activationOf(a: Activation, x: Expr): Expr {
  const c = (value: number): Expr => constant(value, x.type);
  switch (a.kind) {
    case "sigmoid": return binary("div", c(1), add(c(1), exp(unary("neg", x))));
    case "tanh": return unary("tanh", x);
    case "relu": return select(lt(x, c(0)), c(0), x);
    case "softsign": return binary("div", x, add(c(1), unary("abs", x)));
    case "softplus": return add(max(x, c(0)), unary("log", add(c(1), exp(unary("neg", unary("abs", x))))));
    case "affine": return add(mul(x, c(a.alpha)), c(a.beta));
    case "hard-sigmoid": return max(min(add(mul(x, c(a.alpha)), c(a.beta)), c(1)), c(0));
    case "scaled-tanh": return mul(unary("tanh", mul(x, c(a.beta))), c(a.alpha));
    case "leaky-relu": return select(lt(x, c(0)), mul(x, c(a.alpha)), x);
    case "thresholded-relu": return select(gt(x, c(a.alpha)), x, c(0));
    case "elu": return select(lt(x, c(0)), mul(sub(exp(x), c(1)), c(a.alpha)), x);
    default: return assertNever(a);
  }
}
