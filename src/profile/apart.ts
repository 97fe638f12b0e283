/**
 * An artifact with every kernel call a step of its own, so that a run's observer is told of each. The kernels' code stays
 * as it is, bit for bit: only the exported functions, each a list of calls, are cut at their calls. So any artifact can be
 * profiled, and what is timed is what runs.
 */
import type { Artifact } from "../artifact/artifact.ts";
import { writeArtifact } from "../artifact/artifact.ts";
import { inconsistent } from "../artifact/inconsistent.ts";
import type { StepJson } from "../artifact/manifest.ts";
import { codeFor } from "../backends/wasm/load.ts";
import { unsigned } from "../backends/wasm/opcodes.ts";

/** A step that takes time of its own. */
export interface ApartStep {
  readonly kind: "kernel" | "host";
  /** The kernel's name, or the host operator's type. */
  readonly name: string;
  /** The region's kind, or the operator. */
  readonly label: string;
}
export interface Apart {
  readonly artifact: Uint8Array;
  /** By number; a step's label in the artifact is its number. */
  readonly steps: readonly ApartStep[];
}

/** Takes an artifact apart, with the code that suits this engine. Its weights must be attached. Fails with OF6004 where code and manifest disagree. */
export function takeApart(artifact: Artifact): Apart {
  const steps: ApartStep[] = [], segments: Call[] = [];
  const number = (step: ApartStep): string => String(steps.push(step) - 1);
  const walk = (list: readonly StepJson[]): StepJson[] => list.flatMap((s): StepJson[] => {
    if ("run" in s) {
      return s.calls.map(([kernel, label, functions = 1]) => {
        segments.push({ segment: s.run, functions });
        return { run: segments.length - 1, calls: [[kernel, number({ kind: "kernel", name: kernel, label })]] };
      });
    }
    if ("host" in s) return [{ ...s, label: number({ kind: "host", name: s.host, label: s.label }) }];
    if ("if" in s) return [{ ...s, then: walk(s.then), else: walk(s.else) }];
    return "loop" in s ? [{ ...s, loop: walk(s.loop) }] : [s];
  });
  const { code: _, external: _files, ...manifest } = artifact.manifest;
  const apart = walk(manifest.steps);
  const { code, relaxed } = codeFor(artifact);
  return { steps, artifact: writeArtifact({ manifest: { ...manifest, steps: apart }, code: cutCalls(code, segments), relaxed, relaxation: new Uint8Array(), weights: artifact.weights }) };
}

/** A kernel's calls in a segment: of so many functions. */
interface Call { readonly segment: number; readonly functions: number }

/**
 * The same of an artifact whose kernels were compiled as steps of their own (`separateSteps`): only their labels change,
 * so that its code for threads still fits.
 */
export function labelled(artifact: Artifact): Apart {
  const steps: ApartStep[] = [];
  const number = (step: ApartStep): string => String(steps.push(step) - 1);
  const walk = (list: readonly StepJson[]): StepJson[] => list.map((s): StepJson => {
    if ("run" in s) return { ...s, calls: s.calls.map(([kernel, label, ...functions]) => [kernel, number({ kind: "kernel", name: kernel, label }), ...functions]) };
    if ("host" in s) return { ...s, label: number({ kind: "host", name: s.host, label: s.label }) };
    if ("if" in s) return { ...s, then: walk(s.then), else: walk(s.else) };
    return "loop" in s ? { ...s, loop: walk(s.loop) } : s;
  });
  const { code, external: _files, ...manifest } = artifact.manifest;
  const [{ section, relaxation, threads } = inconsistent("it has no code")] = code;
  const part = (index: number | undefined): Uint8Array => (index === undefined ? new Uint8Array() : artifact.section(index));
  const apart = walk(manifest.steps);
  return { steps, artifact: writeArtifact({ manifest: { ...manifest, steps: apart }, code: artifact.section(section), relaxation: part(relaxation), threads: part(threads), weights: artifact.weights }) };
}

/** Reads a module's bytes. */
class Reader {
  at: number;
  readonly bytes: Uint8Array;
  constructor(bytes: Uint8Array, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }
  byte(): number { return this.bytes[this.at++] ?? inconsistent("its code ends early"); }
  /** An unsigned LEB128 of up to 32 bits; one with a sign has the same length. */
  leb(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const b = this.byte();
      value += (b & 127) * 2 ** shift;
      if (b < 128) return value;
    }
  }
  take(length: number): Uint8Array { this.at += length; return this.bytes.subarray(this.at - length, this.at); }
  name(): string { return new TextDecoder().decode(this.take(this.leb())); }
}

interface Section { readonly id: number; readonly body: Uint8Array }
const ids = { imports: 2, functions: 3, exports: 7, code: 10 } as const;

/**
 * The module with an exported function `run_<n>` for the n-th call of all, instead of one for every segment. `segments`
 * gives each kernel's segment, in the order in which they run.
 */
function cutCalls(module: Uint8Array, segments: readonly Call[]): Uint8Array {
  const sections: Section[] = [], reader = new Reader(module, 8);
  while (reader.at < module.length) sections.push({ id: reader.byte(), body: reader.take(reader.leb()) });
  const body = (id: number): Uint8Array => sections.find((s) => s.id === id)?.body ?? new Uint8Array([0]);
  if (sections.some((s) => s.id === ids.imports)) inconsistent("its code imports something");
  const types = entries(body(ids.functions), (r) => r.leb()), bodies = entries(body(ids.code), (r) => r.take(r.leb()));
  const exported = entries(body(ids.exports), (r) => ({ name: r.name(), kind: r.byte(), index: r.leb() }));
  const calls = new Map<number, Body>(), taken = new Map<number, number>();
  const callOf = ({ segment, functions }: Call): { readonly type: number; readonly code: Uint8Array } => {
    const index = exported.find((e) => e.name === `run_${segment}`)?.index ?? inconsistent(`its code has no segment ${segment}`);
    const whole = calls.get(segment) ?? callsIn(bodies[index] ?? new Uint8Array()), list = whole.calls;
    calls.set(segment, whole);
    const n = taken.get(segment) ?? 0;
    taken.set(segment, n + functions);
    if (n + functions > list.length) inconsistent(`segment ${segment} has fewer calls than its manifest says`);
    return { type: types[index] ?? 0, code: joined([whole.locals, ...list.slice(n, n + functions), [0x0b]]) };
  };
  const added = segments.map(callOf);
  const kept = exported.filter((e) => !/^run_\d+$/.test(e.name));
  const exports = [...kept, ...added.map((_, n) => ({ name: `run_${n}`, kind: 0, index: bodies.length + n }))];
  const replaced = new Map<number, Uint8Array>([
    [ids.functions, vector([...types, ...added.map((a) => a.type)].map((t) => Uint8Array.from(unsigned(t))))],
    [ids.exports, vector(exports.map((e) => { const name = new TextEncoder().encode(e.name); return joined([unsigned(name.length), name, [e.kind], unsigned(e.index)]); }))],
    [ids.code, vector([...bodies, ...added.map((a) => a.code)].map((b) => joined([unsigned(b.length), b])))],
  ]);
  return joined([module.subarray(0, 8), ...sections.flatMap(({ id, body: before }) => { const b = replaced.get(id) ?? before; return [[id], unsigned(b.length), b]; })]);
}

function entries<T>(body: Uint8Array, read: (r: Reader) => T): T[] {
  const reader = new Reader(body);
  return Array.from({ length: reader.leb() }, () => read(reader));
}

/** A segment's body: its locals as they are declared, and what makes each call, one that is made in ranges with the loop around it. */
interface Body { readonly locals: Uint8Array; readonly calls: readonly Uint8Array[] }

/** Takes apart a body that does nothing else than push numbers, count ranges and call. */
function callsIn(body: Uint8Array): Body {
  const reader = new Reader(body), calls: Uint8Array[] = [];
  for (let groups = reader.leb(); groups > 0; groups--) { reader.leb(); reader.byte(); }
  const locals = body.subarray(0, reader.at);
  let from = reader.at, inLoop = false;
  const made = (): void => { calls.push(body.subarray(from, reader.at)); from = reader.at; };
  for (;;) {
    const op = reader.byte();
    switch (op) {
      case 0x03: reader.byte(); inLoop = true; break;
      case 0x0b:
        if (!inLoop) return { locals, calls };
        inLoop = false;
        made();
        break;
      case 0x41: case 0x20: case 0x21: case 0x22: case 0x0d: reader.leb(); break;
      case 0x28: reader.leb(); reader.leb(); break;
      case 0x6a: case 0x6c: case 0x48: case 0x1b: break;
      case 0x10:
        reader.leb();
        if (!inLoop) made();
        break;
      default: inconsistent(`a segment has the instruction 0x${op.toString(16)}`);
    }
  }
}

const vector = (list: readonly Uint8Array[]): Uint8Array => joined([unsigned(list.length), ...list]);

function joined(parts: readonly (readonly number[] | Uint8Array)[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) {
    out.set(p, at);
    at += p.length;
  }
  return out;
}
