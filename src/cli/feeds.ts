/** Inputs of a session from files or generated: `--input x=file.npy`, `.json`, or raw bytes with `--dim`. */
import { readArtifact } from "../artifact/artifact.ts";
import { mostAxes } from "../core/dim.ts";
import { dtypes, viewBytes, type DType } from "../core/dtype.ts";
import { isPacked, packedBytes, unpackElements } from "../core/packed.ts";
import { formatContainer, type Container } from "../core/container.ts";
import { fail, nearestName } from "../core/diagnostic.ts";
import { sizeOf, type Tensor as CoreTensor } from "../core/tensor.ts";
import { Tensor, type Feed, type Port, type Session } from "../runtime/index.ts";
import { resultOf } from "../runtime/run-values.ts";
import { generateDatum } from "../verify/inputs.ts";
import { assumedSizes } from "./assumed-sizes.ts";
import type { CommandLine, CommandOption } from "./commands/command.ts";
import { parseDims } from "./options/dims.ts";
import { readBytes, readText } from "./files.ts";
import { parseInputShapes } from "./options/input-shapes.ts";
import { parseJson } from "./json.ts";
import { readNpy } from "./npy.ts";

export const feedOptions: readonly CommandOption[] = [
  { flags: "input <name=file...>", doc: "an input from .npy, .json or raw bytes; others are random" },
  { flags: "seed <number>", doc: "seed of random inputs (default 1)" },
];

export interface FeedPlan {
  readonly feeds: Record<string, Feed>;
  /** Sizes that were assumed because nothing said them. */
  readonly assumed: Readonly<Record<string, number>>;
}

/** Feeds for every input of a session that has no value of its own. The artifacts are all that these feeds will run on: sizes that nothing says hang on them. */
export function feedsFor(session: Session, artifacts: readonly Uint8Array[], line: CommandLine): FeedPlan {
  const files = new Map(line.values("input").map((text): [string, string] => {
    const at = text.indexOf("=");
    if (at <= 0) fail("OF1013", `'${text}' is not name=file`, { place: { field: "input" } });
    return [text.slice(0, at), text.slice(at + 1)];
  }));
  if (files.size < line.values("input").length) fail("OF1013", "an input is given two files", { place: { field: "input" } });
  for (const name of files.keys()) if (!session.inputs.some((i) => i.name === name)) unknown(name, session.inputs);
  const sizes = new Map(Object.entries(parseDims(line.values("dim"))));
  const shapes = new Map(Object.entries(parseInputShapes(line.values("shape").join(";"), "shape")));
  const feeds: Record<string, Feed> = {};
  for (const port of session.inputs) {
    const file = files.get(port.name);
    if (file === undefined) continue;
    if (port.container) {
      if (!file.endsWith(".json")) fail("OF1014", `'${port.name}' is a ${formatContainer(port.container)}; it is read from .json`, { place: { file } });
      feeds[port.name] = containerFromJson(parseJson(readText(file, "the input"), file, "OF1014"), port.container, port, file);
      continue;
    }
    const t = readTensorFile(file, port, sizes);
    bind(port, t.dims, sizes);
    feeds[port.name] = Tensor.of(t);
  }
  for (const port of session.inputs) bind(port, shapes.get(port.name) ?? [], sizes);
  const open = session.inputs.filter((port) => !files.has(port.name)).flatMap((port) => port.dims).filter((d): d is string => typeof d === "string" && !sizes.has(d));
  const assumed = assumedSizes(artifacts, [...new Set(open)], sizes);
  const needed = new Set(artifacts.flatMap((bytes) => readArtifact(bytes).manifest.inputs).filter((input) => !input.default).map((input) => input.name));
  session.inputs.forEach((port, i) => {
    if (files.has(port.name) || !needed.has(port.name)) return;
    const dims = port.dims.map((d) => (typeof d === "number" ? d : sizes.get(d) ?? assumed.get(d) ?? 1));
    const type = port.container ? { dtype: port.dtype, container: port.container } : { dtype: port.dtype, shape: dims };
    feeds[port.name] = resultOf(generateDatum(type, "normal", line.count("seed", 1) * 1000 + i));
  });
  return { feeds, assumed: Object.fromEntries(assumed) };
}

/** Takes sizes of symbols from a shape. */
function bind(port: Port, dims: readonly (number | undefined)[], sizes: Map<string, number>): void {
  port.dims.forEach((d, axis) => { const size = dims[axis]; if (typeof d === "string" && size !== undefined && !sizes.has(d)) sizes.set(d, size); });
}

function unknown(name: string, inputs: readonly Port[]): never {
  const near = nearestName(name, inputs.map((i) => i.name));
  return fail("OF7002", `there is no input '${name}'`, { hint: near === undefined ? `the inputs are ${inputs.map((i) => i.name).join(", ")}` : `did you mean '${near}'?` });
}

function readTensorFile(file: string, port: Port, sizes: ReadonlyMap<string, number>): CoreTensor {
  if (file.endsWith(".npy")) return readNpy(readBytes(file, "the input"), file);
  if (file.endsWith(".json")) return fromJson(parseJson(readText(file, "the input"), file, "OF1014"), port, file);
  if (port.dtype === "string") fail("OF1014", `'${port.name}' takes strings; they are read from .json`, { place: { file } });
  const bytes = readBytes(file, "the input");
  const dims = port.dims.map((d) => (typeof d === "number" ? d : sizes.get(d) ?? fail("OF1014", `the size '${d}' of raw input '${port.name}' is not known`, { hint: `give it, --dim ${d}=…` })));
  const wanted = packedBytes(port.dtype, sizeOf(dims));
  if (bytes.length !== wanted) fail("OF1014", `'${file}' has ${bytes.length} bytes; ${port.dtype} of [${dims.join(", ")}] has ${wanted}`);
  if (isPacked(port.dtype)) return { dtype: port.dtype, dims, data: unpackElements(port.dtype, bytes, sizeOf(dims)) };
  return { dtype: port.dtype, dims, data: viewBytes(port.dtype, bytes) };
}

/** Lists for sequences, null for an optional that holds nothing, objects for maps, and tensors in them as alone. */
function containerFromJson(value: unknown, container: Container, port: Port, file: string): Feed {
  const { item } = container;
  const itemFromJson = (x: unknown): Feed => (item.container ? containerFromJson(x, item.container, port, file) : Tensor.of(fromJson(x, { ...port, dtype: item.dtype }, file)));
  switch (container.kind) {
    case "tensor": return itemFromJson(value);
    case "optional": return value === null ? null : itemFromJson(value);
    case "sequence": return Array.isArray(value) ? value.map(itemFromJson) : fail("OF1014", `'${port.name}' is a ${formatContainer(container)}; write a list`, { place: { file } });
    case "map": {
      if (typeof value !== "object" || value === null || Array.isArray(value)) return fail("OF1014", `'${port.name}' is a ${formatContainer(container)}; write an object`, { place: { file } });
      const { data } = Tensor.of(fromJson(Object.values(value), { ...port, dtype: item.dtype }, file)), keys = Object.keys(value);
      return new Map(keys.map((key, i) => [container.key === "string" ? key : integerKey(key, file), data[i] ?? 0]));
    }
  }
}
const integerKey = (key: string, file: string): bigint => (/^-?\d{1,18}$/.test(key) ? BigInt(key) : fail("OF1014", `'${key}' is not an integer key`, { place: { file } }));

/** `{ "type", "dims", "data": [...] }`, or nested lists. */
function fromJson(value: unknown, port: Port, file: string): CoreTensor {
  const wrong = (message: string): never => fail("OF1014", message, { place: { file }, hint: 'write nested lists, or {"dims": [2], "data": [1, 2]}' });
  const given: { readonly type?: unknown; readonly dims?: unknown; readonly data?: unknown } = typeof value === "object" && value !== null && !Array.isArray(value) ? value : { data: value };
  const { type = port.dtype, data } = given;
  if (data === undefined) return wrong("it has no data");
  if (!isDType(type)) return wrong(`there is no type '${String(type)}'`);
  const nested = dimsOf(data, mostAxes) ?? wrong(`its lists differ in length, or lie more than ${mostAxes} deep`);
  const dims: readonly unknown[] = Array.isArray(given.dims) ? given.dims : nested;
  const flat: unknown[] = [data].flat(Infinity);
  const sizes = dims.map((d) => (typeof d === "number" && Number.isSafeInteger(d) && d >= 0 ? d : wrong(`'${String(d)}' is not a size`)));
  if (flat.length !== sizeOf(sizes)) wrong(`there are ${flat.length} elements for [${sizes.join(", ")}]`);
  return new Tensor(type, flat as (number | string | boolean)[], sizes).unpacked();
}

const isDType = (name: unknown): name is DType => typeof name === "string" && Object.hasOwn(dtypes, name);

/** Lengths of nested lists; undefined where lists side by side differ, or lie deeper than `most`. */
function dimsOf(value: unknown, most: number): readonly number[] | undefined {
  if (!Array.isArray(value)) return [];
  if (most === 0) return undefined;
  const inner = value.map((v) => dimsOf(v, most - 1)), [first = []] = inner;
  return inner.every((d) => d !== undefined && d.join() === first.join()) ? [value.length, ...first] : undefined;
}
