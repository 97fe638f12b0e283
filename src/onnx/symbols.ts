/**
 * Names of symbolic sizes: the model's own names where it gives any, made safe for the algebra of core/dim (whose keys
 * use `*`, `+`, digits …), and fresh ones for sizes that only running can tell. Deterministic.
 */
import { symbol, type Dim } from "../core/dim.ts";

export class Symbols {
  readonly #byModelName = new Map<string, string>();
  readonly #used = new Set<string>();
  readonly #asked = new Set<string>();
  readonly #values: ReadonlyMap<string, number>;

  /** `values` fixes symbols, by the model's name for them. */
  constructor(values: ReadonlyMap<string, number> = new Map()) { this.#values = values; }

  /** Names under which sizes were asked for: the model's own, and ours for those it leaves unnamed. */
  get asked(): ReadonlySet<string> { return this.#asked; }

  /** The size the model calls `name`: the same each time. */
  named(name: string): Dim {
    this.#asked.add(name);
    const fixed = this.#values.get(name);
    if (fixed !== undefined) return fixed;
    const known = this.#byModelName.get(name);
    if (known !== undefined) return symbol(known);
    const own = this.#unique(name);
    this.#asked.add(own);
    this.#byModelName.set(name, own);
    return this.#values.get(own) ?? symbol(own);
  }

  /** A symbol never given before. */
  fresh(hint: string): Dim {
    const own = this.#unique(hint);
    this.#asked.add(own);
    return this.#values.get(own) ?? symbol(own);
  }

  #unique(hint: string): string {
    const safe = hint.replace(/[^A-Za-z0-9_.$:]/g, "_").replace(/^(?![A-Za-z_$])/, "_");
    let name = safe;
    for (let i = 1; this.#used.has(name); i++) name = `${safe}_${i}`;
    this.#used.add(name);
    return name;
  }
}
