/**
 * Elements that are expressions over sizes, as ONNX nodes: each symbol is read from the shape of a value that has it,
 * and the expressions become integer arithmetic on vectors of one element, joined at the end.
 */
import { assertNever, present } from "../core/assert.ts";
import { fail } from "../core/diagnostic.ts";
import { isSymbolic, type Dim, type DimAtom } from "../core/dim.ts";
import { dtypes } from "../core/dtype.ts";
import { fromBigInts, tensor, type Tensor } from "../core/tensor.ts";
import type { Attributes, OpDef, TypeInfo } from "../graph/op.ts";
import { Add, Div, Mod, Mul } from "../ops/arithmetic.ts";
import { Cast } from "../ops/cast.ts";
import { Concat } from "../ops/concat.ts";
import { Gather } from "../ops/gather.ts";
import { Equal, Less } from "../ops/logic.ts";
import { Reshape } from "../ops/reshape.ts";
import { Shape } from "../ops/shape.ts";
import { Where } from "../ops/where.ts";
import type { NamedInput, NodeSink } from "./node-sink.ts";

type WriteNode = (op: OpDef, inputs: readonly NamedInput[], outputs: readonly string[], types: readonly TypeInfo[], attributes: Attributes) => void;

/** Writes the nodes that compute a KnownElements' output. Fails with OF2081 where no value has a symbol's size. */
export function writeKnownElements(output: string, types: readonly TypeInfo[], node: string, sink: NodeSink, write: WriteNode): void {
  const { dtype, shape, elements } = present(types[0], "the elements' type");
  const one: TypeInfo = { dtype: "int64", shape: [1] };
  const truth: TypeInfo = { dtype: "bool", shape: [1] };
  const known = new Map<string, NamedInput>();
  const constant = (value: Tensor): NamedInput => ({ name: sink.constant(value), type: { dtype: value.dtype, shape: value.dims, constant: value } });
  const vector = (...values: number[]): NamedInput => constant(tensor("int64", [values.length], BigInt64Array.from(values, BigInt)));
  const step = (op: OpDef, inputs: readonly NamedInput[], type: TypeInfo = one, attributes: Attributes = {}): NamedInput => {
    const name = sink.fresh(`${node}_${op.type}`);
    write(op, inputs, [name], [type], attributes);
    return { name, type };
  };
  const remember = (key: string, make: () => NamedInput): NamedInput => {
    const value = known.get(key) ?? make();
    known.set(key, value);
    return value;
  };
  const least = (x: NamedInput, y: NamedInput): NamedInput => step(Where, [step(Less, [x, y], truth), x, y]);
  const greatest = (x: NamedInput, y: NamedInput): NamedInput => step(Where, [step(Less, [x, y], truth), y, x]);
  const atom = (a: DimAtom): NamedInput => remember(a.key, () => {
    switch (a.kind) {
      case "symbol": {
        const source = sink.symbolSource(a.name) ?? fail("OF2081", `no value of the graph has the size ${a.name}`, { place: { node } });
        const whole = step(Shape, [{ name: source.value, type: one }], { dtype: "int64", shape: [source.axis + 1] });
        return step(Gather, [whole, vector(source.axis)], one, { axis: 0 });
      }
      case "floordiv": return step(Div, [size(a.a), size(a.b)]);
      case "mod": return step(Mod, [size(a.a), size(a.b)]);
      case "min": return least(size(a.a), size(a.b));
      case "max": return greatest(size(a.a), size(a.b));
      case "broadcast": return step(Where, [step(Equal, [size(a.a), vector(1)], truth), size(a.b), size(a.a)]);
      default: return assertNever(a);
    }
  });
  const size = (d: Dim): NamedInput => {
    if (!isSymbolic(d)) return vector(d);
    return remember(d.key, () => d.terms.map(({ coefficient, atoms }) => {
      const factors = [...(coefficient === 1 && atoms.length ? [] : [vector(coefficient)]), ...atoms.map(atom)];
      return factors.reduce((a, b) => step(Mul, [a, b]));
    }).reduce((a, b) => step(Add, [a, b])));
  };
  const parts = present(elements, "known elements").map(size);
  const dims = shape.map((d) => (isSymbolic(d) ? fail("OF2081", "elements of unknown number", { place: { node } }) : d));
  if (parts.length === 0) return write(Reshape, [constant(fromBigInts(dtype, [0], [])), vector(...dims)], [output], types, { allowzero: 1 });
  const flat: TypeInfo = { dtype: "int64", shape: [parts.length] };
  // A vector is what joining gives.
  if (dims.length === 1 && parts.length > 1 && dtype === "int64") return write(Concat, parts, [output], types, { axis: 0 });
  const joined = parts.length === 1 ? present(parts[0], "a part") : step(Concat, parts, flat, { axis: 0 });
  const typed = dtype === "int64" ? joined : step(Cast, [joined], { dtype, shape: flat.shape }, { to: dtypes[dtype].onnx });
  write(Reshape, [typed, vector(...dims)], [output], types, {});
}
