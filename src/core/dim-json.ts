/** Sizes as JSON: a number, a symbol's name, or an operation over sizes. Evaluated by the runtime without the compiler's algebra. */
import { dimAdd, dimBroadcast, dimFloorDiv, dimMax, dimMin, dimMod, dimMul, symbol, type Dim, type DimAtom } from "./dim.ts";

type Operator = "+" | "*" | "/" | "%" | "min" | "max" | "broadcast";
export type DimJson = number | string | readonly [Operator, ...DimJson[]];

const operators = { floordiv: "/", mod: "%", min: "min", max: "max", broadcast: "broadcast" } as const;

/** The JSON form of a size. `/` rounds down, `%` is not negative for a positive divisor. */
export function dimToJson(d: Dim): DimJson {
  if (typeof d === "number") return d;
  const terms = d.terms.map((t): DimJson => {
    const factors = [...(t.coefficient === 1 && t.atoms.length > 0 ? [] : [t.coefficient]), ...t.atoms.map(atomToJson)];
    const only = factors[0];
    return factors.length === 1 && only !== undefined ? only : ["*", ...factors];
  });
  const only = terms[0];
  return terms.length === 1 && only !== undefined ? only : ["+", ...terms];
}
const atomToJson = (a: DimAtom): DimJson => (a.kind === "symbol" ? a.name : [operators[a.kind], dimToJson(a.a), dimToJson(a.b)]);

/** The value of a size under the symbols' values; undefined while a symbol it needs has none. */
export function evaluateDimJson(d: DimJson, symbols: ReadonlyMap<string, number>): number | undefined {
  if (typeof d === "number") return d;
  if (typeof d === "string") return symbols.get(d);
  const [operator, ...rest] = d;
  let value: number | undefined;
  for (const operand of rest) {
    const x = evaluateDimJson(operand, symbols);
    if (x === undefined) return undefined;
    value = value === undefined ? x : apply(operator, value, x);
  }
  return value;
}
function apply(operator: Operator, a: number, b: number): number {
  switch (operator) {
    case "+": return a + b;
    case "*": return a * b;
    case "/": return b === 0 ? 0 : Math.floor(a / b);
    case "%": return b === 0 ? 0 : ((a % b) + b) % b;
    case "min": return Math.min(a, b);
    case "max": return Math.max(a, b);
    default: return a === 1 ? b : a;
  }
}

/** A size for people, such as `floor(W/8)·4`. */
export function formatDimJson(d: DimJson): string {
  if (typeof d !== "object") return String(d);
  const [operator, ...rest] = d;
  const parts = rest.map(formatDimJson);
  switch (operator) {
    case "+": return `(${parts.join(" + ")})`;
    case "*": return parts.join("·");
    case "/": return `floor(${parts.join("/")})`;
    case "%": return `(${parts.join(" mod ")})`;
    default: return `${operator}(${parts.join(", ")})`;
  }
}

/** The size that a JSON form says; the inverse of `dimToJson`. */
export function dimFromJson(json: DimJson): Dim {
  if (typeof json === "number") return json;
  if (typeof json === "string") return symbol(json);
  const [operator, ...rest] = json;
  return rest.map(dimFromJson).reduce(algebra[operator]);
}
const algebra: Readonly<Record<Operator, (a: Dim, b: Dim) => Dim>> = { "+": dimAdd, "*": dimMul, "/": dimFloorDiv, "%": dimMod, min: dimMin, max: dimMax, broadcast: dimBroadcast };
