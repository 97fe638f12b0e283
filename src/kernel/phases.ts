/**
 * The phases of a legal kernel: what threads do together before they wait for each other. A phase is one split, or
 * statements that one thread runs; the kernel is its phases one after the other. Each declares for itself what it needs.
 */
import { dimsOfBody } from "./dims.ts";
import type { Buffer, Expr } from "./expr.ts";
import type { Kernel, Phase } from "./kernel.ts";
import { block, type Split, type Stmt } from "./stmt.ts";
import { visitExpr, visitExprsOf, visitStmt } from "./traverse.ts";
import { assignedLocals, unwrittenInputs } from "./unchanging.ts";

/** Working memory that every thread needs for itself: a range of a split leaves nothing in it. Without splits one thread runs the kernel. */
export const privateScratch = (kernel: Kernel): readonly Buffer[] =>
  (kernel.scratch.length > 0 && phasesOf(kernel).some((p) => p.split) ? kernel.scratch.filter((b) => !kernel.shared?.includes(b)) : []);

/** The kernel with its phases, so that none has to be found again. It must not change any more. */
export const inPhases = (kernel: Kernel): Kernel => ({ ...kernel, phases: findPhases(kernel) });

/** The phases in their order; one without split where the kernel's statements depend on each other by locals. */
export const phasesOf = (kernel: Kernel): readonly Phase[] => kernel.phases ?? findPhases(kernel);

function findPhases(kernel: Kernel): readonly Phase[] {
  const all = kernel.body.kind === "block" ? kernel.body.body : [kernel.body];
  const whole = (): readonly Phase[] => [phaseOf(kernel.body)];
  if (!all.some((s) => s.kind === "split")) return whole();
  const common = new Common(kernel), groups: Stmt[][] = [];
  let open: Stmt[] | undefined;
  for (const s of all) {
    if (common.takes(s)) continue;
    if (s.kind === "split") { groups.push([s]); open = undefined; continue; }
    if (!open) groups.push((open = []));
    open.push(s);
  }
  const locals = groups.map(localsOf);
  if (groups.length > 1) {
    const owners = new Map<string, number>();
    groups.forEach((g, i) => { for (const s of g) visitStmt(s, (x) => { if (x.kind === "let") owners.set(x.name, i); }); });
    if (locals.some((names, i) => [...names].some((name) => (owners.get(name) ?? i) !== i))) return whole();
  }
  return groups.map((g, i): Phase => {
    const only = g[0], split = only?.kind === "split" ? only : undefined;
    return phaseOf(block(...common.neededBy(locals[i] ?? new Set()), ...(split ? [split.body] : g)), split);
  });
}

/** Declarations at the top that any phase may make for itself: constant, and read from nothing that the kernel writes. */
class Common {
  readonly #declarations = new Map<string, Extract<Stmt, { kind: "let" }>>();
  readonly #assigned: ReadonlySet<string>;
  readonly #fixed: ReadonlySet<Buffer>;

  constructor(kernel: Kernel) {
    this.#assigned = assignedLocals(kernel.body);
    this.#fixed = unwrittenInputs(kernel);
  }

  takes(s: Stmt): boolean {
    if (s.kind !== "let" || this.#assigned.has(s.name)) return false;
    let fixed = true, loads = false;
    visitExpr(s.value, (e) => {
      if (e.kind === "loadAt") loads = true;
      if (e.kind === "local" && !this.#declarations.has(e.name)) fixed = false;
    });
    if (!fixed || (loads && [...phaseOf(block(...this.neededBy(localsOf([s])), s)).touched].some((b) => !this.#fixed.has(b)))) return false;
    this.#declarations.set(s.name, s);
    return true;
  }

  /** Those that statements with these locals need, in their order. */
  neededBy(locals: ReadonlySet<string>): readonly Stmt[] {
    const needed = new Set<string>();
    const need = (names: ReadonlySet<string>): void => {
      for (const name of names) {
        const d = this.#declarations.get(name);
        if (!d || needed.has(name)) continue;
        needed.add(name);
        need(localsOf([d]));
      }
    };
    need(locals);
    return [...this.#declarations].filter(([name]) => needed.has(name)).map(([, d]) => d);
  }
}

/** Names of locals that statements read or assign. */
export function localsOf(statements: readonly Stmt[]): ReadonlySet<string> {
  const names = new Set<string>(), seen = new Set<Expr>();
  for (const statement of statements) {
    visitStmt(statement, (s) => { if (s.kind === "assign" || s.kind === "accumulate") names.add(s.name); });
    visitExprsOf(statement, (x) => { if (x.kind === "local") names.add(x.name); }, seen);
  }
  return names;
}

/** A phase with what it needs, found in one walk. */
function phaseOf(body: Stmt, split?: Split): Phase {
  const touched = new Set<Buffer>();
  const dims = dimsOfBody(body, new Map(), (e) => { if (e.kind === "address") touched.add(e.buffer); });
  return { body, ...(split ? { split } : {}), touched, dims: [...dims.values()] };
}
