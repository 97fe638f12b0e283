/** Compilation options from the command line of `onnxfuse` commands. */
import type { CompileOptions } from "../api/index.ts";
import type { CommandLine } from "./commands/command.ts";
import { parseDims } from "./dims.ts";
import { readText } from "./files.ts";
import { readRulesFile } from "./fusion-rules.ts";
import { joinSwitches, parseSwitchFile, switchesFromEnvironment } from "./fusion-switch-file.ts";
import { parseInputShapes } from "./input-shapes.ts";

export function compileOptionsOf(line: CommandLine): CompileOptions {
  const switches = line.value("fusion-switches"), rules = line.value("fusion-rules");
  const fromFile = switches === undefined ? {} : parseSwitchFile(readText(switches, "the switch file"), switches);
  const disabled = { named: Object.fromEntries(line.values("disable").map((name): [string, boolean] => [name, false])) };
  return {
    inputShapes: parseInputShapes(line.values("shape").join(";"), "shape"),
    dims: parseDims(line.values("dim")),
    enableFusion: !line.has("no-fusion"),
    freezeInitializers: line.has("freeze-initializers"),
    allowApproximate: line.has("allow-approximate"),
    ...(line.values("keep-dtype").length ? { keepDtype: line.values("keep-dtype") } : {}),
    winograd: !line.has("no-winograd"),
    fusionSwitches: joinSwitches(joinSwitches(fromFile, switchesFromEnvironment(process.env)), disabled),
    ...(rules === undefined ? {} : { customRules: readRulesFile(rules) }),
  };
}
