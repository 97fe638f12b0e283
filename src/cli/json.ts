/** JSON files with errors that name the line. */
import { fail } from "../core/diagnostic.ts";
import { readJsonText } from "../core/json-text.ts";

/** The value of JSON text. Fails with `code` at the line that is wrong. */
export function parseJson(text: string, file: string, code: string): unknown {
  const read = readJsonText(text);
  return "value" in read ? read.value : fail(code, `this is not JSON: ${read.reason}`, { place: { file, line: read.line } });
}
