/** `--state past.*=present.*`: inputs that sessions carry, each with the output that is its next value. */
import { fail } from "../../core/diagnostic.ts";

/** Outputs by input. Fails with OF1022. */
export function parseStates(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(texts.flatMap((t) => t.split(";")).filter((p) => p.trim() !== "").map((part) => {
    const [, input = "", output = ""] = /^([^=]+)=([^=]+)$/.exec(part.trim()) ?? fail("OF1022", `'${part}' is not a state`, { place: { field: "state" }, hint: "write input=output, such as past.*=present.*" });
    return [input, output];
  }));
}
