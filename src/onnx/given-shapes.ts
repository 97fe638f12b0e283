/**
 * Shapes and sizes that whoever compiles a model asks for. They fix sizes that the model leaves open, and replace those
 * that it declares: exporters write the example's batch into models that take any. Types are inferred from what is asked
 * for, so a shape that the nodes cannot take is refused where it does not fit, and that it was asked for is said with it.
 */
import { formatContainer, withItemShape, type Container } from "../core/container.ts";
import { fail, type Diagnostic } from "../core/diagnostic.ts";
import { formatShape, isSymbolic, type Dim } from "../core/dim.ts";
import type { Tensor } from "../core/tensor.ts";
import type { GraphProto, ValueInfoProto } from "./schema/onnx_pb.ts";
import { Symbols } from "./symbols.ts";
import type { DeclaredType } from "./type-proto.ts";

export interface GivenSizes {
  /** Sizes for the model's named dimensions. */
  readonly dims?: Readonly<Record<string, number>>;
  /**
   * Shapes for graph inputs, by name; undefined keeps a size as declared. A symbol in a declared shape takes the size
   * wherever it stands; a size or rank that is declared otherwise gives way, with the warning OF2036.
   */
  readonly inputShapes?: Readonly<Record<string, GivenShape>>;
}
type GivenShape = readonly (number | undefined)[];

/** The shape that is asked for an input. */
const givenFor = (name: string, { inputShapes }: GivenSizes): GivenShape | undefined => (inputShapes && Object.hasOwn(inputShapes, name) ? inputShapes[name] : undefined);
const formatGiven = (given: GivenShape): string => `[${given.map((d) => d ?? "?").join(", ")}]`;

/** The sizes that an input's tensor is declared with; undefined for a size that is left open, and for an input without a rank. */
function declaredShape({ type }: ValueInfoProto): readonly { readonly size: number | undefined; readonly symbol: string | undefined }[] | undefined {
  const shape = type?.value.case === "tensorType" ? type.value.value.shape : undefined;
  return shape?.dim.map(({ value }) => ({
    size: value.case === "dimValue" && value.value > 0n ? Number(value.value) : undefined,
    symbol: value.case === "dimParam" && value.value !== "" ? value.value : undefined,
  }));
}

/** Symbols with the sizes that are given to them, by name or through shapes of inputs. Fails with OF2070 and OF2071. */
export function givenSymbols(graph: GraphProto, sizes: GivenSizes): Symbols {
  const values = new Map<string, number>();
  const checkSize = (name: string, size: number, from: string): void => {
    if (!Number.isSafeInteger(size) || size < 0) fail("OF2071", `${size} is not a size for '${name}'`, { place: { field: from } });
  };
  const bind = (name: string, size: number, from: string): void => {
    checkSize(name, size, from);
    const other = values.get(name);
    if (other !== undefined && other !== size) fail("OF2071", `'${name}' is given two sizes, ${other} and ${size}`, { place: { field: from } });
    values.set(name, size);
  };
  for (const [name, size] of Object.entries(sizes.dims ?? {})) bind(name, size, "dims");
  for (const [name, shape] of Object.entries(sizes.inputShapes ?? {})) {
    const input = graph.input.find((v) => v.name === name);
    if (!input) fail("OF2070", `the model has no input '${name}'`, { place: { field: "inputShapes" }, hint: `its inputs are ${graph.input.slice(0, 10).map((v) => v.name).join(", ")}` });
    for (const size of shape) if (size !== undefined) checkSize(name, size, "inputShapes");
    const declared = declaredShape(input);
    if (declared?.length !== shape.length) continue;
    for (const [axis, { symbol }] of declared.entries()) {
      const size = shape[axis];
      if (size !== undefined && symbol !== undefined) bind(symbol, size, "inputShapes");
    }
  }
  return new Symbols(values);
}

/** A warning OF2036 for each input that is declared otherwise than what is asked for. */
export function replacedShapes(graph: GraphProto, sizes: GivenSizes): Diagnostic[] {
  const initializers = new Set(graph.initializer.map((t) => t.name));
  return graph.input.flatMap((input): Diagnostic[] => {
    const given = givenFor(input.name, sizes), declared = declaredShape(input);
    if (!given || !declared || initializers.has(input.name)) return [];
    const same = declared.length === given.length && declared.every(({ size }, axis) => size === undefined || given[axis] === undefined || size === given[axis]);
    if (same) return [];
    return [{
      code: "OF2036", message: `input '${input.name}' is declared [${declared.map(({ size, symbol }) => size ?? symbol ?? "?").join(", ")}], and taken as ${formatGiven(given)}, as asked`,
      place: { value: input.name, field: "inputShapes" }, hint: "shapes that the model holds as constants stay as they are",
    }];
  });
}

/** The shape that is asked for, else the declared one. Fails with OF2031 where there is neither, with OF2071 where the rank is another and a size is left open. */
export function givenShape({ name }: ValueInfoProto, declared: DeclaredType, symbols: Symbols, sizes: GivenSizes): readonly Dim[] {
  const given = givenFor(name, sizes);
  if (!given) return declared.shape ?? fail("OF2031", `input '${name}' is declared without a shape`, { place: { value: name }, hint: "give its shape when compiling" });
  const other = declared.shape && declared.shape.length !== given.length ? declared.shape : undefined;
  if (other && given.includes(undefined)) fail("OF2071", `input '${name}' is declared with rank ${other.length}, not ${given.length}`, { place: { value: name, field: "inputShapes" }, hint: "give every size, or keep the declared rank" });
  return given.map((size, axis) => size ?? declared.shape?.[axis] ?? symbols.fresh(`${name}_${axis}`));
}

/** A shape that is given for a sequence or an optional is that of the tensors in it. Fails with OF2071 where these are declared otherwise. */
export function givenContainer(name: string, declared: Container, sizes: GivenSizes): Container {
  const given = givenFor(name, sizes);
  if (!given) return declared;
  return withItemShape(declared, given) ?? fail("OF2071", `input '${name}' is declared a ${formatContainer(declared)}, whose items cannot be ${formatGiven(given)}`, { place: { value: name, field: "inputShapes" } });
}

/** An overridable initializer has the shape it is declared with; its stored value must fit (OF2032), and so must what is asked for (OF2071). */
export function storedShape({ name }: ValueInfoProto, declared: DeclaredType, stored: Tensor, sizes: GivenSizes): readonly Dim[] {
  const given = givenFor(name, sizes);
  if (given && !(given.length === stored.dims.length && given.every((d, i) => d === undefined || d === stored.dims[i])))
    fail("OF2071", `input '${name}' has a default of ${formatShape(stored.dims)}, not ${formatGiven(given)}`, { place: { value: name, field: "inputShapes" } });
  const shape = declared.shape ?? stored.dims;
  const fits = stored.dtype === declared.dtype && shape.length === stored.dims.length && shape.every((d, i) => isSymbolic(d) || d === stored.dims[i]);
  if (!fits) fail("OF2032", `initializer '${name}' is ${stored.dtype} ${formatShape(stored.dims)}, but declared ${declared.dtype} ${formatShape(shape)}`, { place: { value: name } });
  return shape;
}
