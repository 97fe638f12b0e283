/** Cases of operators that sample, gather back, window and transform: grids, regions, boxes, spectra, losses. */
import { fromNumbers, type Tensor } from "../src/core/tensor.ts";
import type { Draw } from "./draw.ts";
import { close, exact, type FuzzCase, type Generator, type Tolerance } from "./fuzz-case.ts";
import { fullDims, ints, numbers, tensor, within, anyMode } from "./values.ts";

const float = (value: number): { float: number } => ({ float: value });
const sampled: Tolerance = { relative: 1e-4, absolute: 2e-4 };
const tame = (draw: Draw, ...shape: readonly number[]): Tensor => tensor(draw, "float32", shape, "tame");
/** Within a little more than −1 to 1, off the borders where rounding decides. */
const places = (draw: Draw, shape: readonly number[]): Tensor => fromNumbers("float32", shape, Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => (draw.int(27) - 13) / 10.7));

function gridSample(draw: Draw): FuzzCase {
  const rank = 2 + draw.int(2), n = 1 + draw.int(2), mode = draw.pick(rank === 2 ? ["linear", "nearest", "cubic"] : ["linear", "nearest"]);
  const sizes = (): number[] => Array.from({ length: rank }, () => 1 + draw.int(5));
  return { type: "GridSample", opset: 20, inputs: [tame(draw, n, 1 + draw.int(3), ...sizes()), places(draw, [n, ...sizes(), rank])], attributes: { mode, padding_mode: draw.pick(["zeros", "border", "reflection"]), align_corners: draw.int(2) }, outputs: 1, tolerance: sampled };
}
function roiAlign(draw: Draw): FuzzCase {
  const [n, rois] = [1 + draw.int(2), 1 + draw.int(3)], corner = (): number => draw.int(24) / 2.3;
  const boxes = Array.from({ length: rois }, () => { const [x, y] = [corner(), corner()]; return [x, y, x + draw.int(9), y + draw.int(9)]; }).flat();
  return { type: "RoiAlign", opset: 16, inputs: [tame(draw, n, 1 + draw.int(3), 2 + draw.int(7), 2 + draw.int(7)), fromNumbers("float32", [rois, 4], boxes), within(draw, "int64", [rois], 0, n)], attributes: { mode: draw.pick(["avg", "max"]), output_height: 1 + draw.int(3), output_width: 1 + draw.int(3), sampling_ratio: draw.int(3), spatial_scale: float(draw.pick([1, 0.5])), coordinate_transformation_mode: draw.pick(["half_pixel", "output_half_pixel"]) }, outputs: 1, tolerance: sampled };
}
function suppression(draw: Draw): FuzzCase {
  const [n, boxes, classes] = [1 + draw.int(2), 1 + draw.int(7), 1 + draw.int(2)], center = draw.int(2), value = (): number => draw.int(17) / 4;
  const box = (): number[] => { const [a, b] = [value(), value()]; return center ? [a, b, 1 + value(), 1 + value()] : draw.once(2) ? [a, b, a + 1 + value(), b + 1 + value()] : [a + 1 + value(), b + 1 + value(), a, b]; };
  const scores = Array.from({ length: n * classes * boxes }, (_, i) => ((i * 7919) % 101) / 101);
  return { type: "NonMaxSuppression", opset: 11, inputs: [fromNumbers("float32", [n, boxes, 4], Array.from({ length: n * boxes }, box).flat()), fromNumbers("float32", [n, classes, boxes], scores), fromNumbers("int64", [1], [draw.int(4)]), fromNumbers("float32", [1], [draw.pick([0, 0.3, 0.5, 1])]), ...(draw.once(2) ? [fromNumbers("float32", [1], [0.4])] : [])], attributes: { center_point_box: center }, outputs: 1, tolerance: exact };
}
function deformConv(draw: Draw): FuzzCase {
  const group = draw.pick([1, 2]), offsetGroup = draw.pick([1, 2]), c = 2 * (1 + draw.int(2)), kernel = [1 + draw.int(3), 1 + draw.int(3)], sizes = [3 + draw.int(3), 3 + draw.int(3)], n = 1 + draw.int(2), strides = [1 + draw.int(2), 1 + draw.int(2)], pads = [draw.int(2), draw.int(2), draw.int(2), draw.int(2)];
  const out = sizes.map((d, i) => Math.floor((d + (pads[i] ?? 0) + (pads[i + 2] ?? 0) - (kernel[i] ?? 1)) / (strides[i] ?? 1)) + 1), taps = (kernel[0] ?? 1) * (kernel[1] ?? 1), m = group * (1 + draw.int(2)), withMask = draw.once(2);
  return { type: "DeformConv", opset: 19, inputs: [tame(draw, n, c, ...sizes), tame(draw, m, c / group, ...kernel), places(draw, [n, offsetGroup * taps * 2, ...out]), draw.once(2) ? tame(draw, m) : undefined, ...(withMask ? [tame(draw, n, offsetGroup * taps, ...out)] : [])], attributes: { group, offset_group: offsetGroup, kernel_shape: kernel, strides, pads }, outputs: 1, tolerance: sampled };
}
function col2Im(draw: Draw): FuzzCase {
  const rank = 1 + draw.int(3), image = Array.from({ length: rank }, () => 2 + draw.int(4)), dilations = image.map(() => draw.pick([1, 1, 2])), block = image.map((d, i) => { const k = 1 + draw.int(3); return (k - 1) * (dilations[i] ?? 1) + 1 <= d ? k : 1; }), strides = image.map(() => 1 + draw.int(2)), pads = [...block, ...block].map((k) => draw.int(k));
  const columns = image.reduce((n, d, i) => n * (Math.floor((d + (pads[i] ?? 0) + (pads[i + rank] ?? 0) - (dilations[i] ?? 1) * ((block[i] ?? 1) - 1) - 1) / (strides[i] ?? 1)) + 1), 1);
  return { type: "Col2Im", opset: 18, inputs: [tame(draw, 1 + draw.int(2), block.reduce((a, b) => a * b, 1) * (1 + draw.int(2)), columns), ints(...image), ints(...block)], attributes: { dilations, strides, pads }, outputs: 1, tolerance: close, constants: [1, 2] };
}
function maxUnpool(draw: Draw): FuzzCase {
  const [n, c, h, w] = [1 + draw.int(2), 1 + draw.int(2), 1 + draw.int(3), 1 + draw.int(3)], out = 4 * h * w;
  const at = Array.from({ length: n * c }, (_, image) => Array.from({ length: h * w }, (__, i) => image * out + 4 * i + draw.int(4))).flat();
  return { type: "MaxUnpool", opset: 11, inputs: [tame(draw, n, c, h, w), fromNumbers("int64", [n, c, h, w], at)], attributes: { kernel_shape: [2, 2], strides: [2, 2] }, outputs: 1, tolerance: exact };
}
function dft(draw: Draw): FuzzCase {
  const rank = 1 + draw.int(3), shape = [...Array.from({ length: rank }, () => 1 + draw.int(7)), 1], axis = draw.int(rank), onesided = draw.int(2), isComplex = !onesided && draw.once(2), inverse = onesided ? 0 : draw.int(2);
  return { type: "DFT", opset: 20, inputs: [tame(draw, ...shape.slice(0, -1), isComplex ? 2 : 1), draw.once(3) ? fromNumbers("int64", [], [1 + draw.int(9)]) : undefined, fromNumbers("int64", [], [draw.once(2) ? axis : axis - rank - 1])], attributes: { onesided, inverse }, outputs: 1, tolerance: { relative: 1e-4, absolute: 1e-3 }, constants: [1, 2] };
}
function stft(draw: Draw): FuzzCase {
  const frame = 2 + draw.int(7), signal = frame + draw.int(12), isWindowed = draw.once(2), onesided = draw.int(2);
  return { type: "STFT", opset: 17, inputs: [tame(draw, 1 + draw.int(2), signal, 1), fromNumbers("int64", [], [1 + draw.int(4)]), isWindowed ? tame(draw, frame) : undefined, fromNumbers("int64", [], [frame])], attributes: { onesided }, outputs: 1, tolerance: { relative: 1e-4, absolute: 1e-3 }, constants: [1, 3] };
}
function loss(type: "NegativeLogLikelihoodLoss" | "SoftmaxCrossEntropyLoss"): Generator {
  return (draw) => {
    const classes = 1 + draw.int(5), shape = [1 + draw.int(3), classes, ...fullDims(draw, 0, 2)], target = within(draw, draw.pick(["int64", "int32"] as const), shape.toSpliced(1, 1), 0, classes);
    return { type, opset: 13, inputs: [tame(draw, ...shape), target, ...(draw.once(2) ? [within(draw, "float32", [classes], 1, 5)] : [])], attributes: { reduction: draw.pick(["none", "mean", "sum"]), ...(draw.once(3) ? { ignore_index: draw.int(classes) } : {}) }, outputs: type === "SoftmaxCrossEntropyLoss" ? 1 + draw.int(2) : 1, tolerance: close };
  };
}
const window = (type: string): Generator => (draw) => ({ type, opset: 17, inputs: [fromNumbers(draw.pick(["int64", "int32"] as const), [], [2 + draw.int(17)])], attributes: { periodic: draw.int(2) }, outputs: 1, tolerance: { relative: 1e-5, absolute: 1e-6 }, ...(draw.once(2) ? { constants: [0] } : {}) });

export const sampling: Readonly<Record<string, Generator>> = {
  GridSample: gridSample, RoiAlign: roiAlign, NonMaxSuppression: suppression, DeformConv: deformConv, Col2Im: col2Im, MaxUnpool: maxUnpool, DFT: dft, STFT: stft,
  NegativeLogLikelihoodLoss: loss("NegativeLogLikelihoodLoss"), SoftmaxCrossEntropyLoss: loss("SoftmaxCrossEntropyLoss"),
  HannWindow: window("HannWindow"), HammingWindow: window("HammingWindow"), BlackmanWindow: window("BlackmanWindow"),
  AffineGrid: (draw) => { const rank = 2 + draw.int(2), n = 1 + draw.int(2); return { type: "AffineGrid", opset: 20, inputs: [tame(draw, n, rank, rank + 1), ints(n, 1 + draw.int(3), ...Array.from({ length: rank }, () => 1 + draw.int(4)))], attributes: { align_corners: draw.int(2) }, outputs: 1, tolerance: close, ...(draw.once(2) ? { constants: [1] } : {}) }; },
  MaxRoiPool: (draw) => { const n = 1 + draw.int(2), rois = Array.from({ length: 1 + draw.int(3) }, () => { const [x, y] = [draw.int(5), draw.int(5)]; return [draw.int(n), x, y, x + draw.int(5), y + draw.int(5)]; }); return { type: "MaxRoiPool", opset: 21, inputs: [tame(draw, n, 1 + draw.int(3), 2 + draw.int(7), 2 + draw.int(7)), fromNumbers("float32", [rois.length, 5], rois.flat())], attributes: { pooled_shape: [1 + draw.int(3), 1 + draw.int(3)], spatial_scale: float(draw.pick([1, 0.5])) }, outputs: 1, tolerance: exact }; },
  CenterCropPad: (draw) => { const shape = fullDims(draw, 1, 4), axes = shape.map((_, i) => i).filter(() => draw.once(2)), own = axes.length ? axes : [0]; return { type: "CenterCropPad", opset: 18, inputs: [tensor(draw, draw.pick(numbers), shape, anyMode(draw)), ints(...own.map(() => 1 + draw.int(8)))], attributes: { axes: own.map((a) => (draw.once(2) ? a : a - shape.length)) }, outputs: 1, tolerance: exact, ...(draw.once(2) ? { constants: [1] } : {}) }; },
  GlobalLpPool: (draw) => ({ type: "GlobalLpPool", inputs: [tame(draw, ...fullDims(draw, 3, 5))], attributes: { p: 1 + draw.int(3) }, outputs: 1, tolerance: close }),
  MeanVarianceNormalization: (draw) => { const shape = fullDims(draw, 4, 4); return { type: "MeanVarianceNormalization", inputs: [tame(draw, ...shape)], attributes: draw.once(2) ? {} : { axes: draw.pick([[0, 2, 3], [1, 2, 3], [2, 3]]) }, outputs: 1, tolerance: { relative: 1e-3, absolute: 1e-3 } }; },
  Det: (draw) => { const n = 1 + draw.int(4); return { type: "Det", inputs: [tame(draw, ...fullDims(draw, 0, 2), n, n)], outputs: 1, tolerance: { relative: 1e-3, absolute: 1e-2 } }; },
};
