/** Parses the command lines of `onnxfuse` commands with commander; errors become diagnostics. */
import { Command as Parser, CommanderError, Option } from "commander";
import { fail, nearestName } from "../core/diagnostic.ts";
import type { Command, CommandLine } from "./commands/command.ts";

/** Fails with OF1001 (unknown option, missing operand) or OF1002 (wrong or missing value). */
export function parseCommandLine(argv: readonly string[], command: Command): CommandLine {
  const parser = new Parser(`onnxfuse ${command.name}`).description(command.doc).helpOption("-h, --help").exitOverride();
  let help = "";
  parser.configureOutput({ writeOut: (text) => { help += text; }, writeErr: () => undefined });
  for (const part of command.operands.split(" ").filter((p) => p !== "")) parser.argument(part);
  const names = command.options.map((o) => o.flags.split(" ")[0] ?? "");
  for (const o of command.options) {
    const option = new Option(`--${o.flags.replace("...", "")}`, o.doc);
    if (o.flags.includes("...")) option.argParser((value: string, before: readonly string[] | undefined) => [...(before ?? []), value]);
    parser.addOption(option);
  }
  try {
    parser.parse([...argv], { from: "user" });
  } catch (e) {
    if (!(e instanceof CommanderError)) throw e;
    if (e.code !== "commander.helpDisplayed") explain(e, names);
  }
  const given: Record<string, unknown> = parser.opts();
  const key = (name: string): string => name.replace(/-([a-z])/g, (_, c: string) => c.toUpperCase());
  const value = (name: string): string | undefined => {
    const v = given[key(name)];
    return Array.isArray(v) ? String(v.at(-1)) : typeof v === "string" ? v : undefined;
  };
  return {
    operands: parser.args,
    value,
    values: (name) => { const v = given[key(name)]; return Array.isArray(v) ? v.map(String) : typeof v === "string" ? [v] : []; },
    has: (name) => (name.startsWith("no-") ? given[key(name.slice(3))] === false : given[key(name)] === true),
    count: (name, otherwise, least = 0) => {
      const text = value(name);
      if (text === undefined) return otherwise;
      const n = /^\d+$/.test(text) ? Number(text) : NaN;
      if (!(n >= least)) fail("OF1002", `--${name} ${text} is not a whole number of at least ${least}`);
      return n;
    },
    ...(help === "" ? {} : { help }),
  };
}

function explain(e: CommanderError, names: readonly string[]): never {
  const message = e.message.replace(/^error: /, "").replace(/\.$/, "");
  if (e.code === "commander.unknownOption") {
    const written = (/'([^']*)'/.exec(e.message)?.[1] ?? "").replace(/=.*$/, ""), option = written.replace(/^--?/, "");
    const near = option.length === 1 ? names.find((n) => n.startsWith(option)) : nearestName(option.replaceAll("_", "-"), names);
    fail("OF1001", `there is no option ${written}`, { hint: near === undefined ? "see --help" : `did you mean --${near}?` });
  }
  if (e.code === "commander.optionMissingArgument") fail("OF1002", message, { hint: "see --help" });
  fail("OF1001", message, { hint: "see --help" });
}
