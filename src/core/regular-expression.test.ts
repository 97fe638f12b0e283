import { describe, expect, it } from "vitest";
import { fullMatcher } from "./regular-expression.ts";

/** Patterns that mean the same in JavaScript, and texts to try them on. */
const shared: readonly string[] = [
  "", "a", "ab|cd|", "a*b+c?", "(a|b)*abb", "(?:ab){2,3}", "a{2}", "a{2,}", "[a-c]x[^a-c]", "\\w+@\\w+\\.com", "[\\w.\\-]{0,3}", "(a*)*b",
  "^a$|b^", "\\bfoo\\b.*", "a\\Bb", "[\\d-]+", "(a|b|)+c", "a.c", "x*?y+?", "\\x61", "\\.\\*\\\\", "(?<n>a)b",
];
const texts: readonly string[] = [
  "", "a", "b", "ab", "cd", "aab", "abc", "aabbc", "abb", "babb", "abab", "ababab", "aa", "aaa", "axd", "axa", "]", "-", "x@y.com", "x@ycom", "w.-", "w.-w", "foo", "foo bar", "foob",
  "1-2", "c", "aabc", "a\nc", "axc", "xxyy", "xx", ".*\\", "é", "aaaaaaaaaaaaaaaaaaaaaaaaaaac",
];

describe("regular expressions in RE2's syntax", () => {
  it.each(shared)("%j matches what JavaScript says", (pattern) => {
    const matches = fullMatcher(pattern), other = new RegExp(`^(?:${pattern})$`, "u");
    for (const text of texts) expect([text, matches(text)]).toEqual([text, other.test(text)]);
  });
  it.each<[string, readonly string[], readonly string[]]>([
    ["(?i)Word|[^a]b", ["wORD", "xB"], ["ab", "AB"]],
    ["a(?i:b)c", ["abc", "aBc"], ["Abc", "abC"]],
    ["(?s).(?-s:.)", ["\na"], ["a\n"]],
    ["(?m)a$\\n^b", ["a\nb"], ["ab"]],
    ["[[:alpha:]_]+[[:^digit:]]", ["a_b"], ["a_1"]],
    ["\\Qa.b\\E+", ["a.b", "a.bb"], ["axb"]],
    ["\\pL\\p{Greek}\\P{L}[^\\p{Lu}]", ["xα1y"], ["xa1y", "xα1Y"]],
    ["\\A(?P<year>\\d{4})\\z", ["1999"], ["199"]],
    ["..", ["😀é"], ["😀"]],
  ])("%j has RE2's own meaning", (pattern, yes, no) => {
    const matches = fullMatcher(pattern);
    expect([...yes, ...no].map(matches)).toEqual([...yes.map(() => true), ...no.map(() => false)]);
  });
  it("takes time linear in the text where others try every way", () => {
    expect(fullMatcher("(a*)*(a*)*(a|aa)+b")("a".repeat(2000))).toBe(false);
  });
  it.each(["(", ")", "a)", "[a", "*a", "a{2000}", "a{3,2}", "(?=a)", "(?<=a)b", "\\1", "\\q", "[b-a]", "\\p{Nothing}", "(?P<n", "\\", "((a{1000}){1000}){1000}", "[[:nope:]]", "(".repeat(600)])("%j is refused", (pattern) => {
    expect(() => fullMatcher(pattern)).toThrow(SyntaxError);
  });
});
