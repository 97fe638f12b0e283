/** `--dim batch=1,seq=128`: sizes of named dimensions. */
import { fail } from "../../core/diagnostic.ts";

/** Sizes by name. Fails with OF1009. */
export function parseDims(texts: readonly string[]): Record<string, number> {
  const out = new Map<string, number>();
  for (const part of texts.flatMap((t) => t.split(",")).filter((p) => p !== "")) {
    const [, name, size] = /^([^=]+)=(\d+)$/.exec(part.trim()) ?? fail("OF1009", `'${part}' is not a size of a dimension`, { place: { field: "dim" }, hint: "write name=size, such as batch=1" });
    out.set(name ?? "", Number(size));
  }
  return Object.fromEntries(out);
}
