/** JSON files with errors that name the line. */
import { fail } from "../core/diagnostic.ts";

/** The value of JSON text. Fails with `code` at the line that is wrong. */
export function parseJson(text: string, file: string, code: string): unknown {
  try {
    return JSON.parse(text);
  } catch (e) {
    const message = e instanceof Error ? e.message : String(e);
    const position = /position (\d+)/.exec(message)?.[1];
    const at = position === undefined ? (/end of JSON/.test(message) ? text.length : undefined) : Number(position);
    const short = message.replace(/ in JSON at position.*| is not valid JSON$/, "");
    return fail(code, `this is not JSON: ${short}`, { place: { file, ...(at === undefined ? {} : { line: text.slice(0, at).split("\n").length }) } });
  }
}
