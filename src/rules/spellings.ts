/** Ways in which exporters write the same small function, as pattern terms. */
import { Add, Clip, Div, Exp, Log, Mul, Pow, Reciprocal, Softplus, Sqrt } from "../ops/index.ts";
import { anyOf, commuted, literal, op, type Pattern } from "../rewrite/pattern.ts";

/** How far a constant that exporters shorten (0.7071 for 1/√2) may be off. */
export const shortened = 2e-5;

/** x · c, also as x / (1/c). */
export const times = <B extends object>(x: Pattern<B>, c: number, relative = shortened): Pattern<B> =>
  anyOf(commuted(Mul, [x, literal(c, relative)]), op(Div, [x, literal(1 / c, relative)])) as Pattern<B>;
/** x + c. */
export const plus = <B extends object>(x: Pattern<B>, c: number, relative = shortened): Pattern<B> =>
  commuted(Add, [x, literal(c, relative)]) as Pattern<B>;
/** x · x, also as a power. */
export const squared = <B extends object>(x: Pattern<B>): Pattern<B> => anyOf(op(Mul, [x, x]), op(Pow, [x, literal(2)])) as Pattern<B>;
/** x³, as a power or a product. */
export const cubed = <B extends object>(x: Pattern<B>): Pattern<B> => anyOf(op(Pow, [x, literal(3)]), commuted(Mul, [squared(x), x])) as Pattern<B>;
/** √x, also as a power. */
export const rooted = <B extends object>(x: Pattern<B>): Pattern<B> => anyOf(op(Sqrt, [x]), op(Pow, [x, literal(0.5)])) as Pattern<B>;
/** 1/x, as Reciprocal, division or power. */
export const inverted = <B extends object>(x: Pattern<B>): Pattern<B> =>
  anyOf(op(Reciprocal, [x]), op(Div, [literal(1), x]), op(Pow, [x, literal(-1)])) as Pattern<B>;
/** clip(x + 3, 0, 6). */
export const clippedToSix = <B extends object>(x: Pattern<B>): Pattern<B> => op(Clip, [plus(x, 3), literal(0), literal(6)]) as Pattern<B>;
/** ln(1 + eˣ), as Softplus or spelled out. */
export const softplusOf = <B extends object>(x: Pattern<B>): Pattern<B> => anyOf(op(Softplus, [x]), op(Log, [plus(op(Exp, [x]) as Pattern<B>, 1)])) as Pattern<B>;
