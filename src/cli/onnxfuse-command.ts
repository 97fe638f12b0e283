/** What `onnxfuse` does: hands over to its commands. */
import { version } from "../compiler/version.ts";
import { fail, nearestName } from "../core/diagnostic.ts";
import { bench } from "./commands/bench.ts";
import type { Command } from "./commands/command.ts";
import { compare } from "./commands/compare.ts";
import { compileCommand } from "./commands/compile.ts";
import { explain } from "./commands/explain.ts";
import { inspect } from "./commands/inspect.ts";
import { profileCommand } from "./commands/profile.ts";
import { report } from "./commands/report.ts";
import { ruleCommand } from "./commands/rule.ts";
import { run } from "./commands/run.ts";
import { tuneCommand } from "./commands/tune.ts";
import { simplifyCommand } from "./commands/simplify.ts";
import { parseCommandLine } from "./command-line.ts";
import { errorLines, type Console } from "./main.ts";

const commands: readonly Command[] = [compileCommand, run, bench, profileCommand, tuneCommand, explain, report, inspect, compare, simplifyCommand, ruleCommand];

/** Runs onnxfuse; the exit code. */
export async function onnxfuse(argv: readonly string[], console: Console): Promise<number> {
  try {
    const [name, ...rest] = argv;
    if (name === undefined || name === "--help" || name === "-h" || name === "help") { console.out(helpText()); return name === undefined ? 1 : 0; }
    if (name === "--version" || name === "-V") { console.out(`onnxfuse ${version}`); return 0; }
    const command = commands.find((c) => c.name === name) ?? unknown(name);
    const line = parseCommandLine(rest, command);
    if (line.help !== undefined) { console.out(line.help.trimEnd()); return 0; }
    return await command.run(line, console);
  } catch (e) {
    console.progress?.();
    for (const text of errorLines(e)) console.error(text);
    return 1;
  }
}

function unknown(name: string): never {
  const near = nearestName(name, commands.map((c) => c.name));
  return fail("OF1001", `there is no command '${name}'`, { hint: near === undefined ? `the commands are ${commands.map((c) => c.name).join(", ")}` : `did you mean '${near}'?` });
}

function helpText(): string {
  const width = Math.max(...commands.map((c) => c.name.length + c.operands.length)) + 3;
  return ["Usage: onnxfuse <command> [options]", "", "Commands:", ...commands.map((c) => `  ${`${c.name} ${c.operands}`.padEnd(width)} ${c.doc}`), "", "onnxfuse <command> --help lists its options; onnxfuse --version says which this is."].join("\n");
}
