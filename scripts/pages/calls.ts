/** Finds diagnostics and refusals in the sources: calls whose first argument is a stable code, and literals with a `code`. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

export interface CodedCall {
  readonly code: string;
  /** The message as written; `…` stands for what it is filled with. */
  readonly message: string;
  /** The hint or remedy. */
  readonly hint: string;
}

/** Calls of functions named in `names`, in every source below src/ that is no test, by code and then message. */
export function codedCalls(names: ReadonlySet<string>): CodedCall[] {
  const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(".ts") && !f.endsWith(".test.ts"));
  const found = new Map<string, CodedCall>();
  for (const file of files) {
    const source = ts.createSourceFile(file, readFileSync(join("src", file), "utf8"), ts.ScriptTarget.ES2023, true);
    const remember = (call: CodedCall | undefined): void => { if (call) found.set(`${call.code} ${call.message}`, call); };
    const visit = (node: ts.Node): void => {
      ts.forEachChild(node, visit);
      if (ts.isObjectLiteralExpression(node)) remember(codedObject(node));
      if (!ts.isCallExpression(node)) return;
      const callee = ts.isPropertyAccessExpression(node.expression) ? node.expression.name.text : ts.isIdentifier(node.expression) ? node.expression.text : "";
      const [code, message, more] = node.arguments;
      if (!names.has(callee) || !code || !ts.isStringLiteral(code) || !message) return;
      remember({ code: code.text, message: textOf(message), hint: more ? hintOf(more) : "" });
    };
    visit(source);
  }
  return [...found.values()].sort((a, b) => (a.code + a.message < b.code + b.message ? -1 : 1));
}

/** `{ code: "OF2003", message: …, hint: … }`: a diagnostic that is collected, not thrown at once. */
function codedObject(node: ts.ObjectLiteralExpression): CodedCall | undefined {
  const part = (name: string): ts.Expression | undefined => node.properties.filter(ts.isPropertyAssignment).find((p) => p.name.getText() === name)?.initializer;
  const code = part("code"), message = part("message"), hint = part("hint");
  return code && message && ts.isStringLiteral(code) ? { code: code.text, message: textOf(message), hint: hint ? textOf(hint) : "" } : undefined;
}

function textOf(node: ts.Expression): string {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isTemplateExpression(node)) return node.head.text + node.templateSpans.map((s) => `…${s.literal.text}`).join("");
  if (ts.isConditionalExpression(node)) return `${textOf(node.whenTrue)} / ${textOf(node.whenFalse)}`;
  return "…";
}

function hintOf(node: ts.Expression): string {
  if (!ts.isObjectLiteralExpression(node)) return textOf(node);
  for (const p of node.properties) if (ts.isPropertyAssignment(p) && p.name.getText() === "hint") return textOf(p.initializer);
  return "";
}
