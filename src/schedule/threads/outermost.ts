/** Leaves of a kernel's loops that threads may share only the outermost ones: fewer and larger pieces, each of whole rows. */
import type { Stmt } from "../../kernel/stmt.ts";

/** The statements with every parallel loop inside another one, of more than one iteration, serial. */
export function outermostParallel(s: Stmt, inside = false): Stmt {
  switch (s.kind) {
    case "block": return { ...s, body: s.body.map((b) => outermostParallel(b, inside)) };
    case "for": return { ...s, mode: inside ? "serial" : s.mode, body: outermostParallel(s.body, inside || (s.mode === "parallel" && s.axis.extent !== 1)) };
    default: return s;
  }
}
