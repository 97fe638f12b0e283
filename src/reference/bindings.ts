/** Sizes that symbols have in one run. A body of a loop binds its own on every iteration. */
import { present } from "../core/assert.ts";
import { evaluateDim, isSymbolic, symbolsOf, type Dim, type DimBinding } from "../core/dim.ts";
import type { Tensor } from "../core/tensor.ts";
import type { TypeInfo } from "../graph/op.ts";

export class Bindings {
  readonly #own = new Map<string, number>();
  readonly #around: Bindings | undefined;
  constructor(around?: Bindings) { this.#around = around; }

  readonly lookup: DimBinding = (name) => present(this.get(name), `the size of symbol ${name}`);

  get(name: string): number | undefined { return this.#own.get(name) ?? this.#around?.get(name); }
  /** Whether every symbol of the size has a value. */
  knows(d: Dim): boolean { return [...symbolsOf(d)].every((name) => this.get(name) !== undefined); }
  /** Sizes as numbers; every symbol must be known. */
  sizes(dims: readonly Dim[]): number[] { return dims.map((d) => evaluateDim(d, this.lookup)); }

  /** Takes actual sizes for symbolic ones: a lone unknown symbol gets its value, the others must agree. False where they do not. */
  bind(shape: readonly Dim[], dims: readonly number[]): boolean {
    if (shape.length !== dims.length) return false;
    shape.forEach((d, i) => {
      const name = loneSymbol(d);
      if (name !== undefined && this.get(name) === undefined) this.#own.set(name, dims[i] ?? 0);
    });
    return shape.every((d, i) => !this.knows(d) || evaluateDim(d, this.lookup) === dims[i]);
  }

  /** As `bind`, without binding. */
  accepts(type: TypeInfo, tensor: Tensor): boolean {
    return type.dtype === tensor.dtype && new Bindings(this).bind(type.shape, tensor.dims);
  }

  /** The sizes of the symbols in a shape, for messages. */
  explain(shape: readonly Dim[]): string {
    const names = new Set(shape.flatMap((d) => [...symbolsOf(d)]));
    return names.size ? ` where ${[...names].map((n) => `${n} = ${this.get(n) ?? "unknown"}`).join(", ")}` : "";
  }
}

function loneSymbol(d: Dim): string | undefined {
  if (!isSymbolic(d)) return undefined;
  const [name, ...others] = symbolsOf(d);
  return name !== undefined && others.length === 0 && d.key === name ? name : undefined;
}
