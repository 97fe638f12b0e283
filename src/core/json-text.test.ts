import { expect, it } from "vitest";
import { readJsonText } from "./json-text.ts";

it("gives the value, or the line of the first error", () => {
  expect(readJsonText('{"a": [1, -2.5e3, true, null, "\\u00e9\\n"], "b": {}, "c": []}')).toEqual({ value: { a: [1, -2500, true, null, "é\n"], b: {}, c: [] } });
  const lines: readonly (readonly [string, number, string])[] = [
    ['{\n"a": }', 2, "'}'"], ['{"a":1,\n\n}', 3, "'}'"], ['{\n"a":1', 2, "ends"], ["[1,\n2,\n x]", 3, "'x'"], ['{\n"a":"b\n"}', 2, "'\"'"], ["", 1, "ends"],
    ['{"a":1}\n}', 2, "'}'"], ["[1,\n01]", 2, "'1'"], ['{"a"\n 1}', 2, "'1'"], ["[\n1 2]", 2, "'2'"], ["{\n1:2}", 2, "'1'"], ["[}", 1, "'}'"],
  ];
  for (const [text, line, reason] of lines) expect(readJsonText(text), text).toEqual({ line, reason: expect.stringContaining(reason) as string });
});
