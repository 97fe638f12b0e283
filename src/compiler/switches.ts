/**
 * Fusion switches: which rules and which kinds of region are allowed. A rule is switched by its name or that of its GE
 * pass, a region by its kind; spelling is compared without case, separators and a closing "Fusion" or "Pass", so that
 * `CONV_BN_RELU`, `ConvBNReLU` and `ConvBNReLUFusionPass` are one switch. `NAME@PATTERN` holds where a node of the
 * original model takes part whose name fits the pattern (`*` stands for anything), and `ALL@PATTERN` for whatever nodes
 * as these take part in: a fused node obeys the settings of every node in it. Off beats on, and both beat what is said
 * for all nodes.
 */
import { DiagnosticError, nearestName, type Diagnostic } from "../core/diagnostic.ts";
import type { OpDef } from "../graph/op.ts";
import type { Rule } from "../rewrite/rule.ts";
import { foreignGePasses, gePassKinds } from "./ge-passes.ts";

export interface FusionSwitches {
  /** What holds for rules that are not named. Default on. */
  readonly allRules?: boolean;
  /** What holds for regions that are not named. Default on. */
  readonly allRegions?: boolean;
  /** By rule name, GE pass name or region kind, each perhaps with `@` and a pattern of node names; beats `allRules` and `allRegions`. */
  readonly named?: Readonly<Record<string, boolean>>;
}

/** A switch for some nodes only. */
interface NodeSwitch {
  readonly name: string;
  /** Canonical; undefined stands for all rules and regions. */
  readonly targets: readonly string[] | undefined;
  readonly nodes: RegExp;
  readonly on: boolean;
  readonly sites: Set<string>;
}

/** What a named switch did. */
export interface SwitchEffect {
  /** As it was spelled. */
  readonly name: string;
  readonly on: boolean;
  /** Roots of the sites that it decided. */
  readonly sites: readonly string[];
}

const canonical = (name: string): string => name.replace(/[^A-Za-z0-9]/g, "").toUpperCase().replace(/(FUSION)?(PASS)?$/, "");

export class Switches {
  readonly #options: FusionSwitches;
  readonly #named = new Map<string, { readonly on: boolean; readonly name: string; readonly sites: Set<string> }>();
  readonly #ofNodes: NodeSwitch[] = [];

  constructor(options: FusionSwitches) {
    this.#options = options;
    for (const [name, on] of Object.entries(options.named ?? {})) {
      const [fusion = "", pattern] = partsOf(name);
      const targets = (Object.hasOwn(gePassKinds, fusion) ? gePassKinds[fusion] : undefined) ?? [fusion];
      if (pattern !== undefined) this.#ofNodes.push({ name, on, targets: fusion === "ALL" ? undefined : targets.map(canonical), nodes: nodePattern(pattern), sites: new Set() });
      else for (const target of targets) this.#named.set(canonical(target), { on, name, sites: new Set() });
    }
  }

  /** Whether a rule may fire at the site with this root, where these original nodes take part. */
  rule(rule: Rule, at: string, nodes: readonly string[]): boolean { return this.#find(at, nodes, rule.name, rule.gePass) ?? this.#options.allRules ?? true; }
  /** Whether a region of this kind may stand at the site with this root, where these original nodes take part. */
  kind(kind: string, at: string, nodes: readonly string[]): boolean { return this.#find(at, nodes, kind) ?? this.#options.allRegions ?? true; }
  /** The switch `ALL@PATTERN:off` that leaves one of these original nodes out of every region. */
  forbids(nodes: readonly string[]): string | undefined {
    const by = this.#ofNodes.find((s) => s.targets === undefined && !s.on && nodes.some((n) => s.nodes.test(n)));
    for (const n of nodes) if (by?.nodes.test(n)) by.sites.add(n);
    return by?.name;
  }

  get effects(): readonly SwitchEffect[] {
    const byName = new Map<string, { on: boolean; sites: Set<string> }>();
    for (const { name, on, sites } of [...this.#named.values(), ...this.#ofNodes]) {
      const known = byName.get(name) ?? { on, sites: new Set<string>() };
      for (const s of sites) known.sites.add(s);
      byName.set(name, known);
    }
    return [...byName].map(([name, { on, sites }]) => ({ name, on, sites: [...sites].sort() }));
  }

  /**
   * Warnings for switches that GE has and onnxfuse has not. Fails with OF4011, the nearest name in the hint, for names
   * that are neither a rule, nor a pass of GE, nor made of operator names as kinds of region are. `own` are names of
   * custom rules and what they make.
   */
  check(rules: readonly Rule[], operators: readonly OpDef[], own: readonly string[]): readonly Diagnostic[] {
    const passes = rules.flatMap((r) => r.gePass ?? []);
    const known = new Set([...rules.map((r) => r.name), ...passes, ...own].map(canonical));
    const words = [...new Set([...operators.map((op) => op.type), "BN", "Fused", "Elementwise"].map(canonical))];
    const foreign = new Set(foreignGePasses.map(canonical));
    const wrong: Diagnostic[] = [], warnings: Diagnostic[] = [];
    const ofNodes = this.#ofNodes.flatMap(({ name, targets }) => (targets ?? []).map((key) => [key, { name }] as const));
    for (const [key, { name }] of [...this.#named, ...ofNodes]) {
      if (known.has(key)) continue;
      if (foreign.has(key)) { warnings.push({ code: "OF4015", message: `GE's pass '${name}' has no counterpart here; its switch does nothing` }); continue; }
      if (isMadeOf(key, words)) continue;
      const near = nearestName(partsOf(name)[0], [...rules.map((r) => r.name), ...passes, ...own, ...Object.keys(gePassKinds), ...foreignGePasses, "ConvBNReLU", "MatMulAddRelu", "FlashAttention", "FusedElementwise"]);
      wrong.push({ code: "OF4011", message: `there is no fusion '${name}'`, place: { field: name }, hint: near === undefined ? "name a rule, a pass of GE or a kind of region; docs/fusions.md lists them" : `did you mean '${near}'?` });
    }
    if (wrong.length) throw new DiagnosticError(wrong);
    return warnings;
  }

  #find(at: string, nodes: readonly string[], ...names: readonly (string | undefined)[]): boolean | undefined {
    const keys = names.filter((n): n is string => n !== undefined).map(canonical);
    const own = this.#ofNodes.filter((s) => (s.targets?.some((t) => keys.includes(t)) ?? true) && nodes.some((n) => s.nodes.test(n)));
    for (const s of own) s.sites.add(at);
    if (own.length > 0) return own.every((s) => s.on);
    for (const name of names) {
      const found = name === undefined ? undefined : this.#named.get(canonical(name));
      if (!found) continue;
      found.sites.add(at);
      return found.on;
    }
    return undefined;
  }
}

/** The fusion that a switch names, and the pattern of nodes that it is for. */
function partsOf(name: string): readonly [string, string?] {
  const at = name.indexOf("@");
  return at < 0 ? [name] : [name.slice(0, at), name.slice(at + 1)];
}
const nodePattern = (pattern: string): RegExp => new RegExp(`^${pattern.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`);

/** Whether `text` is some of the words in a row. */
function isMadeOf(text: string, words: readonly string[]): boolean {
  const reached = new Set([0]);
  for (let i = 0; i < text.length; i++) if (reached.has(i)) for (const w of words) if (text.startsWith(w, i)) reached.add(i + w.length);
  return text.length > 0 && reached.has(text.length);
}
