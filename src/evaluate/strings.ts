/** Operators on strings: joining, splitting (as Python's `str.split` does), and dropping and casing words. */
import { broadcastDims, broadcastSources } from "../core/strided.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, stringsOf, tensor } from "../core/tensor.ts";
import { input } from "./map-elements.ts";
import { numberOf, stringOf, stringsOf as wordsOf } from "./read-attribute.ts";

export const StringConcat: Evaluate = (inputs) => {
  const X = input(inputs, 0), Y = input(inputs, 1), dims = broadcastDims(X.dims, Y.dims);
  const x = stringsOf(X), y = stringsOf(Y), j = broadcastSources(Y.dims, dims);
  return [tensor("string", dims, Array.from(broadcastSources(X.dims, dims), (i, n) => (x[i] ?? "") + (y[j[n] ?? 0] ?? "")))];
};

/** Parts between runs of white space; what is left after `most` splits stays whole. */
function words(text: string, most: number): string[] {
  const out: string[] = [];
  let rest = text.trimStart();
  while (rest !== "") {
    const end = out.length < most ? rest.search(/\s/) : -1;
    if (end < 0) { out.push(rest); break; }
    out.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart();
  }
  return out;
}
function parts(text: string, delimiter: string, most: number): string[] {
  const all = text.split(delimiter);
  return all.length <= most + 1 ? all : [...all.slice(0, most), all.slice(most).join(delimiter)];
}

export const StringSplit: Evaluate = (inputs, attributes) => {
  const X = input(inputs, 0), delimiter = stringOf(attributes, "delimiter", ""), given = numberOf(attributes, "maxsplit", -1);
  const most = given < 0 ? Infinity : given;
  const split = stringsOf(X).map((s) => (delimiter === "" ? words(s, most) : parts(s, delimiter, most)));
  const width = split.reduce((n, p) => Math.max(n, p.length), 0);
  const padded = split.flatMap((p) => [...p, ...new Array<string>(width - p.length).fill("")]);
  return [tensor("string", [...X.dims, width], padded), fromNumbers("int64", X.dims, split.map((p) => p.length))];
};

/** Languages whose letters are cased otherwise than Unicode's own rules say. */
const specialCasing: ReadonlySet<string> = new Set(["az", "lt", "tr"]);

export const StringNormalizer: Evaluate = (inputs, attributes) => {
  const X = input(inputs, 0), [language = ""] = stringOf(attributes, "locale", "").toLowerCase().split(/[_.-]/);
  const special = specialCasing.has(language);
  const lower = (s: string): string => (special ? s.toLocaleLowerCase(language) : s.toLowerCase());
  const upper = (s: string): string => (special ? s.toLocaleUpperCase(language) : s.toUpperCase());
  const action = stringOf(attributes, "case_change_action", "NONE");
  const compared = numberOf(attributes, "is_case_sensitive", 0) !== 0 ? (s: string): string => s : lower;
  const stopwords = new Set((wordsOf(attributes, "stopwords") ?? []).map(compared));
  const kept = stringsOf(X).filter((s) => !stopwords.has(compared(s))).map((s) => (action === "LOWER" ? lower(s) : action === "UPPER" ? upper(s) : s));
  const results = kept.length ? kept : [""];
  return [tensor("string", [...X.dims.slice(0, -1), results.length], results)];
};
