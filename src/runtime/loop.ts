/**
 * Runs a loop. Loaded by programs that have one. Values whose sizes change from one iteration to the next, and the slices of stacked results, are kept
 * outside WebAssembly's memory meanwhile: when an iteration ends, the sizes that it bound are taken back, and with them
 * the places that depend on them.
 */
import type { LoopJson } from "../artifact/manifest.ts";
import { present } from "../core/assert.ts";
import { fail } from "../core/diagnostic.ts";
import type { DimJson } from "../core/dim-json.ts";
import { byteSize, viewBytes, type DType } from "../core/dtype.ts";
import { bytesOf, sizeOf, stringsOf, type Tensor } from "../core/tensor.ts";
import type { Machine, readScalar, receive } from "./values.ts";
import type { checkTime, Run } from "./watch.ts";

/** What loops do as other steps do it; it is not loaded twice. */
export interface Ways { readonly readScalar: typeof readScalar; readonly receive: typeof receive; readonly checkTime: typeof checkTime }

/** A loop whose iterations run `body`. */
export function loop(step: LoopJson, body: Run, machine: Machine, { readScalar, receive, checkTime }: Ways): Run {
  const { buffers, arena } = machine;
  const { carry, stack, count, next, iteration } = step;
  const inputs = carry.map(([, input]) => input);
  const holds = (condition: number | null): boolean => condition === null || readScalar(buffers, condition) !== 0;
  return (watch) => {
    const trips = count === null ? Infinity : typeof count === "number" ? readScalar(buffers, count) : arena.size(count.size);
    let carried = carry.map(([initial]) => buffers.readDatum(initial));
    const stacked = stack.map(() => new Slices());
    const around = arena.mark();
    for (let i = 0, going = holds(step.condition); going && i < trips; i++) {
      if (iteration !== null) buffers.write(iteration, { dtype: "int64", dims: [], data: BigInt64Array.of(BigInt(i)) });
      receive(inputs, carried, machine, "a loop");
      checkTime(watch);
      body(watch);
      going = holds(next);
      carried = carry.map(([, , result]) => buffers.readDatum(result));
      stack.forEach(([from], n) => stacked[n]?.add(buffers.read(from)));
      arena.rewind(around);
    }
    const results = stack.map(([, to], n) => present(stacked[n], "slices").joined(buffers.of(to).dtype, buffers.of(to).dims, (d) => arena.size(d)));
    receive([...carry.map(([, , , result]) => result), ...stack.map(([, to]) => to)], [...carried, ...results], machine, "a loop");
  };
}

/** Slices of equal shape, one for each iteration. */
class Slices {
  #dims: readonly number[] | undefined;
  #count = 0;
  #length = 0;
  #bytes = new Uint8Array(0);
  readonly #strings: string[] = [];

  add(t: Tensor): void {
    this.#dims ??= t.dims;
    if (t.dims.length !== this.#dims.length || t.dims.some((d, axis) => d !== this.#dims?.[axis]))
      fail("OF7016", `a loop stacks a result of [${t.dims.join(", ")}] on others of [${this.#dims.join(", ")}]`, { hint: "every iteration must give a slice of the same shape" });
    this.#count++;
    if (t.dtype === "string") { this.#strings.push(...stringsOf(t)); return; }
    const bytes = bytesOf(t);
    if (this.#length + bytes.length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(this.#length + bytes.length, 2 * this.#bytes.length));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** All slices along a new first axis. Where there are none, sizes that are not known are 0. */
  joined(dtype: DType, declared: readonly DimJson[], size: (d: DimJson) => number): Tensor {
    const dims = [this.#count, ...(this.#dims ?? declared.slice(1).map(size))];
    if (dtype === "string") return { dtype, dims, data: this.#strings };
    return { dtype, dims, data: viewBytes(dtype, this.#bytes.slice(0, sizeOf(dims) * byteSize(dtype))) };
  }
}
