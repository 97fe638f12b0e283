/**
 * Where fusion switches come from, in GE's order of precedence: what is given inline beats the level, which beats the
 * environment and the switch file; what is named beats ALL within one source.
 */
import { fail } from "../../core/diagnostic.ts";
import type { FusionSwitches } from "../../compiler/switches.ts";
import { readText } from "../files.ts";
import { joinSwitches, parseSwitchFile, switchesFromEnvironment, withAll } from "./fusion-switch-file.ts";

export interface SwitchSources {
  readonly file: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** O1 switches everything off. */
  readonly level?: string | undefined;
  /** `A:on;B:off` */
  readonly inline: string | undefined;
  /** The one rule that stays on. */
  readonly onlyRule: string | undefined;
}

/** All sources as one. Fails with OF1004 and OF4010. */
export function fusionSwitchesOf({ file, environment, level, inline, onlyRule }: SwitchSources): FusionSwitches {
  const settings = joinSwitches(file === undefined ? {} : parseSwitchFile(readText(file, "the switch file"), file), switchesFromEnvironment(environment));
  const levelled: FusionSwitches = level === "O1" ? { allRules: false, allRegions: false } : settings;
  const only: FusionSwitches = onlyRule === undefined ? {} : { allRules: false, named: { [onlyRule]: true } };
  return joinSwitches(joinSwitches(levelled, only), parseInline(inline ?? ""));
}

function parseInline(text: string): FusionSwitches {
  const named = new Map<string, boolean>();
  for (const entry of text.split(";").map((e) => e.trim()).filter((e) => e !== "")) {
    const [, name = "", state] = /^(\S+):(on|off)$/.exec(entry) ?? fail("OF4010", `'${entry}' is not a switch`, { place: { field: "optimization_switch" }, hint: 'write "NameA:on;NameB:off"' });
    if (named.has(name)) fail("OF4010", `'${name}' is switched twice`, { place: { field: "optimization_switch" }, hint: 'write "NameA:on;NameB:off"' });
    named.set(name, state === "on");
  }
  return withAll(Object.fromEntries(named));
}
