/** The runtime's side of WebAssembly: the code that suits the engine, and its instantiation. */
import { fail } from "../../core/diagnostic.ts";
import { stripesModule } from "../../artifact/checksum.ts";
import type { Manifest } from "../../artifact/manifest.ts";
import { relax } from "./relax.ts";

/** `relaxed-simd` needs that proposal, `simd` runs on every engine with SIMD. */
export type Engine = "simd" | "relaxed-simd";


/** A module whose function `f` adds 5 to a dot product of four ones by i32x4.relaxed_dot_i8x16_i7x16_add_s. */
const byteDotProbe = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 127, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 22, 1, 20, 0, 65, 1, 253, 15, 65, 1, 253, 15, 65, 5, 253, 17, 253, 147, 2, 253, 27, 0, 11];

/** Whether the engine multiplies bytes as it should: the quick code of V8 11.3, which has relaxed SIMD on trial, doubles products. */
function multipliesBytes(): boolean {
  const { f } = new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.from(byteDotProbe))).exports;
  return typeof f === "function" && f() === 9;
}

/** Whether this JavaScript engine runs code for `engine`. */
export function supports(engine: Engine): boolean {
  if (typeof WebAssembly === "undefined") return false;
  return WebAssembly.validate(engine === "simd" ? stripesModule() : Uint8Array.from(byteDotProbe));
}

/** The manifest and the sections that it names. */
export interface CodeSource {
  readonly manifest: Manifest;
  /** The bytes of a section. */
  section(index: number): Uint8Array;
}

/** Refuses what this engine does not run. */
export const unsupported = (): never => fail("OF7009", "this engine cannot run the artifact's code", { hint: "WebAssembly with SIMD is needed: Chrome 91, Firefox 89, Safari 16.4, Node 16.4 or newer" });

/** Code, and whether it reads weights as code for relaxed SIMD does. */
export interface EngineCode { readonly code: Uint8Array; readonly relaxed: boolean }

/** An artifact's code for this engine, or for `wanted`. Fails with OF7009 where there is none. */
export function codeFor(source: CodeSource, wanted?: Engine): EngineCode {
  const entry = source.manifest.code.find((c) => c.target === "wasm");
  const fit = (engine: Engine): boolean => supports(engine) && (engine === "simd" || !source.manifest.weights.some((w) => w.quads) || multipliesBytes());
  const engine = wanted ?? (fit("relaxed-simd") ? "relaxed-simd" : "simd");
  if (!entry || !fit(engine) || (entry.relaxed && engine === "simd")) return unsupported();
  const code = source.section(entry.section);
  if (engine === "simd" || entry.relaxation === undefined) return { code, relaxed: entry.relaxed ?? false };
  return { relaxed: true, code: relax(code, source.section(entry.relaxation)) ?? fail("OF6004", "the artifact is inconsistent: its relaxation does not fit its code", { hint: "compile the model again" }) };
}

/** An engine refuses code that is not valid, or has no room for its memory. */
function refuse(e: unknown): never {
  if (e instanceof WebAssembly.CompileError || e instanceof WebAssembly.LinkError) return fail("OF6004", `the artifact is inconsistent: its code is not valid (${e.message})`, { hint: "compile the model again" });
  if (e instanceof RangeError) return fail("OF7010", `this engine has no room for the program's memory: ${e.message}`, { hint: "compile for smaller input shapes" });
  throw e;
}

/** V8 counts seven times as far since versions about as old as its relaxed SIMD. */
const newerRounds = 7;

export interface Instance {
  readonly memory: WebAssembly.Memory;
  /** The exported function of a segment. */
  segment(index: number): () => void;
  /** Has the engine make better code of what will compute long; changes no memory. */
  warmUp(): void;
}

/** Compiles code. */
export const compileCode = (code: Uint8Array): Promise<WebAssembly.Module> => WebAssembly.compile(code as Uint8Array<ArrayBuffer>).catch(refuse);

/** Compiles and instantiates a code section. Modules of one thread import nothing. */
export async function instantiate(code: Uint8Array): Promise<Instance> {
  return instanceOf((await WebAssembly.instantiate(code as Uint8Array<ArrayBuffer>, {}).catch(refuse)).instance);
}

/** What the runtime uses of an instance. */
export function instanceOf({ exports }: WebAssembly.Instance): Instance {
  const memory = exports["memory"];
  if (!(memory instanceof WebAssembly.Memory)) return fail("OF6004", "the artifact is inconsistent: its code exports no memory", { hint: "compile the model again" });
  return {
    memory,
    warmUp() {
      const warm = exports["warm_up"];
      if (typeof warm === "function") for (let left = supports("relaxed-simd") ? newerRounds : 1; left > 0; left--) warm();
    },
    segment(index) {
      const run = exports[`run_${index}`];
      if (typeof run !== "function") return fail("OF6004", `the artifact is inconsistent: its code has no segment ${index}`, { hint: "compile the model again" });
      return run as () => void;
    },
  };
}
