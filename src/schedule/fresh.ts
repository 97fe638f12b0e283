/** Names for new locals of a kernel, unlike those it has. */
import type { Stmt } from "../kernel/stmt.ts";
import { visitStmt } from "../kernel/traverse.ts";

export type Fresh = (hint: string) => string;

/** Gives `hint0`, `hint1` … never a name twice, nor one that `body` declares. */
export function freshNames(body: Stmt): Fresh {
  const taken = new Set<string>();
  visitStmt(body, (s) => { if (s.kind === "let") taken.add(s.name); });
  const next = new Map<string, number>();
  return (hint) => {
    let n = next.get(hint) ?? 0;
    while (taken.has(`${hint}${n}`)) n++;
    next.set(hint, n + 1);
    const name = `${hint}${n}`;
    taken.add(name);
    return name;
  };
}
