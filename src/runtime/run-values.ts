/** Values that are no plain tensors, as `run` takes and gives them: sequences are arrays, an optional that holds nothing is null, maps are Map. */
import { formatContainer, containerMismatch, scalarTypeOf, type Container, type ItemType } from "../core/container.ts";
import { isMap, isSequence, type Datum, type DatumMap } from "../core/datum.ts";
import { fail } from "../core/diagnostic.ts";
import { elementsOf, isTensorLike, Tensor, type TensorLike } from "./tensor.ts";

/** A result. Which of these it is, the session's `outputs` say. */
export type RunValue = Tensor | readonly RunValue[] | null | DatumMap;
/** What may be fed. A list of strings is a tensor of rank 1. Integer keys of maps may be numbers. */
export type Feed = TensorLike | readonly Feed[] | readonly string[] | null | ReadonlyMap<string | number | bigint, string | number | bigint>;

/** What is fed to an input that takes a container, checked; OF7003 says what it should be. */
export function containerFed(name: string, container: Container, feed: Feed): Datum {
  const datum = convert(container, feed, name);
  const wrong = containerMismatch(container, datum);
  if (wrong !== undefined) refuse(name, container, wrong);
  return datum;
}

const refuse = (name: string, container: Container, wrong: string): never =>
  fail("OF7003", `input '${name}' takes a ${formatContainer(container)}: ${wrong}`, { hint: "feed sequences as arrays, absent optionals as null, maps as Map, tensors as new Tensor(type, data, dims)" });

function convert(container: Container, feed: Feed, name: string): Datum {
  switch (container.kind) {
    case "tensor": return convertItem(container.item, feed, name);
    case "optional": return feed === null || feed === undefined ? null : convertItem(container.item, feed, name);
    case "sequence": return Array.isArray(feed) ? feed.map((x: Feed) => convertItem(container.item, x, name)) : refuse(name, container, "it is no array");
    case "map": {
      if (!(feed instanceof Map)) return refuse(name, container, "it is no Map");
      const integers = container.key !== "string", as = scalarTypeOf(container.item.dtype);
      return new Map([...(feed as ReadonlyMap<string | number | bigint, string | number | bigint>)].map(([key, value]) => [
        integers && typeof key === "number" && Number.isSafeInteger(key) ? BigInt(key) : typeof key === "number" ? String(key) : key,
        as === "bigint" && typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : value,
      ]));
    }
  }
}

function convertItem(item: ItemType, feed: Feed, name: string): Datum {
  if (item.container) return convert(item.container, feed, name);
  const given = listedStrings(feed) ?? feed;
  if (!isTensorLike(given)) return fail("OF7003", `an item fed to '${name}' is not a tensor`, { hint: "feed new Tensor(type, data, dims)" });
  if (given.type !== item.dtype) fail("OF7003", `the items of input '${name}' are ${item.dtype}, not ${given.type}`);
  const dims = [...given.dims];
  return { dtype: item.dtype, dims, data: elementsOf(item.dtype, given.data, dims, `an item fed to '${name}'`) };
}

/** A list of strings as a tensor. */
export function listedStrings(feed: unknown): TensorLike | undefined {
  return Array.isArray(feed) && feed.every((s) => typeof s === "string") ? { type: "string", data: feed, dims: [feed.length] } : undefined;
}

/** A value as `run` gives it. */
export function resultOf(d: Datum): RunValue {
  if (d === null || isMap(d)) return d;
  if (isSequence(d)) return d.map(resultOf);
  return Tensor.of(d);
}

/** A result or feed as the compiler's side holds it. */
export function datumOf(value: RunValue): Datum {
  if (value === null || value instanceof Map) return value as DatumMap | null;
  if (value instanceof Tensor) return value.unpacked();
  return (value as readonly RunValue[]).map(datumOf);
}
