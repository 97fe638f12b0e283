/**
 * Damage to an artifact under checksums that are right again, so that the checks behind them are reached: the manifest's
 * JSON, the code, the weights, the table of sections.
 */
import { readContainer, writeContainer, type Section } from "../../src/artifact/container.ts";
import type { Random } from "../../test/support/random.ts";
import { mutateBytes } from "./byte-mutations.ts";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
const isObject = (v: Json | undefined): v is { [key: string]: Json } => typeof v === "object" && v !== null && !Array.isArray(v);

const numbers = [0, 1, -1, 2, 3, 7, 64, 0.5, 4096, 65536, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 40, 2 ** 53, 1e300, -(2 ** 31)] as const;
const values: readonly Json[] = [null, true, false, "", "x", "float32", "int64", "string", "__proto__", [], [null], [0], {}, { slot: 0 }, { slot: 1e9 }, { predicate: 1 }, { tensor: {} }, { input: "x" }, [[[[]]]]];

/** A container of the manifest, drawn level by level so that deep ones are found as often as wide ones. */
function place(root: Json, random: Random): { readonly at: Json[] | { [key: string]: Json }; readonly key: string; readonly path: string } | undefined {
  let here: Json = root, path = "";
  for (;;) {
    if (!Array.isArray(here) && !isObject(here)) return undefined;
    const keys = Object.keys(here);
    if (!keys.length) return undefined;
    const key = random.pick(keys), next: Json | undefined = Array.isArray(here) ? here[Number(key)] : here[key];
    path += `/${key}`;
    const deeper = typeof next === "object" && next !== null && Object.keys(next).length > 0 && random() < 0.9;
    if (!deeper || next === undefined) return { at: here, key, path };
    here = next;
  }
}

function set(at: Json[] | { [key: string]: Json }, key: string, value: Json): void {
  if (Array.isArray(at)) at[Number(key)] = value; else at[key] = value;
}
const get = (at: Json[] | { [key: string]: Json }, key: string): Json => (Array.isArray(at) ? at[Number(key)] : at[key]) ?? null;

/** Changes JSON in place; says where and how. */
export function mutateJson(root: Json, random: Random): string {
  const found = place(root, random);
  if (!found) return "nothing";
  const { at, key, path } = found, old = get(at, key);
  switch (random.int(6)) {
    case 0: if (Array.isArray(at)) at.splice(Number(key), 1); else delete at[key]; return `${path} is gone`;
    case 1: { const other = place(root, random); if (other) set(at, key, structuredClone(get(other.at, other.key))); return `${path} is as ${other?.path ?? "it was"}`; }
    case 2: if (Array.isArray(at)) { at.push(structuredClone(old)); return `${path} stands twice`; } set(at, key, [old]); return `${path} is in a list`;
    case 3: set(at, key, random.pick(values)); return `${path} = ${JSON.stringify(get(at, key))}`;
    case 4: if (typeof old === "number") { const by = random.pick([-1, 1, 4, -4, 64, -64, 1000]); set(at, key, old + by); return `${path} = ${old + by}`; }
  }
  const n = random.pick(numbers);
  set(at, key, n);
  return `${path} = ${n}`;
}

export interface ArtifactMutant { readonly bytes: Uint8Array; readonly done: string; /** Whether its code is no longer what the compiler made. */ readonly otherCode: boolean }

/** An artifact with one section damaged, its checksums right. */
export function mutateArtifact(bytes: Uint8Array, random: Random): ArtifactMutant {
  const sections = readContainer(bytes).map((s) => ({ ...s }));
  const kind = random.pick(["manifest", "manifest", "manifest", "manifest", "manifest", "manifest", "code", "weights", "relaxation", "report", "sections"] as const);
  if (kind === "sections") {
    const order = [...sections].sort(() => random() - 0.5).slice(random.int(2));
    return { bytes: writeContainer(order), done: `its sections are ${order.map((s) => s.kind).join(", ")}`, otherCode: true };
  }
  const index = sections.findIndex((s) => s.kind === kind), section = sections[index];
  if (!section) return mutateArtifact(bytes, random);
  const { bytes: changed, done } = kind === "manifest" && random() < 0.95 ? mutateManifest(section.bytes, random) : mutateBytes(section.bytes, random);
  const all: Section[] = sections.map((s, i) => (i === index ? { ...s, bytes: changed } : s));
  return { bytes: writeContainer(all), done: `${kind}: ${done}`, otherCode: kind === "code" || kind === "relaxation" };
}

function mutateManifest(bytes: Uint8Array, random: Random): { readonly bytes: Uint8Array; readonly done: string } {
  const manifest = JSON.parse(new TextDecoder().decode(bytes)) as Json, done: string[] = [];
  for (let n = random.pick([1, 1, 2]); n > 0; n--) done.push(mutateJson(manifest, random));
  return { bytes: new TextEncoder().encode(JSON.stringify(manifest)), done: done.join("; ") };
}
