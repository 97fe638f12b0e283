/** Cases of attention, the standard's and com.microsoft's, with what stands around it: rotary positions, masks of every form, caches. */
import { fromNumbers, type Tensor } from "../src/core/tensor.ts";
import type { AttributeSpec } from "../test/support/model-spec.ts";
import type { Draw } from "./draw.ts";
import type { FuzzCase, Generator, Tolerance } from "./fuzz-case.ts";
import { fullDims, tensor, within } from "./values.ts";

/** Softmaxes of sums. */
const gathered: Tolerance = { relative: 1e-3, absolute: 1e-4 };
const float = (value: number): AttributeSpec => ({ float: value });
const small = (draw: Draw, ...shape: readonly number[]): Tensor => { const t = tensor(draw, "float32", shape, "tame"); return fromNumbers("float32", shape, Array.from(t.data as Float32Array, (v) => v / 4)); };
const flags = (draw: Draw, ...shape: readonly number[]): Tensor => tensor(draw, "bool", shape, "tame");
type Part = Pick<FuzzCase, "inputs" | "attributes"> & Partial<FuzzCase>;
const microsoft = (type: string, part: (draw: Draw) => Part): Generator => (draw) => ({ type, domain: "com.microsoft", opset: 17, outputs: 1, tolerance: gathered, ...part(draw) });
const standard = (type: string, part: (draw: Draw) => Part): Generator => (draw) => ({ type, opset: 23, outputs: 1, tolerance: gathered, ...part(draw) });
const ints32 = (shape: readonly number[], values: readonly number[]): Tensor => fromNumbers("int32", shape, values);
const times = (n: number, make: () => number): number[] => Array.from({ length: n }, make);
/** A mask of 1 and 0 with a 1 in each row. */
function kept(draw: Draw, shape: readonly number[]): Tensor {
  const width = shape.at(-1) ?? 1, rows = shape.slice(0, -1).reduce((a, b) => a * b, 1);
  return ints32(shape, times(rows, () => draw.int(width)).flatMap((sure) => Array.from({ length: width }, (_, i) => (i === sure ? 1 : draw.int(2)))));
}

function attention(draw: Draw): Part {
  const [batch, queries, keys, past] = [1 + draw.int(2), 1 + draw.int(4), 1 + draw.int(5), draw.once(3) ? 1 + draw.int(3) : 0], kvHeads = 1 + draw.int(2), heads = kvHeads * (1 + draw.int(2)), [size, valueSize] = [draw.pick([1, 2, 4, 8]), draw.pick([1, 2, 4, 8])], total = past + keys, is3d = draw.once(2);
  const side = (n: number, h: number, d: number): Tensor => (is3d ? small(draw, batch, n, h * d) : small(draw, batch, h, n, d));
  const maskShape = draw.pick([[queries, total], [batch, 1, queries, total], [1, heads, queries, total], [batch, heads, queries, total]]), mask = draw.pick([undefined, () => small(draw, ...maskShape), () => flags(draw, ...maskShape)])?.();
  const outputs = past || draw.once(3) ? 3 : 1;
  return {
    inputs: [side(queries, heads, size), side(keys, kvHeads, size), side(keys, kvHeads, valueSize), mask && mask.dtype === "bool" ? fromNumbers("bool", mask.dims, Array.from(kept(draw, mask.dims).data, Number)) : mask, ...(past ? [small(draw, batch, kvHeads, past, size), small(draw, batch, kvHeads, past, valueSize)] : [])],
    attributes: { ...(is3d ? { q_num_heads: heads, kv_num_heads: kvHeads } : {}), ...(draw.once(3) ? { is_causal: 1 } : {}), ...(draw.once(3) ? { scale: float(draw.pick([0.5, 1])) } : {}), ...(draw.once(4) ? { softcap: float(2) } : {}) }, outputs,
  };
}
function multiHead(draw: Draw): Part {
  const [batch, queries, keys, past] = [1 + draw.int(2), 1 + draw.int(4), 1 + draw.int(5), draw.once(3) ? 1 + draw.int(3) : 0], heads = 1 + draw.int(3), [size, valueSize] = [draw.pick([1, 2, 4, 8]), draw.pick([2, 4, 8])], hidden = heads * size, form = draw.pick(["apart", "apart", "cross"]);
  const isCross = form === "cross", n = keys, withPast = past > 0 && !isCross, total = withPast ? past + n : n, width = withPast || isCross ? size : valueSize;
  const given = isCross ? [small(draw, batch, queries, hidden), small(draw, batch, heads, n, size), small(draw, batch, heads, n, width)] : [small(draw, batch, queries, hidden), small(draw, batch, n, hidden), small(draw, batch, n, heads * width)];
  const bias = !isCross && draw.once(2) ? small(draw, 2 * hidden + heads * width) : undefined;
  const padding = draw.pick([undefined, undefined, () => ints32([batch], times(batch, () => 1 + draw.int(total))), () => kept(draw, [batch, total]), () => kept(draw, [batch, queries, total])])?.();
  return {
    inputs: [...given, bias, padding, draw.once(3) ? small(draw, draw.pick([1, batch]), draw.pick([1, heads]), queries, total) : undefined, ...(withPast ? [small(draw, batch, heads, past, size), small(draw, batch, heads, past, width)] : [])],
    attributes: { num_heads: heads, ...(draw.once(3) ? { scale: float(0.5) } : {}), ...(draw.once(4) ? { unidirectional: 1 } : {}), ...(draw.once(4) ? { mask_filter_value: float(-100) } : {}) }, outputs: withPast ? 3 : 1,
  };
}
/** With a bias: without one onnxruntime ends the process. */
function packedAttention(draw: Draw): Part {
  const [batch, length, past] = [1 + draw.int(2), 1 + draw.int(4), draw.once(3) ? 1 + draw.int(3) : 0], heads = 1 + draw.int(2), size = draw.pick([1, 2, 4]), hidden = heads * size, valueHidden = past || draw.once(2) ? hidden : heads * draw.pick([1, 3]), inner = draw.pick([2, 3, 8]), total = past + length, unidirectional = draw.int(2);
  const mask = draw.pick([undefined, () => ints32([batch], times(batch, () => 1 + draw.int(total))), () => kept(draw, [batch, total]), () => kept(draw, [batch, length, total])])?.();
  return {
    inputs: [small(draw, batch, length, inner), small(draw, inner, 2 * hidden + valueHidden), small(draw, 2 * hidden + valueHidden), mask, past ? small(draw, 2, batch, heads, past, size) : undefined, ...(draw.once(3) ? [small(draw, draw.pick([1, batch]), draw.pick([1, heads]), length, total)] : [])],
    attributes: { num_heads: heads, unidirectional, ...(valueHidden === hidden ? {} : { qkv_hidden_sizes: [hidden, hidden, valueHidden] }), ...(draw.once(3) ? { scale: float(0.5) } : {}) }, outputs: past ? 2 : 1,
  };
}
function groupQuery(draw: Draw): Part {
  const batch = 1 + draw.int(2), kvHeads = 1 + draw.int(2), heads = kvHeads * (1 + draw.int(2)), rotary = draw.once(2), size = rotary ? 16 : draw.pick([8, 16]), isStep = draw.once(2), length = isStep ? 1 : 1 + draw.int(4), before = isStep ? 1 + draw.int(4) : 0, room = before + length, isPacked = draw.once(3);
  const lengths = times(batch, () => (isStep ? 1 + draw.int(before) : length) + (isStep ? length : 0) - 1), cos = rotary ? [small(draw, room + 2, size / 2), small(draw, room + 2, size / 2)] : [undefined, undefined];
  const kv = (): Tensor => small(draw, batch, length, kvHeads * size), past = (): Tensor => small(draw, batch, kvHeads, before, size);
  return {
    inputs: [isPacked ? small(draw, batch, length, (heads + 2 * kvHeads) * size) : small(draw, batch, length, heads * size), ...(isPacked ? [undefined, undefined] : [kv(), kv()]), ...(isStep ? [past(), past()] : [undefined, undefined]), ints32([batch], lengths), ints32([1], [Math.max(...lengths) + 1]), ...cos],
    attributes: { num_heads: heads, kv_num_heads: kvHeads, ...(rotary ? { do_rotary: 1, rotary_interleaved: draw.int(2) } : {}), ...(draw.once(4) ? { local_window_size: 2 } : {}), ...(draw.once(4) ? { softcap: float(2) } : {}), ...(draw.once(4) ? { smooth_softmax: 1 } : {}), ...(draw.once(3) ? { scale: float(0.5) } : {}) }, outputs: 3, constants: rotary ? [7, 8] : [],
  };
}
function rotary(draw: Draw): Part {
  const [batch, heads, length] = [1 + draw.int(2), 1 + draw.int(3), 1 + draw.int(4)], size = draw.pick([4, 8, 16]), part = draw.once(3) ? size / 2 : 0, half = (part || size) / 2, room = length + draw.int(3), is4d = draw.once(2), isOffset = draw.once(3);
  const x = is4d ? small(draw, batch, heads, length, size) : small(draw, batch, length, heads * size);
  return {
    inputs: [x, isOffset ? fromNumbers("int64", [1], [draw.int(room - length + 1)]) : within(draw, "int64", [batch, length], 0, room), small(draw, room, half), small(draw, room, half)],
    attributes: { interleaved: draw.int(2), ...(part ? { rotary_embedding_dim: part, num_heads: heads } : draw.once(2) && !is4d ? { num_heads: heads } : is4d ? {} : { num_heads: heads }) },
  };
}
function standardRotary(draw: Draw): Part {
  const [batch, heads, length] = [1 + draw.int(2), 1 + draw.int(3), 1 + draw.int(4)], size = draw.pick([4, 8, 16]), part = draw.once(3) ? size / 2 : 0, half = (part || size) / 2, room = length + draw.int(3), is4d = draw.once(2), isIndexed = draw.once(2), table = (): Tensor => (isIndexed ? small(draw, room, half) : small(draw, batch, length, half));
  return { inputs: [is4d ? small(draw, batch, heads, length, size) : small(draw, batch, length, heads * size), table(), table(), ...(isIndexed ? [within(draw, "int64", [batch, length], 0, room)] : [])], attributes: { interleaved: draw.int(2), ...(is4d ? {} : { num_heads: heads }), ...(part ? { rotary_embedding_dim: part } : {}) } };
}
function quantised(draw: Draw): Part {
  const [batch, length, past] = [1 + draw.int(2), 1 + draw.int(4), draw.once(3) ? 1 + draw.int(3) : 0], heads = 1 + draw.int(2), size = draw.pick([2, 4]), hidden = heads * size, inner = draw.pick([2, 8]), total = past + length, b = draw.pick(["uint8", "int8"] as const), scale = (): Tensor => fromNumbers("float32", [], [draw.pick([0.02, 0.05])]);
  const mask = draw.pick([undefined, () => ints32([batch], times(batch, () => 1 + draw.int(total))), () => kept(draw, [batch, total])])?.();
  return {
    inputs: [within(draw, "uint8", [batch, length, inner], 0, 256), b === "int8" ? within(draw, b, [inner, 3 * hidden], -64, 64) : within(draw, b, [inner, 3 * hidden], 0, 256), small(draw, 3 * hidden), scale(), scale(), mask, within(draw, "uint8", [], 100, 150), b === "int8" ? within(draw, b, [], -3, 3) : within(draw, b, [], 100, 150), ...(past ? [small(draw, 2, batch, heads, past, size)] : [])],
    attributes: { num_heads: heads, unidirectional: draw.int(2) }, outputs: past ? 2 : 1,
  };
}

export const attentions: Readonly<Record<string, Generator>> = {
  Attention: standard("Attention", attention), MultiHeadAttention: microsoft("MultiHeadAttention", multiHead), MicrosoftAttention: microsoft("Attention", packedAttention), GroupQueryAttention: microsoft("GroupQueryAttention", groupQuery),
  MicrosoftRotaryEmbedding: microsoft("RotaryEmbedding", rotary), RotaryEmbedding: standard("RotaryEmbedding", standardRotary), QAttention: microsoft("QAttention", quantised),
  RMSNormalization: standard("RMSNormalization", (draw) => { const shape = fullDims(draw, 1, 4), axis = draw.int(shape.length); return { inputs: [small(draw, ...shape), small(draw, ...shape.slice(axis))], attributes: { axis: draw.once(2) ? axis : axis - shape.length, epsilon: float(draw.pick([1e-5, 0.01])) } }; }),
  GroupNormalization: standard("GroupNormalization", (draw) => { const groups = 1 + draw.int(3), c = groups * (1 + draw.int(3)); return { opset: 21, inputs: [small(draw, 1 + draw.int(2), c, ...fullDims(draw, 1, 2)), small(draw, c), small(draw, c)], attributes: { num_groups: groups, epsilon: float(0.01) } }; }),
};
