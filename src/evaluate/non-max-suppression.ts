/**
 * Evaluation of NonMaxSuppression: of each class, boxes by falling score (equal ones in their order), each kept unless it
 * overlaps one kept before. Sorting once makes it O(n log n + kept · n). Areas are computed in float32, as runtimes do,
 * since the threshold decides by their last bit.
 */
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { input } from "./map-elements.ts";
import { numberOf } from "./read-attribute.ts";

const f = Math.fround;
type Box = readonly [y0: number, x0: number, y1: number, x1: number];

function boxOf(boxes: ArrayLike<number>, at: number, centred: boolean): Box {
  const [a = 0, b = 0, c = 0, d = 0] = [0, 1, 2, 3].map((k) => boxes[at * 4 + k] ?? 0);
  if (!centred) return [Math.min(a, c), Math.min(b, d), Math.max(a, c), Math.max(b, d)];
  const halfWidth = f(c / 2), halfHeight = f(d / 2);
  return [f(b - halfHeight), f(a - halfWidth), f(b + halfHeight), f(a + halfWidth)];
}

/** Intersection over union; 0 where a box or the intersection is empty. */
function overlap(a: Box, b: Box): number {
  const height = f(Math.min(a[2], b[2]) - Math.max(a[0], b[0])), width = f(Math.min(a[3], b[3]) - Math.max(a[1], b[1]));
  if (height <= 0 || width <= 0) return 0;
  const area = (x: Box): number => f(f(x[2] - x[0]) * f(x[3] - x[1]));
  const common = f(height * width), own = area(a), other = area(b), union = f(f(own + other) - common);
  return own <= 0 || other <= 0 || union <= 0 ? 0 : f(common / union);
}

const scalarIn = (t: Tensor | undefined): number | undefined => (t && t.data.length > 0 ? Number(toNumbers(t)[0]) : undefined);

/** Rows of (batch, class, box). */
export const NonMaxSuppression: Evaluate = (inputs, attributes) => {
  const boxes = toNumbers(input(inputs, 0)), list = input(inputs, 1), scores = toNumbers(list);
  const [batch = 0, classes = 0, count = 0] = list.dims, most = scalarIn(inputs[2]) ?? 0, limit = scalarIn(inputs[3]) ?? 0, least = scalarIn(inputs[4]);
  const centred = numberOf(attributes, "center_point_box", 0) !== 0, rows: number[] = [];
  for (let b = 0; b < batch; b++) {
    const own = Array.from({ length: count }, (_, i) => boxOf(boxes, b * count + i, centred));
    for (let c = 0; c < classes; c++) {
      const score = (i: number): number => scores[(b * classes + c) * count + i] ?? 0;
      const order = own.map((_, i) => i).filter((i) => least === undefined || score(i) > least).sort((i, j) => score(j) - score(i) || i - j);
      const kept: Box[] = [];
      for (const i of order) {
        if (kept.length >= most) break;
        const box = own[i];
        if (!box || kept.some((k) => overlap(box, k) > limit)) continue;
        kept.push(box);
        rows.push(b, c, i);
      }
    }
  }
  return [fromNumbers("int64", [rows.length / 3, 3], rows)];
};
