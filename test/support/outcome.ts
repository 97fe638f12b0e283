/** What became of something that bad input may stop: it worked, or a diagnostic refused it. Any other error passes through. */
import { DiagnosticError } from "../../src/core/diagnostic.ts";

/** "done", or the code of the diagnostic. A diagnostic without a code of ours, or too long to read, is an error. */
export async function outcomeOf(work: () => unknown): Promise<string> {
  try {
    await work();
    return "done";
  } catch (e) {
    if (!(e instanceof DiagnosticError)) throw e;
    if (!/^OF[1-7]\d{3}$/.test(e.code) || e.message.length > 20_000) throw new Error(`not a diagnostic to read: ${e.message.slice(0, 300)}`, { cause: e });
    // OF6008 says that a program does not hold together: a fault of ours where we have made it.
    if (e.code === "OF6008") throw new Error(e.message, { cause: e });
    return e.code;
  }
}
