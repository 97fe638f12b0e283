/**
 * Fusion switches: which rules and which kinds of region are allowed. A rule is switched by its name or that of its GE
 * pass, a region by its kind; spelling is compared without case, separators and a closing "Fusion" or "Pass", so that
 * `CONV_BN_RELU`, `ConvBNReLU` and `ConvBNReLUFusionPass` are one switch.
 */
import type { Rule } from "../rewrite/rule.ts";

export interface FusionSwitches {
  /** What holds for rules that are not named. Default on. */
  readonly allRules?: boolean;
  /** What holds for regions that are not named. Default on. */
  readonly allRegions?: boolean;
  /** By rule name, GE pass name or region kind; beats `allRules` and `allRegions`. */
  readonly named?: Readonly<Record<string, boolean>>;
}

/** GE's passes that fuse regions, and the kinds of ours they stand for. */
const gePassKinds: Readonly<Record<string, readonly string[]>> = {
  TbeEltwiseFusionPass: ["FusedElementwise"],
  AutomaticUbFusion: ["FusedElementwise"],
  MatMulBiasAddFusionPass: ["MatMulAdd"],
  ATbeMatmulElemwiseFusionPass: ["MatMulRelu", "MatMulAddRelu"],
};

const canonical = (name: string): string => name.replace(/[^A-Za-z0-9]/g, "").toUpperCase().replace(/(FUSION)?(PASS)?$/, "");

export class Switches {
  readonly #options: FusionSwitches;
  readonly #named = new Map<string, boolean>();
  readonly #spelling = new Map<string, string>();
  readonly #met = new Set<string>();

  constructor(options: FusionSwitches) {
    this.#options = options;
    for (const [name, on] of Object.entries(options.named ?? {})) {
      for (const target of gePassKinds[name] ?? [name]) {
        this.#named.set(canonical(target), on);
        this.#spelling.set(canonical(target), name);
      }
    }
  }

  /** Whether any region kind is switched off. */
  get restrictsRegions(): boolean { return this.#options.allRegions === false || [...this.#named.values()].some((on) => !on); }

  rule(rule: Rule): boolean { return this.#find(rule.name, rule.gePass) ?? this.#options.allRules ?? true; }
  kind(kind: string): boolean { return this.#find(kind) ?? this.#options.allRegions ?? true; }

  /** Names that no rule and no candidate region has had. */
  unmatched(rules: readonly Rule[]): string[] {
    for (const rule of rules) this.rule(rule);
    return [...new Set([...this.#spelling].filter(([key]) => !this.#met.has(key)).map(([, name]) => name))];
  }

  #find(...names: readonly (string | undefined)[]): boolean | undefined {
    for (const name of names) {
      if (name === undefined) continue;
      const key = canonical(name), on = this.#named.get(key);
      if (on === undefined) continue;
      this.#met.add(key);
      return on;
    }
    return undefined;
  }
}
