/**
 * `--fusion_switch_file`: GE's two formats. Text: one `Name:on` or `Name:off` a line. JSON:
 * `{"Switch":{"GraphFusion":{"ALL":"off","Name":"on"},"UBFusion":{…}}}`; a named entry beats ALL.
 */
import { fail } from "../../core/diagnostic.ts";
import type { FusionSwitches } from "../../compiler/switches.ts";
import { parseJson } from "../json.ts";

/** Reads a switch file. Fails with OF4010 and the line or field that is wrong. */
export function parseSwitchFile(text: string, file: string): FusionSwitches {
  return text.trimStart().startsWith("{") ? fromJson(text, file) : fromLines(text, file);
}

function fromLines(text: string, file: string): FusionSwitches {
  const named = new Map<string, boolean>();
  text.split(/\r?\n/).forEach((raw, i) => {
    const line = raw.replace(/#.*$/, "").trim();
    if (line === "") return;
    const wrong = (message: string): never => fail("OF4010", message, { place: { file, line: i + 1 }, hint: "write Name:on or Name:off" });
    const parts = /^(\S+?)\s*:\s*([^:\s]+)$/.exec(line) ?? wrong(`'${line}' is not a switch`);
    const name = parts[1] ?? "", state = parts[2] ?? "";
    if (state !== "on" && state !== "off") wrong(`'${name}' is '${state}', neither on nor off`);
    if (named.has(name)) wrong(`'${name}' is switched twice`);
    named.set(name, state === "on");
  });
  return withAll(Object.fromEntries(named));
}

function fromJson(text: string, file: string): FusionSwitches {
  const wrong = (field: string, message: string): never => fail("OF4010", message, { place: { file, field }, hint: 'write {"Switch":{"GraphFusion":{"Name":"off"},"UBFusion":{"ALL":"off"}}}' });
  const root = parseJson(text, file, "OF4010");
  const isRecord = (x: unknown): x is Record<string, unknown> => typeof x === "object" && x !== null && !Array.isArray(x);
  const top = isRecord(root) && isRecord(root["Switch"]) ? root["Switch"] : wrong("Switch", "the file has no object 'Switch'");
  let out: FusionSwitches = {};
  const named = new Map<string, boolean>();
  for (const [group, entries] of Object.entries(top)) {
    if (group !== "GraphFusion" && group !== "UBFusion") wrong(`Switch.${group}`, `there is no group '${group}' of switches`);
    if (!isRecord(entries)) { wrong(`Switch.${group}`, `'${group}' is not an object`); continue; }
    for (const [name, state] of Object.entries(entries)) {
      if (state !== "on" && state !== "off") wrong(`Switch.${group}.${name}`, `'${name}' is ${JSON.stringify(state)}, neither "on" nor "off"`);
      if (name !== "ALL") named.set(name, state === "on");
      else out = { ...out, [group === "GraphFusion" ? "allRules" : "allRegions"]: state === "on" };
    }
  }
  return { ...out, named: Object.fromEntries(named) };
}

/** Switches by name, of which ALL stands for every one that is not named. */
export function withAll({ ALL: all, ...named }: Record<string, boolean>): FusionSwitches {
  return all === undefined ? { named } : { allRules: all, allRegions: all, named };
}

/** Switches that the environment sets: `GE_DISABLE_<NAME>_FUSION` is off unless its value is empty, 0 or false. */
export function switchesFromEnvironment(environment: Readonly<Record<string, string | undefined>>): FusionSwitches {
  const named: Record<string, boolean> = {};
  for (const [key, value] of Object.entries(environment)) {
    const name = /^GE_DISABLE_(\w+)_FUSION$/.exec(key)?.[1];
    if (name !== undefined && value !== undefined && !["", "0", "false", "off"].includes(value.toLowerCase())) named[name] = false;
  }
  return { named };
}

/** Both; what `over` names wins. */
export const joinSwitches = (base: FusionSwitches, over: FusionSwitches): FusionSwitches => ({ ...base, ...over, named: { ...base.named, ...over.named } });
