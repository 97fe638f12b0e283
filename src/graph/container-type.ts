/** Types of values that are containers, as inference makes them and takes them apart. */
import { isUnranked, joinContainers, joinItems, leafDType, type Container, type ItemType } from "../core/container.ts";
import type { DType } from "../core/dtype.ts";
import type { InferContext, TypeInfo } from "./op.ts";

/** The type of a value that is this container. */
export const containerType = (container: Container): TypeInfo => ({ dtype: leafDType(container), shape: [], container });

/** The type of a tensor whose rank only running tells. */
export const unranked = (dtype: DType): TypeInfo => containerType({ kind: "tensor", item: { dtype } });

/** A value's type as that of an item of a container. */
export const itemOf = ({ dtype, shape, container }: TypeInfo): ItemType => (!container ? { dtype, shape } : container.kind === "tensor" ? container.item : { dtype, container });

/** An item's type as that of a value; sizes that are not known become fresh symbols. */
export function itemType({ dtype, shape, container }: ItemType, hint: string, context: InferContext): TypeInfo {
  if (container) return containerType(container);
  return !shape ? unranked(dtype) : { dtype, shape: shape.map((d, axis) => d ?? context.fresh(`${hint}_${axis}`)) };
}

/** The type without what is known of its elements. */
export const withoutElements = ({ dtype, shape, container }: TypeInfo): TypeInfo => ({ dtype, shape, ...(container ? { container } : {}) });

/** What holds of a value that is of one type or the other, at least one of them a container; undefined where they do not fit. */
export function joinHeldTypes(a: TypeInfo, b: TypeInfo): TypeInfo | undefined {
  if (isTensorType(a) && isTensorType(b)) return a.dtype === b.dtype ? unranked(a.dtype) : undefined;
  const joined = a.container && b.container ? joinContainers(a.container, b.container) : a.container?.kind === "optional" ? optionalOf(a.container, b) : b.container?.kind === "optional" ? optionalOf(b.container, a) : undefined;
  return joined && containerType(joined);
}

const isTensorType = (type: TypeInfo): boolean => !type.container || isUnranked(type);

/** An optional, or a tensor in its place. */
function optionalOf(optional: Extract<Container, { kind: "optional" }>, tensor: TypeInfo): Container | undefined {
  const item = joinItems(optional.item, itemOf(tensor));
  return item && { kind: "optional", item };
}
