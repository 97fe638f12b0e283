/** `--input_shape="a:1,3,224,224;b:1~10,-1;c:"`: sizes that are fixed, and those left open (-1 or a range). */
import { fail } from "../../core/diagnostic.ts";

/** A size: fixed, or undefined where the option leaves it open. */
export type GivenShape = readonly (number | undefined)[];

/** Shapes by input name. Names may hold colons: the last one ends the name. Fails with OF1006. */
export function parseInputShapes(text: string, option: string): Record<string, GivenShape> {
  const out = new Map<string, GivenShape>();
  for (const part of text.replace(/^"|"$/g, "").split(";").map((p) => p.trim()).filter((p) => p !== "")) {
    const colon = part.lastIndexOf(":");
    if (colon <= 0) fail("OF1006", `'${part}' is not a shape`, { place: { field: option }, hint: "write name:1,3,224,224;other:1,10" });
    const name = part.slice(0, colon).trim(), sizes = part.slice(colon + 1).trim();
    if (out.has(name)) fail("OF1006", `input '${name}' has two shapes`, { place: { field: option } });
    out.set(name, sizes === "" ? [] : sizes.split(",").map((s) => parseSize(s.trim(), name, option)));
  }
  return Object.fromEntries(out);
}

function parseSize(text: string, name: string, option: string): number | undefined {
  if (text === "-1" || text === "?") return undefined;
  const range = /^(\d+)~(\d+|-1)$/.exec(text);
  if (range) return range[1] === range[2] ? Number(range[1]) : undefined;
  if (!/^\d+$/.test(text)) fail("OF1006", `'${text}' is not a size of input '${name}'`, { place: { field: option }, hint: "sizes are whole numbers, -1, or a range such as 1~8" });
  return Number(text);
}
