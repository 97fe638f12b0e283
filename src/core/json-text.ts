/** JSON text whose errors name their line on every engine; JavaScript's own messages do so only sometimes. */

/** The value, or the line (from 1) of the first thing that is not JSON, with a reason. */
export type JsonText = { readonly value: unknown } | { readonly line: number; readonly reason: string };

export function readJsonText(text: string): JsonText {
  try {
    const value: unknown = JSON.parse(text);
    return { value };
  } catch (e) {
    if (!(e instanceof SyntaxError)) throw e;
    const at = firstError(text);
    const found = at >= text.length ? "the text ends" : `'${text.slice(at, at + 1)}' stands`;
    return { line: text.slice(0, at).split("\n").length, reason: `${found} where something else is expected` };
  }
}

const token = /[\t\n\r ]*(?:([[\]{},:])|("(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null))/y;

/** Where text stops being JSON: an automaton over its tokens, with a stack of open brackets. */
function firstError(text: string): number {
  const open: string[] = [];
  let expected: "value" | "value or ]" | "key" | "key or }" | ":" | ", or close" | "end" = "value";
  const afterValue = (): typeof expected => (open.length ? ", or close" : "end");
  token.lastIndex = 0;
  for (;;) {
    const start = token.lastIndex;
    const match = token.exec(text);
    const at = start + (/^[\t\n\r ]*/.exec(text.slice(start))?.[0].length ?? 0);
    if (!match) return at;
    const [, mark, string, scalar] = match;
    const wantsValue = expected === "value" || expected === "value or ]";
    if (wantsValue && (string !== undefined || scalar !== undefined)) expected = afterValue();
    else if (wantsValue && mark === "{") { open.push("}"); expected = "key or }"; }
    else if (wantsValue && mark === "[") { open.push("]"); expected = "value or ]"; }
    else if ((expected === "key" || expected === "key or }") && string !== undefined) expected = ":";
    else if (expected === ":" && mark === ":") expected = "value";
    else if (expected === ", or close" && mark === ",") expected = open.at(-1) === "}" ? "key" : "value";
    else if (mark !== undefined && mark === open.at(-1) && (expected === ", or close" || expected === "key or }" || expected === "value or ]")) { open.pop(); expected = afterValue(); }
    else return at;
  }
}
