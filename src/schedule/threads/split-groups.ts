/**
 * The statements at the top of a kernel, grouped for threads: every parallel loop with what must be done again for each
 * part of it and what is done with its last part, and the statements that one thread runs. What is computed from sizes,
 * addresses and inputs alone stands outside the groups.
 */
import type { Buffer, Expr } from "../../kernel/expr.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import { localsOf } from "../../kernel/phases.ts";
import { someStmt, visitExpr, visitStmt } from "../../kernel/traverse.ts";
import { assignedLocals, unwrittenInputs } from "../../kernel/unchanging.ts";
import { statementsOf, type Loop } from "../loops/nest.ts";

export type Group =
  | { readonly kind: "plain"; readonly statements: readonly Stmt[] }
  /** `before` writes working memory for the part at hand. */
  | { readonly kind: "parallel"; readonly before: readonly Stmt[]; readonly loop: Loop; readonly after: readonly Stmt[] };

export const isParallel = (s: Stmt): s is Loop => s.kind === "for" && s.mode === "parallel";
/** Statements that may be done again: declarations, and what writes working memory, which only structured kernels address. */
export const isRepeatable = (s: Stmt): boolean => s.kind === "let" || someStmt(s, (x) => x.kind === "storeAt");

/** The groups in their order; undefined where there is no parallel loop, or locals carry values from one group to another. */
export function groupsOf(kernel: Kernel): readonly Group[] | undefined {
  const all = statementsOf(kernel.body);
  if (!all.some(isParallel)) return undefined;
  const declarations = new Declarations(kernel), groups: Group[] = [];
  let rest = all;
  for (let at = rest.findIndex(isParallel); at >= 0; at = rest.findIndex(isParallel)) {
    const loop = rest[at], next = rest.findIndex((s, i) => i > at && isParallel(s));
    if (loop?.kind !== "for") break;
    const following = rest.slice(at + 1, next < 0 ? rest.length : next);
    // What writes working memory before another loop is that loop's.
    const others = next < 0 ? -1 : following.findIndex((s) => s.kind !== "let" && isRepeatable(s)), own = others < 0 ? following.length : others;
    const before = declarations.outside(rest.slice(0, at)), after = declarations.outside(following.slice(0, own));
    const repeated = lastPlain(before.inside);
    if (before.outside.length + after.outside.length + repeated > 0) groups.push({ kind: "plain", statements: [...before.outside, ...after.outside, ...before.inside.slice(0, repeated)] });
    groups.push({ kind: "parallel", before: before.inside.slice(repeated), loop, after: after.inside });
    rest = rest.slice(at + 1 + own);
  }
  if (rest.length > 0) groups.push({ kind: "plain", statements: rest });
  return apart(groups, declarations.names) ? groups : undefined;
}

/** How many statements there are up to the last that cannot be done again. */
const lastPlain = (list: readonly Stmt[]): number => list.findLastIndex((s) => !isRepeatable(s)) + 1;

/** Declarations that may stand before all groups: constant, and made of sizes, addresses and inputs that nothing writes. */
class Declarations {
  readonly names = new Set<string>();
  readonly #assigned: ReadonlySet<string>;
  readonly #fixed: ReadonlySet<Buffer>;

  constructor(kernel: Kernel) {
    this.#assigned = assignedLocals(kernel.body);
    this.#fixed = unwrittenInputs(kernel);
  }

  outside(list: readonly Stmt[]): { readonly outside: readonly Stmt[]; readonly inside: readonly Stmt[] } {
    const outside: Stmt[] = [], inside: Stmt[] = [];
    for (const s of list) {
      const moves = s.kind === "let" && !this.#assigned.has(s.name) && this.#isFixed(s.value);
      if (moves) this.names.add(s.name);
      (moves ? outside : inside).push(s);
    }
    return { outside, inside };
  }
  #isFixed(e: Expr): boolean {
    let fixed = true;
    visitExpr(e, (x) => {
      if (x.kind === "loadAt" || (x.kind === "load" && !this.#fixed.has(x.buffer)) || (x.kind === "local" && !this.names.has(x.name))) fixed = false;
    });
    return fixed;
  }
}

/** Whether no group reads a local that another declares, but for `common` ones. */
function apart(groups: readonly Group[], common: ReadonlySet<string>): boolean {
  if (groups.length === 1) return true;
  const owner = new Map<string, Group>();
  const statements = (g: Group): readonly Stmt[] => (g.kind === "plain" ? g.statements : [...g.before, g.loop, ...g.after]);
  for (const g of groups) for (const s of statements(g)) visitStmt(s, (x) => { if (x.kind === "let" && !common.has(x.name)) owner.set(x.name, g); });
  return groups.every((g) => {
    for (const name of localsOf(statements(g))) if ((owner.get(name) ?? g) !== g) return false;
    return true;
  });
}
