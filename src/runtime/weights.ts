/**
 * Fills the weights' memory: from the artifact at load, read once, in its order and straight to its place, and from what
 * is fed for initializers that may be overridden.
 */
import type { WeightStream } from "../artifact/arriving.ts";
import { inconsistent } from "../artifact/inconsistent.ts";
import type { DataJson, Manifest, WeightJson } from "../artifact/manifest.ts";
import { present } from "../core/assert.ts";
import { isPacked } from "../core/packed.ts";
import { viewBytes } from "../core/dtype.ts";
import { numericData, sizeOf, type Tensor } from "../core/tensor.ts";
import { constantsOf, readData, repeat, type Constants } from "./constants.ts";
import type { Heap } from "./heap.ts";

/** Something to do with a part of the section. */
interface Use {
  readonly offset: number;
  readonly length: number;
  /** Its bytes go to this address as they are. */
  readonly at?: number;
  readonly use: (bytes: Uint8Array) => void;
}
/** Parts of the section that overlap, or lie as in memory: read at once. */
interface Part { readonly from: number; to: number; readonly uses: Use[]; at: number | undefined }

/** Bytes between two weights that may be read along with them: they are padding in memory too. */
const padding = 63;

type Preparation = typeof import("./prepare-weight.ts");

/** What prepares weights, loaded where a program has such. */
export async function preparationFor({ weights }: Manifest, relaxed: boolean): Promise<Preparation | undefined> {
  return weights.some((w) => w.pack || w.widen || (relaxed && w.quads)) ? import("./prepare-weight.ts") : undefined;
}

export class Weights {
  readonly #manifest: Manifest;
  readonly #constants: Constants;
  readonly #heap: Heap;
  /** Overridable inputs whose fed elements, not their defaults, are packed now. */
  readonly #overridden = new Set<string>();
  /** What waits for scales that lie further on in the section. */
  readonly #later: (() => void)[] = [];
  readonly #preparation: Preparation | undefined;
  /** The code reads weights as quads where it may. */
  readonly #quads: boolean;

  constructor(manifest: Manifest, constants: Constants, heap: Heap, preparation: Preparation | undefined, quads: boolean) {
    this.#quads = quads;
    this.#preparation = preparation;
    this.#manifest = manifest;
    this.#constants = constants;
    this.#heap = heap;
  }

  /** Reads the section: fills memory and constants, and overridable initializers with their defaults. */
  async fill(stream: WeightStream): Promise<void> {
    for (const part of partsOf(this.#uses())) {
      if (part.at !== undefined) { await stream.fill(part.from, this.#memory(part.at, part.to - part.from)); continue; }
      const bytes = await stream.take(part.from, part.to - part.from);
      for (const u of part.uses) u.use(bytes.subarray(u.offset - part.from, u.offset - part.from + u.length));
    }
    for (const work of this.#later.splice(0)) work();
    for (const w of this.#manifest.weights) if ("input" in w.source) this.#store(w, this.#default(w.source.input));
    for (const w of this.#quads ? this.#manifest.weights : []) if (w.quads) this.#prepare.toQuads(viewBytes("int8", this.#memory(w.at, w.bytes)) as Int8Array, w.quads);
  }

  /** Packs what is fed for overridable initializers, and their defaults again where nothing is fed any more. */
  override(fed: (input: string) => Tensor | undefined): void {
    for (const input of this.#manifest.inputs) {
      if (!input.default) continue;
      const given = fed(input.name);
      if (!given && !this.#overridden.has(input.name)) continue;
      const elements = given ?? this.#default(input.name);
      for (const w of this.#manifest.weights) if ("input" in w.source && w.source.input === input.name) this.#store(w, elements);
      if (given) this.#overridden.add(input.name);
      else this.#overridden.delete(input.name);
    }
  }

  #uses(): Use[] {
    const uses = constantsOf(this.#manifest).map((d): Use => ({ ...place(d), use: (bytes) => { this.#constants.keep(d, bytes); } }));
    for (const w of this.#manifest.weights) {
      const { source } = w;
      if ("input" in source) continue;
      const { pack } = w;
      if (w.widen) uses.push({ ...place(source), use: (bytes) => { this.#widened(w, source, bytes); } });
      else if (pack && source.fill) uses.push({ ...place(source), use: (bytes) => { this.#prepare.packFilled(readData({ ...source, dims: [1] }, bytes), source.dims, () => readData(source, bytes), pack, (length) => this.#memory(w.at, length)); } });
      else if (pack || (isPacked(source.dtype) && !source.fill)) uses.push({ ...place(source), use: (bytes) => { this.#store(w, readData(source, bytes)); } });
      else if (source.fill) uses.push({ ...place(source), use: (bytes) => { repeat(this.#memory(w.at, w.bytes), bytes); } });
      else uses.push({ ...place(source), at: w.at, use: (bytes) => { this.#memory(w.at, bytes.length).set(bytes); } });
    }
    return uses;
  }

  /** float16, or int8 times its scales, as float32: in place, or packed. */
  #widened(w: WeightJson, from: DataJson, bytes: Uint8Array): void {
    const { scales } = w.widen ?? {};
    if (scales && !this.#constants.has(scales)) {
      const kept = bytes.slice();
      this.#later.push(() => { this.#widened(w, from, kept); });
      return;
    }
    const source = readData(from, bytes), count = sizeOf(source.dims);
    const to = w.pack ? new Float32Array(count) : (viewBytes("float32", this.#memory(w.at, 4 * count)) as Float32Array);
    this.#prepare.widenWeight(source, scales && this.#constants.read(scales), to);
    if (w.pack) this.#store(w, { dtype: "float32", dims: source.dims, data: to });
  }

  #default(name: string): Tensor {
    const input = this.#manifest.inputs.find((i) => i.name === name);
    return this.#constants.read(present(input?.default, `default of ${name}`));
  }

  #store(w: WeightJson, source: Tensor): void {
    if (w.pack) return this.#prepare.packWeight(source, w.pack, (bytes) => this.#memory(w.at, bytes));
    const data = numericData(source);
    this.#memory(w.at, data.byteLength).set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  }

  get #prepare(): Preparation { return present(this.#preparation, "what prepares weights"); }

  #memory(at: number, length: number): Uint8Array {
    const { bytes } = this.#heap;
    return at + length <= bytes.length ? bytes.subarray(at, at + length) : inconsistent("a weight lies outside the memory");
  }
}

const place = ({ offset, length }: DataJson): { offset: number; length: number } => ({ offset, length });

/** Uses in the section's order, together where they overlap or lie one after the other in memory as they do here. */
function partsOf(uses: Use[]): readonly Part[] {
  const parts: Part[] = [];
  for (const u of uses.sort((a, b) => a.offset - b.offset || a.length - b.length)) {
    const last = parts[parts.length - 1];
    if (last && u.offset < last.to) {
      last.uses.push(u);
      last.to = Math.max(last.to, u.offset + u.length);
      last.at = undefined;
    } else if (last?.at !== undefined && u.at !== undefined && u.at - u.offset === last.at - last.from && u.offset - last.to <= padding) {
      last.uses.push(u);
      last.to = u.offset + u.length;
    } else parts.push({ from: u.offset, to: u.offset + u.length, uses: [u], at: u.at });
  }
  return parts;
}
