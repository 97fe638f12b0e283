/** The parser of RE2's syntax for regular expressions; characters are whole code points. */

export type Matcher = (c: string) => boolean;
export type PatternNode =
  | { readonly kind: "character"; readonly accepts: Matcher }
  | { readonly kind: "assert"; readonly holds: (before: string | undefined, after: string | undefined) => boolean }
  | { readonly kind: "sequence"; readonly parts: readonly PatternNode[] }
  | { readonly kind: "either"; readonly options: readonly PatternNode[] }
  | { readonly kind: "repeat"; readonly body: PatternNode; readonly least: number; readonly most: number };

/** RE2's own limit on counted repetition. */
const mostRepeats = 1000;
const deepestNesting = 500;

/** The pattern's tree. Throws a SyntaxError that says what is wrong, at which character. */
export const parsePattern = (pattern: string): PatternNode => new Parser(pattern).parse();

interface Flags { readonly ignoreCase: boolean; readonly lines: boolean; readonly dotAll: boolean }

const isWord: Matcher = (c) => /^\w$/.test(c);
const between = (least: string, most: string): Matcher => (c) => { const p = c.codePointAt(0) ?? 0; return p >= (least.codePointAt(0) ?? 0) && p <= (most.codePointAt(0) ?? 0); };
const not = (accepts: Matcher): Matcher => (c) => !accepts(c);
const isSpace: Matcher = (c) => "\t\n\f\r ".includes(c);
const isDigit = between("0", "9");
const classes: Readonly<Record<string, Matcher>> = { d: isDigit, D: not(isDigit), s: isSpace, S: not(isSpace), w: isWord, W: not(isWord) };
const named: Readonly<Record<string, RegExp>> = {
  alnum: /^[0-9A-Za-z]$/, alpha: /^[A-Za-z]$/, ascii: /^[\0-\x7f]$/, blank: /^[\t ]$/, cntrl: /^(?=[\0-\x7f])\p{Cc}$/u, digit: /^[0-9]$/, graph: /^[!-~]$/,
  lower: /^[a-z]$/, print: /^[ -~]$/, punct: /^[!-/:-@[-`{-~]$/, space: /^[\t\n\v\f\r ]$/, upper: /^[A-Z]$/, word: /^\w$/, xdigit: /^[0-9A-Fa-f]$/,
};
const controls: Readonly<Record<string, string>> = { a: "\x07", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" };

class Parser {
  readonly #text: readonly string[];
  #at = 0;
  #depth = 0;
  #flags: Flags = { ignoreCase: false, lines: false, dotAll: false };

  constructor(pattern: string) { this.#text = [...pattern]; }

  parse(): PatternNode {
    const node = this.#either();
    if (this.#at < this.#text.length) this.#wrong("a ')' that closes nothing");
    return node;
  }

  #wrong(what: string): never { throw new SyntaxError(`${what} at character ${this.#at}`); }
  #peek(word: string): boolean { return [...word].every((c, i) => this.#text[this.#at + i] === c); }
  #take(word: string): boolean {
    if (!this.#peek(word)) return false;
    this.#at += [...word].length;
    return true;
  }
  #next(what: string): string { return this.#text[this.#at++] ?? this.#wrong(`${what} is cut off`); }

  #either(): PatternNode {
    if (++this.#depth > deepestNesting) this.#wrong("groups nested too deep");
    const options = [this.#sequence()];
    while (this.#take("|")) options.push(this.#sequence());
    this.#depth--;
    return options.length === 1 ? (options[0] as PatternNode) : { kind: "either", options };
  }

  #sequence(): PatternNode {
    const parts: PatternNode[] = [];
    while (this.#at < this.#text.length && !this.#peek("|") && !this.#peek(")")) {
      const quoted = this.#take("\\Q") ? this.#quoted() : [this.#atom()], last = quoted.pop();
      parts.push(...quoted, ...(last ? [this.#repeated(last)] : []));
    }
    return { kind: "sequence", parts };
  }
  #quoted(): PatternNode[] {
    const out: PatternNode[] = [];
    while (this.#at < this.#text.length && !this.#take("\\E")) out.push(this.#character(is(this.#next("a quotation"))));
    return out;
  }

  #repeated(atom: PatternNode): PatternNode {
    let node = atom;
    for (let count = this.#count(); count; count = this.#count()) {
      node = { kind: "repeat", body: node, ...count };
      this.#take("?");
    }
    return node;
  }
  #count(): { least: number; most: number } | undefined {
    if (this.#take("*")) return { least: 0, most: Infinity };
    if (this.#take("+")) return { least: 1, most: Infinity };
    if (this.#take("?")) return { least: 0, most: 1 };
    const [whole, from = "", comma = "", to = ""] = /^\{(\d+)(,(\d*))?\}/.exec(this.#text.slice(this.#at, this.#at + 12).join(""))?.map((s) => s ?? "") ?? [];
    if (whole === undefined) return undefined;
    this.#at += whole.length;
    const least = Number(from), most = comma === "" ? least : to === "" ? Infinity : Number(to);
    if (least > mostRepeats || (most !== Infinity && most > mostRepeats) || most < least) this.#wrong(`the repetition ${whole} makes no sense`);
    return { least, most };
  }

  #atom(): PatternNode {
    const c = this.#next("the pattern"), { lines, dotAll } = this.#flags;
    switch (c) {
      case "(": return this.#group();
      case "[": return { kind: "character", accepts: this.#set() };
      case ".": return { kind: "character", accepts: dotAll ? () => true : (x) => x !== "\n" };
      case "^": return { kind: "assert", holds: (before) => before === undefined || (lines && before === "\n") };
      case "$": return { kind: "assert", holds: (_, after) => after === undefined || (lines && after === "\n") };
      case "\\": return this.#escape();
      case "*": case "+": case "?": return this.#wrong(`'${c}' repeats nothing`);
      default: return this.#character(is(c));
    }
  }

  #group(): PatternNode {
    const around = this.#flags;
    if (this.#take("?")) {
      if (this.#take("P<") || (this.#peek("<") && !this.#peek("<=") && !this.#peek("<!") && this.#take("<"))) {
        while (this.#next("a group's name") !== ">");
      } else if (this.#setFlags()) return { kind: "sequence", parts: [] };
    }
    const node = this.#either();
    if (!this.#take(")")) this.#wrong("a '(' that is not closed");
    this.#flags = around;
    return node;
  }
  /** `i-s:` opens a group with these flags; `i)` sets them for the rest of the group around: then the answer is true. */
  #setFlags(): boolean {
    let on = true, { ignoreCase, lines, dotAll } = this.#flags;
    for (;;) {
      const c = this.#next("a group");
      if (c === "i") ignoreCase = on;
      else if (c === "m") lines = on;
      else if (c === "s") dotAll = on;
      else if (c === "-" && on) on = false;
      else if (c === ":" || c === ")") { this.#flags = { ignoreCase, lines, dotAll }; return c === ")"; }
      else if (c !== "U") this.#wrong(`a group '(?${c}'`);
    }
  }

  #character(accepts: Matcher): PatternNode { return { kind: "character", accepts: this.#folded(accepts) }; }
  /** Where case is ignored, what a character's other case matches, it matches too. */
  #folded(accepts: Matcher): Matcher { return this.#flags.ignoreCase ? (c) => accepts(c) || accepts(c.toLowerCase()) || accepts(c.toUpperCase()) : accepts; }

  #escape(): PatternNode {
    const word = (before: string | undefined, after: string | undefined): boolean => (before !== undefined && isWord(before)) !== (after !== undefined && isWord(after));
    if (this.#take("A")) return { kind: "assert", holds: (before) => before === undefined };
    if (this.#take("z")) return { kind: "assert", holds: (_, after) => after === undefined };
    if (this.#take("b")) return { kind: "assert", holds: word };
    if (this.#take("B")) return { kind: "assert", holds: (before, after) => !word(before, after) };
    const known = this.#class();
    return known ? { kind: "character", accepts: known } : this.#character(is(this.#escaped()));
  }

  /** A class by letter or by Unicode property, the backslash behind. */
  #class(): Matcher | undefined {
    const c = this.#text[this.#at] ?? this.#wrong("a '\\' is cut off");
    const known = Object.hasOwn(classes, c) ? classes[c] : undefined;
    if (known) { this.#at++; return known; }
    if (c !== "p" && c !== "P") return undefined;
    this.#at++;
    let name = this.#next("a property");
    if (name === "{") for (name = ""; !this.#take("}");) name += this.#next("a property");
    const negated = (c === "P") !== name.startsWith("^");
    const accepts = property(name.replace(/^\^/, "")) ?? this.#wrong(`no property '${name}'`);
    return negated ? not(this.#folded(accepts)) : this.#folded(accepts);
  }
  #escaped(): string {
    const c = this.#next("a '\\'");
    if (Object.hasOwn(controls, c)) return controls[c] ?? c;
    if (c === "x") {
      const digits = this.#take("{") ? this.#until("}") : this.#next("a code") + this.#next("a code");
      return /^[0-9A-Fa-f]{1,6}$/.test(digits) && parseInt(digits, 16) <= 0x10ffff ? String.fromCodePoint(parseInt(digits, 16)) : this.#wrong(`'${digits}' is no character`);
    }
    if (c === "0") return String.fromCodePoint(parseInt(`0${/^[0-7]{0,2}/.exec(this.#text.slice(this.#at, this.#at + 2).join(""))?.[0] ?? ""}`, 8));
    return /^[A-Za-z0-9]$/.test(c) ? this.#wrong(`'\\${c}' has no meaning`) : c;
  }
  #until(end: string): string {
    let out = "";
    while (!this.#take(end)) out += this.#next("a code");
    return out;
  }

  /** `[…]`, the bracket behind. */
  #set(): Matcher {
    const negated = this.#take("^"), members: Matcher[] = [];
    for (let first = true; first || !this.#take("]"); first = false) {
      const known = this.#take("[:") ? this.#named() : this.#peek("\\") ? this.#escapedClass() : undefined;
      if (known) { members.push(known); continue; }
      const least = this.#member();
      const ranges = this.#peek("-") && this.#text[this.#at + 1] !== "]" && this.#take("-");
      const most = ranges ? this.#member() : least;
      if ((most.codePointAt(0) ?? 0) < (least.codePointAt(0) ?? 0)) this.#wrong(`the range ${least}-${most} is empty`);
      members.push(this.#folded(between(least, most)));
    }
    return (c) => members.some((m) => m(c)) !== negated;
  }
  #member(): string { return this.#take("\\") ? this.#escaped() : this.#next("a '['"); }
  #escapedClass(): Matcher | undefined {
    this.#at++;
    const found = this.#class();
    if (!found) this.#at--;
    return found;
  }
  #named(): Matcher {
    const negated = this.#take("^");
    let name = "";
    while (!this.#take(":]")) name += this.#next("a class");
    const found = Object.hasOwn(named, name) ? named[name] : undefined;
    if (!found) return this.#wrong(`no class '${name}'`);
    const accepts = this.#folded((c) => found.test(c));
    return negated ? not(accepts) : accepts;
  }
}

const is = (wanted: string): Matcher => (c) => c === wanted;

/** Characters of a Unicode category or script. */
function property(name: string): Matcher | undefined {
  for (const form of [name, `Script=${name}`]) {
    try {
      const found = new RegExp(`^\\p{${form}}$`, "u");
      return (c) => found.test(c);
    } catch { /* Not of this form. */ }
  }
  return undefined;
}
