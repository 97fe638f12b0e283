/** Command lines: parsed by commander, with errors as diagnostics. */
import { Command, CommanderError, Option } from "commander";
import { fail, nearestName } from "../core/diagnostic.ts";
import type { OptionSpec } from "./options/atc-options.ts";

export type Values = Readonly<Record<string, string | undefined>>;

/**
 * Option values by name. `--name=value`, `--name value`, and `--name` alone for booleans are accepted. Fails with
 * OF1001 (unknown option, with the nearest name), OF1002 (a value that is not accepted or is missing).
 * Gives the help text when it is asked for.
 */
export function parseOptions(argv: readonly string[], specs: readonly OptionSpec[], intro: { readonly name: string; readonly description: string }): Values | { readonly help: string } {
  const command = new Command(intro.name).description(intro.description).helpOption("-h, --help").exitOverride().allowExcessArguments(false);
  let help = "";
  command.configureOutput({ writeOut: (text) => { help += text; }, writeErr: () => undefined });
  for (const s of specs) {
    const isBoolean = s.choices?.join() === "true,false";
    command.addOption(new Option(`--${s.name} ${isBoolean ? s.value.replace("<", "[").replace(">", "]") : s.value}`, s.doc));
  }
  try {
    command.parse([...argv], { from: "user" });
  } catch (e) {
    if (!(e instanceof CommanderError)) throw e;
    if (e.code === "commander.helpDisplayed") return { help };
    return explain(e, specs);
  }
  const values: Record<string, string | undefined> = {};
  for (const s of specs) {
    const given: unknown = command.getOptionValue(camel(s.name));
    if (given === undefined) continue;
    const value = given === true ? "true" : String(given).replace(/^"(.*)"$/s, "$1");
    if (s.choices && !s.choices.includes(value)) fail("OF1002", `--${s.name}=${value} is not accepted`, { place: { field: s.name }, hint: `use one of ${s.choices.join(", ")}` });
    values[s.name] = value;
  }
  return values;
}

/** Commander keeps names with dashes in camel case, those with underscores as they are. */
const camel = (name: string): string => name.replace(/-([a-z])/g, (_, c: string) => c.toUpperCase());

function explain(e: CommanderError, specs: readonly OptionSpec[]): never {
  const option = /'([^']*)'/.exec(e.message)?.[1] ?? "";
  switch (e.code) {
    case "commander.unknownOption": {
      const name = option.replace(/^--?/, "").replace(/=.*$/, "");
      const near = nearestName(name, specs.map((s) => s.name));
      return fail("OF1001", `there is no option --${name}`, { hint: near === undefined ? "see --help" : `did you mean --${near}?` });
    }
    case "commander.optionMissingArgument": return fail("OF1002", `${option.split(" ")[0] ?? ""} needs a value`, { hint: "see --help" });
    case "commander.excessArguments": return fail("OF1001", e.message.replace(/^error: /, "").replace(/\.$/, ""), { hint: "options start with --" });
    default: return fail("OF1001", e.message.replace(/^error: /, "").replace(/\.$/, ""), { hint: "see --help" });
  }
}
