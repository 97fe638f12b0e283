/** What is said of an artifact that is whole but contradicts itself. */
import { fail } from "../core/diagnostic.ts";

/** Fails with OF6004. */
export const inconsistent = (what: string): never => fail("OF6004", `the artifact is inconsistent: ${what}`, { hint: "compile the model again" });
