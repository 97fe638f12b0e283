/** What keeps its value, or its contents, while a kernel runs: what passes may compute earlier, or again. */
import type { Buffer } from "./expr.ts";
import type { Kernel } from "./kernel.ts";
import type { Stmt } from "./stmt.ts";
import { visitStmt } from "./traverse.ts";

/** Locals that change after their declaration; all others have one value wherever they are in scope. */
export function assignedLocals(body: Stmt): Set<string> {
  const names = new Set<string>();
  visitStmt(body, (s) => { if (s.kind === "assign" || s.kind === "accumulate") names.add(s.name); });
  return names;
}

/** Inputs that the kernel does not write over with an output. */
export function unwrittenInputs({ inputs, inPlace }: Kernel): ReadonlySet<Buffer> {
  const written = new Set(inPlace?.map((pair) => pair.input));
  return new Set(inputs.filter((b) => !written.has(b)));
}
