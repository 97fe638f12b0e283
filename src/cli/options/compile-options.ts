/** Compilation options from the command line of `onnxfuse` commands. */
import type { CompileOptions } from "../../api/index.ts";
import { fail } from "../../core/diagnostic.ts";
import type { CommandLine } from "../commands/command.ts";
import { readChoices } from "./choices-file.ts";
import { parseDims } from "./dims.ts";
import { ruleOptions } from "./fusion-rules.ts";
import { fusionSwitchesOf } from "./fusion-switches.ts";
import { parseInputShapes } from "./input-shapes.ts";
import { parseStates } from "./states.ts";

/** `withChoices`: those of `--choices` too. */
export async function compileOptionsOf(line: CommandLine, withChoices = true): Promise<CompileOptions> {
  const choices = line.value("choices"), weights = line.value("weights");
  if (weights !== undefined && weights !== "f16" && weights !== "int8") fail("OF1002", `--weights ${weights} is not accepted`, { hint: "use f16 or int8" });
  const fuel = line.value("max-rewrites");
  return {
    inputShapes: parseInputShapes(line.values("shape").join(";"), "shape"),
    dims: parseDims(line.values("dim")),
    ...(line.values("state").length ? { states: parseStates(line.values("state")) } : {}),
    enableFusion: !line.has("no-fusion"),
    freezeInitializers: line.has("freeze-initializers"),
    allowApproximate: line.has("allow-approximate") || line.values("approximate"),
    ...(fuel === undefined ? {} : { fuel: line.count("max-rewrites", 0, 0) }),
    ...(line.values("keep-dtype").length ? { keepDtype: line.values("keep-dtype") } : {}),
    ...(withChoices && choices !== undefined ? { choices: readChoices(choices) } : {}),
    ...(weights === undefined ? {} : { weights }),
    winograd: !line.has("no-winograd"),
    fusionSwitches: fusionSwitchesOf({
      file: line.value("fusion-switches"), environment: process.env, onlyRule: line.value("only-rule"),
      inline: [...line.values("disable").map((name) => `${name}:off`), ...line.values("enable").map((name) => `${name}:on`)].join(";"),
    }),
    ...(await ruleOptions(line.value("fusion-rules"), line.value("rules"))),
  };
}
