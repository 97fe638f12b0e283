/** Artifacts as a whole: manifest, code by engine, weights, and the fusion report, which is parsed only when asked for. */
import { fail } from "../core/diagnostic.ts";
import { dtypes } from "../core/dtype.ts";
import { readContainer, writeContainer, type Section } from "./container.ts";
import type { CodeJson, DataJson, ExternalPieceJson, Manifest, StepJson } from "./manifest.ts";

export interface ArtifactParts {
  /** All but `code`, which follows from the sections. */
  readonly manifest: Omit<Manifest, "code">;
  readonly code: Uint8Array;
  /** What to change in the code for relaxed SIMD; empty where it would be the same. */
  readonly relaxation: Uint8Array;
  readonly weights: Uint8Array;
  /** Anything JSON can hold; absent in stripped artifacts. */
  readonly report?: unknown;
}

export interface Artifact {
  readonly manifest: Manifest;
  /** The bytes of a section that the manifest names. */
  readonly section: (index: number) => Uint8Array;
  readonly weights: Uint8Array;
  /** The fusion report; undefined where it was stripped. */
  readonly report: () => unknown;
  /** Kind and bytes of each section in file order. */
  readonly sections: readonly Section[];
}

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

/** One file from its parts; deterministic. */
export function writeArtifact(parts: ArtifactParts): Uint8Array {
  const relaxed = parts.relaxation.length > 0;
  const code: CodeJson = { target: "wasm", section: 1, ...(relaxed ? { relaxation: 2 } : {}) };
  const manifest: Manifest = { ...parts.manifest, code: [code] };
  return writeContainer([
    { kind: "manifest", bytes: encode(manifest) },
    { kind: "code", bytes: parts.code },
    ...(relaxed ? [{ kind: "relaxation", bytes: parts.relaxation } as const] : []),
    { kind: "weights", bytes: parts.weights },
    ...(parts.report === undefined ? [] : [{ kind: "report", bytes: encode(parts.report) } as const]),
  ]);
}

/** Opens an artifact without copying; weights that lie in other files are not read (`attachWeights` does). Fails with OF6001 to OF6004 unless it is whole and consistent. */
export function readArtifact(bytes: Uint8Array): Artifact {
  const sections = readContainer(bytes);
  const find = (kind: Section["kind"]): Uint8Array | undefined => sections.find((s) => s.kind === kind)?.bytes;
  const weights = find("weights") ?? inconsistent("it has no weights section");
  const manifest = parse(find("manifest") ?? inconsistent("it has no manifest"), "manifest") as Manifest;
  checkShape(manifest, () => checkManifest(manifest, sections, manifest.external ? externalBytes(manifest.external) : weights.byteLength));
  return {
    manifest,
    section: (index) => sections[index]?.bytes ?? inconsistent(`section ${index} is missing`),
    weights,
    report: () => { const section = find("report"); return section && parse(section, "report"); },
    sections,
  };
}

/** The same artifact without its report. */
export function stripReport(bytes: Uint8Array): Uint8Array {
  return writeContainer(readContainer(bytes).filter((s) => s.kind !== "report"));
}

const inconsistent = (what: string): never => fail("OF6004", `the artifact is inconsistent: ${what}`, { hint: "compile the model again" });

function parse(section: Uint8Array, what: string): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(section));
  } catch {
    return inconsistent(`its ${what} is not JSON`);
  }
}

/** Length of a weights section in other files, whose names stay beside the artifact. */
function externalBytes(pieces: readonly ExternalPieceJson[]): number {
  for (const { file, offset, length } of pieces) {
    if (typeof file !== "string" || /^[\\/]|^[A-Za-z][\w+.-]*:|(^|[\\/])\.\.([\\/]|$)|\0/.test(file)) inconsistent(`its weights lie in '${file}', outside its folder`);
    if (!(offset >= 0 && length >= 0)) inconsistent("its weights lie nowhere");
  }
  return pieces.reduce((end, p) => Math.max(end, p.offset + p.length), 0);
}

/** Runs a check that takes the manifest's form for granted. */
function checkShape(manifest: unknown, check: () => void): void {
  if (typeof manifest !== "object" || manifest === null) inconsistent("its manifest is not an object");
  try {
    check();
  } catch (e) {
    if (e instanceof TypeError) inconsistent("its manifest has not the form of one");
    throw e;
  }
}

/** Indices and lengths that the runtime relies on. */
function checkManifest(m: Manifest, sections: readonly Section[], weightBytes: number): void {
  for (const key of ["inputs", "outputs", "code", "buffers", "steps", "weights"] as const) if (!Array.isArray(m[key])) inconsistent(`its manifest has no ${key}`);
  for (const c of m.code) {
    if (sections[c.section]?.kind !== "code") inconsistent(`section ${c.section} is not code`);
    if (c.relaxation !== undefined && sections[c.relaxation]?.kind !== "relaxation") inconsistent(`section ${c.relaxation} is no relaxation`);
  }
  for (const p of [...m.inputs, ...m.outputs, ...m.buffers]) if (!Array.isArray(p.dims) || !Object.hasOwn(dtypes, p.dtype)) inconsistent(`'${p.name}' has no type`);
  if (![m.memory.sizes, m.memory.arena].every(Array.isArray)) inconsistent("it has no memory plan");
  const buffer = (i: number | null): void => { if (i !== null && !m.buffers[i]) inconsistent(`there is no buffer ${i}`); };
  const data = (d: DataJson): void => { if (!(d.offset >= 0 && d.length >= 0 && d.offset + d.length <= weightBytes)) inconsistent("a weight lies outside its section"); };
  for (const p of [...m.inputs, ...m.outputs]) buffer(p.buffer);
  for (const i of m.inputs) if (i.default) data(i.default);
  for (const w of m.weights) {
    if (!(w.at >= 0 && w.bytes >= 0 && w.at + w.bytes <= m.memory.fixedEnd)) inconsistent("a weight lies outside the memory");
    if (!("input" in w.source)) data(w.source);
    else { const { input } = w.source; if (!m.inputs.some((i) => i.name === input && i.default)) inconsistent(`there is no input '${input}' with a default`); }
  }
  const step = (s: StepJson): void => {
    if ("host" in s) { [...s.inputs, ...s.outputs].forEach(buffer); for (const a of Object.values(s.attributes)) if (typeof a === "object" && "tensor" in a) data(a.tensor); }
    else if ("if" in s) { if (typeof s.if === "number") buffer(s.if); s.then.forEach(step); s.else.forEach(step); }
    else if ("loop" in s) { [typeof s.count === "number" ? s.count : null, s.condition, s.next, s.iteration, ...s.carry.flat(), ...s.stack.flat()].forEach(buffer); s.loop.forEach(step); }
    else if ("move" in s) s.move.flat().forEach(buffer);
    else if ("check" in s) s.check.forEach(buffer);
    else if (!("run" in s && Array.isArray(s.calls))) inconsistent("it has a step of no known kind");
  };
  m.steps.forEach(step);
}
