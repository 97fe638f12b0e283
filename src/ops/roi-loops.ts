/**
 * RoiAlign as loops: a region's bins one after the other, each sample's place and weights found once and added to the sums
 * of all channels. How many samples a bin has may hang on the region, as the standard has it for a sampling_ratio of 0.
 */
import type { Dim } from "../core/dim.ts";
import { add, and, axisOf, cast, constant, dimExpr, div, f32, f64, ge, gt, i32, le, load, local, lt, max, min, mul, select, sub, unary, type Axis, type Buffer, type Expr } from "../kernel/expr.ts";
import { block, letLocal, loop, type Stmt } from "../kernel/stmt.ts";
import type { WholeLoops } from "../kernel/structure.ts";
import { indexFrom, minusDim, origin } from "./index-map.ts";
import { sizeAs } from "./sample-element.ts";

export interface RoiOptions {
  readonly half: boolean;
  readonly average: boolean;
  readonly height: number;
  readonly width: number;
  /** Samples of a bin along each axis; 0 for as many as it has pixels. */
  readonly ratio: number;
  readonly scale: number;
}

/** More samples than this along one axis of a bin are left out. */
const mostSamples = 2 ** 24;

const axis = (name: string, extent: Dim): Axis => ({ name, extent });
const over = (a: Axis, body: Stmt, end: Expr = dimExpr(a.extent)): Stmt => loop(a, origin, end, 1, body);

/** Declares locals in turn. */
class Lets {
  readonly statements: Stmt[] = [];
  add(name: string, value: Expr): Expr { this.statements.push(letLocal(name, value)); return local(name, value.type); }
}

/** What a region's axis has: where its bins start, how long they are, how many samples each. */
interface Span { readonly start: Expr; readonly bin: Expr; readonly samples: Expr }

export function roiLoops(x: Buffer, regions: Buffer, batches: Buffer, out: Buffer, o: RoiOptions): WholeLoops {
  const [images = 1, channels = 1, height = 1, width = 1] = x.shape, type = x.dtype === "float64" ? f64 : f32;
  const sums: Buffer = { name: "sums", dtype: x.dtype === "float64" ? "float64" : "float32", shape: [channels] };
  const [region, row, column] = [axis("r", regions.shape[0] ?? 1), axis("i", o.height), axis("j", o.width)], [down, across] = [axis("a", o.ratio || mostSamples), axis("b", o.ratio || mostSamples)];
  const r = axisOf(region), lets = new Lets(), perChannel = (name: string, of: (c: Expr) => Stmt): Stmt => { const c = axis(name, channels); return over(c, of(axisOf(c))); };
  const span = (name: string, k: number, bins: number): Span => {
    const corner = (at: number): Expr => sub(mul(cast(load(regions, [r, constant(at, i32)]), "f32"), o.scale), o.half ? 0.5 : 0);
    const start = lets.add(`${name}_start`, corner(k)), size = sub(corner(k + 2), start);
    const bin = lets.add(`${name}_bin`, div(o.half ? size : max(size, 1), bins));
    return { start, bin, samples: o.ratio ? constant(o.ratio, i32) : lets.add(`${name}_samples`, min(max(cast(unary("ceil", bin), "i32"), 0), mostSamples)) };
  };
  const [vertical, horizontal] = [span("y", 1, o.height), span("x", 0, o.width)];
  const batch = lets.add("batch", indexFrom(load(batches, [r]), images, false)), count = lets.add("count", mul(vertical.samples, horizontal.samples));

  const own = new Lets(), v = neighbours(own, "y", vertical, axisOf(row), axisOf(down), height), inner = new Lets(), h = neighbours(inner, "x", horizontal, axisOf(column), axisOf(across), width);
  const known = new Lets(), weight = (name: string, a: Expr, b: Expr): Expr => known.add(name, cast(mul(a, b), type.scalar));
  const [up, left] = [sub(constant(1, f32), v.weight), sub(constant(1, f32), h.weight)];
  const weights = [weight("w00", up, left), weight("w01", up, h.weight), weight("w10", v.weight, left), weight("w11", v.weight, h.weight)];
  const places = [[v.low, h.low], [v.low, h.high], [v.high, h.low], [v.high, h.high]] as const;
  const sample = perChannel("c", (c) => {
    const parts = places.map(([y, z], k) => mul(weights[k] ?? constant(0, type), load(x, [batch, c, y, z])));
    return { kind: "store", buffer: sums, indices: [c], value: [load(sums, [c]), ...parts].reduce(o.average ? add : max) };
  });
  const outside = perChannel("c_out", (c) => ({ kind: "store", buffer: sums, indices: [c], value: max(load(sums, [c]), 0) }));
  const taken: Stmt = { kind: "if", condition: and(v.inside, h.inside), then: block(...known.statements, sample), ...(o.average ? {} : { else: outside }) };
  const samples = over(down, block(...own.statements, over(across, block(...inner.statements, taken), horizontal.samples)), vertical.samples);
  const first = o.average ? constant(0, type) : select(gt(count, 0), constant(-Infinity, type), constant(0, type));
  const clear = perChannel("c_clear", (c) => ({ kind: "store", buffer: sums, indices: [c], value: first }));
  const finish = perChannel("c_store", (c) => {
    const total = load(sums, [c]);
    return { kind: "store", buffer: out, indices: [r, c, axisOf(row), axisOf(column)], value: o.average ? div(total, cast(max(count, 1), type.scalar)) : total };
  });
  return { kind: "loops", scratch: [sums], body: over(region, block(...lets.statements, over(row, over(column, block(clear, samples, finish))))) };
}

/** The two pixels around a sample along one axis, the weight of the second, and whether the sample is within the image. */
function neighbours(lets: Lets, name: string, { start, bin, samples }: Span, place: Expr, step: Expr, size: Dim): { readonly low: Expr; readonly high: Expr; readonly weight: Expr; readonly inside: Expr } {
  const at = lets.add(`${name}_at`, add(add(start, mul(cast(place, "f32"), bin)), div(mul(add(cast(step, "f32"), 0.5), bin), cast(samples, "f32"))));
  const last = minusDim(dimExpr(size), 1), x = max(at, 0), low = lets.add(`${name}_low`, min(cast(unary("floor", x), "i32"), last));
  return {
    low, high: lets.add(`${name}_high`, min(add(low, 1), last)), inside: lets.add(`${name}_inside`, and(ge(at, -1), le(at, sizeAs(size, f32)))),
    weight: lets.add(`${name}_weight`, select(lt(low, last), sub(x, cast(low, "f32")), constant(0, f32))),
  };
}
