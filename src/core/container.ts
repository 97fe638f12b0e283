/**
 * Types of values that are no plain tensors: sequences, optionals, maps, and tensors whose rank only running tells. Such
 * values, and tensors of strings, are *held*: they have no place in memory and live on the JavaScript side of a running
 * program.
 */
import { invariant } from "./assert.ts";
import { isMap, isSequence, isTensor, type Datum } from "./datum.ts";
import { dimEqual, formatDim, isSymbolic, type Dim } from "./dim.ts";
import type { DType } from "./dtype.ts";

/** What a container holds: a tensor, or a container again. */
export interface ItemType {
  readonly dtype: DType;
  /** null: a size that differs from item to item or is not known. undefined: the rank is not known. */
  readonly shape?: readonly (Dim | null)[];
  readonly container?: Container;
}

export type Container =
  /** `length` where it is known; with 0, nothing is known of the item but its dtype. */
  | { readonly kind: "sequence"; readonly item: ItemType; readonly length?: Dim }
  /** `present` where it is known whether it holds something. */
  | { readonly kind: "optional"; readonly item: ItemType; readonly present?: boolean }
  /** Items are scalars of `item.dtype`. */
  | { readonly kind: "map"; readonly key: DType; readonly item: ItemType }
  /** One tensor of any rank, `item` without a shape. It never stands in another container: an item without a shape says the same. */
  | { readonly kind: "tensor"; readonly item: ItemType };

/** Whether values of this type live outside the memory of a running program. */
export const isHeld = (type: { readonly dtype: DType; readonly container?: Container }): boolean => type.dtype === "string" || type.container !== undefined;

/** The dtype of the tensors (or scalars) at the bottom. */
export const leafDType = (c: Container): DType => (c.item.container ? leafDType(c.item.container) : c.item.dtype);

/** What holds of a value that is of one type or the other; undefined where no type says both. */
export function joinContainers(a: Container, b: Container): Container | undefined {
  if (a.kind === "optional" || b.kind === "optional") {
    const x = asOptional(a), y = asOptional(b);
    const item = x.present === false && x.item.dtype === y.item.dtype && !x.item.shape ? y.item : y.present === false && x.item.dtype === y.item.dtype && !y.item.shape ? x.item : joinItems(x.item, y.item);
    return item && { kind: "optional", item, ...(x.present !== undefined && x.present === y.present ? { present: x.present } : {}) };
  }
  if (a.kind === "tensor" || b.kind === "tensor") return a.kind === b.kind && a.item.dtype === b.item.dtype ? a : undefined;
  if (a.kind === "map") {
    const item = b.kind === "map" && a.key === b.key ? joinItems(a.item, b.item) : undefined;
    return item && { kind: "map", key: a.key, item };
  }
  if (b.kind !== "sequence") return undefined;
  const item = a.length === 0 && leafDType(a) === leafDType(b) ? b.item : b.length === 0 && leafDType(a) === leafDType(b) ? a.item : joinItems(a.item, b.item);
  const length = a.length !== undefined && b.length !== undefined && dimEqual(a.length, b.length) ? a.length : undefined;
  return item && { kind: "sequence", item, ...(length === undefined ? {} : { length }) };
}

type Optional = Extract<Container, { kind: "optional" }>;
/** A value that is no optional is also an optional that holds it. */
const asOptional = (c: Container): Optional => (c.kind === "optional" ? c : { kind: "optional", item: c.kind === "tensor" ? c.item : { dtype: leafDType(c), container: c }, present: true });

/** As `joinContainers`, for items: sizes that differ become null, ranks that differ are not known. */
export function joinItems(a: ItemType, b: ItemType): ItemType | undefined {
  if (a.dtype !== b.dtype || (a.container === undefined) !== (b.container === undefined)) return undefined;
  if (a.container && b.container) {
    const container = joinContainers(a.container, b.container);
    return container && { dtype: a.dtype, container };
  }
  if (!a.shape || a.shape.length !== b.shape?.length) return { dtype: a.dtype };
  return { dtype: a.dtype, shape: a.shape.map((d, i) => { const other = b.shape?.[i]; return d !== null && other !== null && other !== undefined && dimEqual(d, other) ? d : null; }) };
}

/** The type with its sizes replaced; null forgets one. */
export function mapSizes(c: Container, f: (d: Dim) => Dim | null): Container {
  const item: ItemType = {
    dtype: c.item.dtype,
    ...(c.item.shape ? { shape: c.item.shape.map((d) => (d === null ? null : f(d))) } : {}),
    ...(c.item.container ? { container: mapSizes(c.item.container, f) } : {}),
  };
  if (c.kind !== "sequence") return { ...c, item };
  const length = c.length === undefined ? null : f(c.length);
  return { kind: "sequence", item, ...(length === null ? {} : { length }) };
}
/** The type with this shape for the tensors at the bottom, undefined sizes as they were; undefined where it contradicts what is known, or there are none. */
export function withItemShape(c: Container, shape: readonly (number | undefined)[]): Container | undefined {
  if (c.kind === "map") return undefined;
  const { dtype, container, shape: known } = c.item;
  if (container) {
    const inner = withItemShape(container, shape);
    return inner && { ...c, item: { dtype, container: inner } };
  }
  const fits = !known || (known.length === shape.length && known.every((d, i) => d === null || isSymbolic(d) || shape[i] === undefined || d === shape[i]));
  return fits ? { ...c, item: { dtype, shape: shape.map((d, i) => d ?? known?.[i] ?? null) } } : undefined;
}
/** The type with every symbolic size forgotten: as it stands in an artifact. */
export const withoutSymbols = (c: Container): Container => mapSizes(c, (d) => (isSymbolic(d) ? null : d));

/** Every size that the type says. */
export function sizesIn(c: Container): readonly Dim[] {
  const out: Dim[] = [];
  mapSizes(c, (d) => { out.push(d); return d; });
  return out;
}

/** Whether two types say the same. */
export const sameContainer = (a: Container, b: Container): boolean => keyOf(a) === keyOf(b);
function keyOf(c: Container): string {
  const known = c.kind === "sequence" ? (c.length === undefined ? "" : formatDim(c.length)) : c.kind === "optional" ? String(c.present ?? "") : "";
  return `${c.kind === "map" ? c.key : ""} ${c.kind} ${known} ${c.item.container ? keyOf(c.item.container) : formatItem(c.item)}`;
}

/** `sequence of float32[?, 3]`, for messages. */
export function formatContainer(c: Container): string {
  if (c.kind === "tensor") return `${c.item.dtype} tensor of any rank`;
  return c.kind === "map" ? `map of ${c.key} to ${formatItem(c.item)}` : `${c.kind} of ${formatItem(c.item)}`;
}
/** As `formatContainer`, of what is in one. */
export function formatItem({ dtype, shape, container }: ItemType): string {
  if (container) return formatContainer(container);
  return `${dtype}${shape ? `[${shape.map((d) => (d === null ? "?" : formatDim(d))).join(", ")}]` : ""}`;
}

/** What a value has that its type does not allow; undefined where it fits. Symbolic sizes take any size. */
export function containerMismatch(c: Container, d: Datum): string | undefined {
  switch (c.kind) {
    case "optional": return d === null ? undefined : itemMismatch(c.item, d);
    case "tensor": return itemMismatch(c.item, d);
    case "sequence": {
      if (!isSequence(d)) return `it is ${kindOf(d)}, not a sequence`;
      for (const [i, x] of d.entries()) {
        const wrong = itemMismatch(c.item, x);
        if (wrong !== undefined) return `item ${i}: ${wrong}`;
      }
      return undefined;
    }
    case "map": {
      if (!isMap(d)) return `it is ${kindOf(d)}, not a map`;
      for (const [key, value] of d) {
        if (typeof key !== (c.key === "string" ? "string" : "bigint")) return `key ${String(key)} is a ${typeof key}`;
        if (typeof value !== scalarTypeOf(c.item.dtype)) return `the entry of ${String(key)} is a ${typeof value}`;
      }
      return undefined;
    }
  }
}

function itemMismatch(item: ItemType, d: Datum): string | undefined {
  if (item.container) return containerMismatch(item.container, d);
  if (!isTensor(d)) return `it is ${kindOf(d)}, not a tensor`;
  const fits = d.dtype === item.dtype && (!item.shape || (item.shape.length === d.dims.length && item.shape.every((s, i) => s === null || isSymbolic(s) || s === d.dims[i])));
  return fits ? undefined : `it is ${d.dtype}[${d.dims.join(", ")}], not ${formatItem(item)}`;
}

/** How a map's entries of a dtype stand in JavaScript. */
export function scalarTypeOf(dtype: DType): "string" | "bigint" | "number" {
  return dtype === "string" ? "string" : dtype === "int64" || dtype === "uint64" ? "bigint" : "number";
}

const kindOf = (d: Datum): string => (d === null ? "absent" : isSequence(d) ? "a sequence" : isMap(d) ? "a map" : "a tensor");

/** Whether the rank of a tensor is not known. */
export const isUnranked = (type: { readonly container?: Container } | undefined): boolean => type?.container?.kind === "tensor";

/** The sequence type, where inference has said that it is one. */
export function sequenceOf(c: Container | undefined): Extract<Container, { kind: "sequence" }> {
  invariant(c?.kind === "sequence", "a sequence is expected");
  return c;
}
