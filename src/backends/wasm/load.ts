/** The runtime's side of WebAssembly: which code section suits the engine, and its instantiation. */
import { fail } from "../../core/diagnostic.ts";
import type { CodeJson } from "../../artifact/manifest.ts";

export type Engine = CodeJson["engine"];

/** A module whose function uses i8x16.splat and i8x16.popcnt. */
const simdProbe = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];
/** A module whose function uses i8x16.relaxed_swizzle. */
const relaxedProbe = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 15, 1, 13, 0, 65, 1, 253, 15, 65, 2, 253, 15, 253, 128, 2, 11];

/** Whether this JavaScript engine runs code for `engine`. */
export function supports(engine: Engine): boolean {
  if (typeof WebAssembly === "undefined") return false;
  return WebAssembly.validate(Uint8Array.from(engine === "simd" ? simdProbe : relaxedProbe));
}

/** The best of an artifact's code sections that runs here, or the one for `wanted`. Fails with OF7009 where none does. */
export function selectCode(entries: readonly CodeJson[], wanted?: Engine): CodeJson {
  const order: readonly Engine[] = wanted ? [wanted] : ["relaxed-simd", "simd"];
  for (const engine of order) {
    const entry = entries.find((e) => e.engine === engine);
    if (entry && supports(engine)) return entry;
  }
  return fail("OF7009", `this engine cannot run the artifact's code (${entries.map((e) => e.engine).join(", ")})`, { hint: "WebAssembly with SIMD is needed: Chrome 91, Firefox 89, Safari 16.4, Node 16.4 or newer" });
}

export interface Instance {
  readonly memory: WebAssembly.Memory;
  /** The exported function of a segment. */
  segment(index: number): () => void;
}

/** Compiles and instantiates a code section. Modules of one thread import nothing. */
export async function instantiate(code: Uint8Array): Promise<Instance> {
  const { instance } = await WebAssembly.instantiate(code as Uint8Array<ArrayBuffer>, {});
  const { exports } = instance;
  const memory = exports["memory"];
  if (!(memory instanceof WebAssembly.Memory)) return fail("OF6004", "the artifact is inconsistent: its code exports no memory", { hint: "compile the model again" });
  return {
    memory,
    segment(index) {
      const run = exports[`run_${index}`];
      if (typeof run !== "function") return fail("OF6004", `the artifact is inconsistent: its code has no segment ${index}`, { hint: "compile the model again" });
      return run as () => void;
    },
  };
}
