import { describe, expect, it } from "vitest";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import type { DType } from "../core/dtype.ts";
import type { Attributes, OpDef } from "../graph/op.ts";
import { distance, runOp } from "../../test/support/lowered-op.ts";
import { operatorDifference } from "../../test/support/operator-check.ts";
import { DeformConv, DeformSample } from "./deform-conv.ts";
import { AffineGrid, GridSample } from "./grid.ts";
import { Resize } from "./resize.ts";
import { MaxRoiPool, RoiAlign } from "./roi.ts";

const wave = (dims: readonly number[], scale = 1, dtype: DType = "float32"): Tensor => fromNumbers(dtype, dims, Array.from({ length: sizeOf(dims) }, (_, i) => Math.sin(i * 2.3 + 0.4) * scale));
const ints = (...values: readonly number[]): Tensor => fromNumbers("int64", [values.length], values);

/** The worst difference of lowering and evaluation, with sizes of the first input as numbers and as symbols. */
function worst(op: OpDef, inputs: readonly (Tensor | undefined)[], attributes: Attributes, known: readonly number[] = [], symbolic: readonly number[] = [0]): number {
  return Math.max(...[[], symbolic].map((symbols) => {
    const { evaluated, lowered } = runOp({ op, inputs, attributes, known, symbolic: symbols });
    if (!lowered) throw new Error(`${op.type} is not lowered`);
    return Math.max(...lowered.map((t, i) => distance(evaluated[i] as Tensor, t)));
  }));
}

describe("GridSample", () => {
  const modes = ["nearest", "linear", "cubic"], paddings = ["zeros", "border", "reflection"];
  it("every mode, padding and corner in one, two and three axes, far outside too", () => {
    for (const spatial of [[7], [5, 4], [3, 1, 4]]) for (const mode of modes) for (const padding_mode of paddings) for (const align_corners of [0, 1]) {
      if (mode === "cubic" && spatial.length === 3) continue;
      const grid = wave([2, ...spatial.map((_, i) => i + 2), spatial.length], 3);
      expect(worst(GridSample, [wave([2, 3, ...spatial]), grid], { mode, padding_mode, align_corners }), `${spatial.join()} ${mode} ${padding_mode} ${align_corners}`).toBeLessThan(2e-5);
    }
  });
  it("half-way points go to the even pixel, integers move as they are", () => {
    const x = fromNumbers("int32", [1, 1, 1, 4], [10, 20, 30, 40]), grid = fromNumbers("float32", [1, 1, 3, 2], [-0.5, 0, 0, 0, 0.5, 0]);
    const { evaluated, lowered } = runOp({ op: GridSample, inputs: [x, grid], attributes: { mode: "nearest" } });
    expect(Array.from(evaluated[0]?.data ?? [], Number)).toEqual([10, 30, 30]);
    expect(distance(evaluated[0] as Tensor, lowered?.[0] as Tensor)).toBe(0);
    expect(() => runOp({ op: GridSample, inputs: [x, grid], attributes: { mode: "linear" } })).toThrow(/OF3013/);
  });
  it("reads what is there, whatever the grid holds", () => {
    for (const mode of modes) for (const padding_mode of paddings) for (const align_corners of [0, 1])
      expect(worst(GridSample, [wave([1, 1, 3, 2]), fromNumbers("float32", [1, 1, 4, 2], [1e30, -1e30, 3e9, 0, -(2 ** 31), 0.1, 5, -7])], { mode, padding_mode, align_corners }), `${mode} ${padding_mode} ${align_corners}`).toBeLessThan(1e-4);
  });
  it("older names are read and written", () => {
    const node = { type: "GridSample", domain: "", inputs: [{ value: "x" }, { value: "g" }], attributes: { mode: "bicubic" } };
    const read = GridSample.read?.(node, 16);
    expect(read?.attributes["mode"]).toBe("cubic");
    expect(read && GridSample.write?.(read, 16)).toEqual(node);
  });
});

describe("AffineGrid", () => {
  it("two and three axes, corners either way", () => {
    for (const align_corners of [0, 1]) {
      expect(worst(AffineGrid, [wave([2, 2, 3]), ints(2, 1, 4, 1)], { align_corners }, [1], [])).toBeLessThan(1e-6);
      expect(worst(AffineGrid, [wave([2, 3, 4]), ints(2, 1, 3, 4, 5)], { align_corners }, [1], [])).toBeLessThan(1e-6);
    }
    expect(() => runOp({ op: AffineGrid, inputs: [wave([2, 2, 3]), ints(2, 1, 4)], known: [1] })).toThrow(/OF3011/);
  });
});

describe("regions", () => {
  const rois = fromNumbers("float32", [4, 4], [0, 0, 5, 6, -3, 2, 9, 4.5, 2, 3, 2, 3, 1.25, 1.5, 20, 30]), of = ints(0, 1, 1, 0);
  it("RoiAlign with given samples and with as many as a bin needs", () => {
    for (const mode of ["avg", "max"]) for (const coordinate_transformation_mode of ["half_pixel", "output_half_pixel"]) for (const spatial_scale of [1, 0.4]) for (const sampling_ratio of [0, 2]) for (const dtype of ["float32", "float64"] as const)
      expect(operatorDifference({
        op: RoiAlign, inputs: [{ tensor: wave([2, 3, 7, 6], 1, dtype), shape: ["n", "c", "h", "w"] }, { tensor: fromNumbers(dtype, rois.dims, toNumbers(rois)), shape: ["r", 4] }, { tensor: of, shape: ["r"] }],
        attributes: { mode, coordinate_transformation_mode, spatial_scale, output_height: 3, output_width: 2, sampling_ratio },
      }), `${mode} ${coordinate_transformation_mode} ${sampling_ratio}`).toBeLessThan(1e-5);
  });
  it("MaxRoiPool takes the greatest of each bin", () => {
    const x = fromNumbers("float32", [1, 1, 4, 4], Array.from({ length: 16 }, (_, i) => i));
    const { evaluated } = runOp({ op: MaxRoiPool, inputs: [x, fromNumbers("float32", [2, 5], [0, 0, 0, 3, 3, 0, 1, 1, 1, 1])], attributes: { pooled_shape: [2, 2] } });
    expect(Array.from(evaluated[0]?.data ?? [], Number)).toEqual([5, 7, 13, 15, 5, 5, 5, 5]);
  });
});

describe("DeformConv", () => {
  const attributes = { strides: [2, 1], dilations: [1, 2], pads: [1, 1, 0, 2], group: 2, offset_group: 2 };
  const x = wave([2, 4, 5, 6]), w = wave([6, 2, 3, 2]), offset = wave([2, 2 * 6 * 2, 2, 7], 1.5), mask = wave([2, 2 * 6, 2, 7]), b = wave([6]);
  it("is what its samples and a convolution give", () => {
    for (const given of [mask, undefined]) for (const bias of [b, undefined])
      expect(operatorDifference({ op: DeformConv, inputs: [{ tensor: x }, { tensor: w, constant: true }, { tensor: offset }, bias && { tensor: bias }, given && { tensor: given }], attributes })).toBeLessThan(2e-6);
  });
  it("samples in one and three axes", () => {
    expect(worst(DeformSample, [wave([2, 3, 8]), wave([2, 3, 6], 2)], { kernel_shape: [3] })).toBeLessThan(1e-5);
    expect(worst(DeformSample, [wave([1, 2, 3, 4, 3]), wave([1, 8 * 3, 2, 3, 2], 2)], { kernel_shape: [2, 2, 2] }, [], [])).toBeLessThan(1e-5);
  });
  it("refuses offsets that do not fit", () => {
    expect(() => runOp({ op: DeformConv, inputs: [x, w, wave([2, 12, 2, 7])], attributes })).toThrow(/OF3011/);
  });
  it("a moved sample is seen", () => {
    const [a, c] = [offset, wave([2, 2 * 6 * 2, 2, 7], 1.4)].map((o) => runOp({ op: DeformConv, inputs: [x, w, o], attributes }).evaluated[0]);
    expect(distance(a as Tensor, c as Tensor)).toBeGreaterThan(1e-3);
  });
});

describe("Resize", () => {
  const ramp = fromNumbers("float32", [1, 1, 1, 7], [0, 1, 2, 3, 4, 5, 6]), attributes = { mode: "linear", coordinate_transformation_mode: "align_corners" };
  const scales = fromNumbers("float32", [4], [1, 1, 1, 0.75]);
  const positions = (t: Tensor | undefined): number[] => Array.from(toNumbers(t as Tensor), (v) => Math.round(v * 1e4) / 1e4);
  it("aligns corners with those of size · scale where a scale is given, of the result where its size is", () => {
    const at = (length: number): number[] => [0, 1, 2, 3, 4].map((i) => Math.round(((i * 6) / (length - 1)) * 1e4) / 1e4);
    expect(positions(runOp({ op: Resize, inputs: [ramp, undefined, scales], attributes, known: [2] }).evaluated[0] as Tensor)).toEqual(at(5.25));
    expect(positions(runOp({ op: Resize, inputs: [ramp, undefined, undefined, ints(1, 1, 1, 5)], attributes, known: [3] }).evaluated[0] as Tensor)).toEqual(at(5));
    expect(worst(Resize, [ramp, undefined, scales], attributes, [2])).toBeLessThan(1e-6);
    expect(worst(Resize, [ramp, undefined, undefined, ints(1, 1, 1, 5)], attributes, [3])).toBeLessThan(1e-6);
  });
});
