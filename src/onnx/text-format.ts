/**
 * Models in protobuf's text format (`.pbtxt`), as Netron and onnx.parser's tools open it: every field that is set (and not empty text) under its
 * name in the official schema, in the order of field numbers. Follows the text format specification of protobuf.
 */
import { ScalarType, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import { reflect, type ReflectMessage } from "@bufbuild/protobuf/reflect";

/** The message as text; deterministic, ends with a newline. */
export function textFormat(schema: DescMessage, message: Message): string {
  return `${messageLines(reflect(schema, message), "").join("\n")}\n`;
}

function messageLines(message: ReflectMessage, indent: string): string[] {
  const fields = [...message.fields].sort((a, b) => a.number - b.number);
  return fields.flatMap((field) => (message.isSet(field) ? valuesOf(message, field).filter((v) => v !== "" || field.fieldKind === "list").flatMap((v) => fieldLines(field, v, indent)) : []));
}

function valuesOf(message: ReflectMessage, field: DescField): readonly unknown[] {
  if (field.fieldKind !== "list") return [message.get(field)];
  return [...(message.get(field) as Iterable<unknown>)];
}

function fieldLines(field: DescField, value: unknown, indent: string): string[] {
  const inner = field.fieldKind === "message" || (field.fieldKind === "list" && field.listKind === "message");
  if (inner) return [`${indent}${field.name} {`, ...messageLines(value as ReflectMessage, `${indent}  `), `${indent}}`];
  return [`${indent}${field.name}: ${scalarText(field, value)}`];
}

function scalarText(field: DescField, value: unknown): string {
  if (field.enum) return field.enum.values.find((v) => v.number === value)?.name ?? String(value);
  if (typeof value === "string") return quoted(new TextEncoder().encode(value));
  if (value instanceof Uint8Array) return quoted(value);
  const isFloat = field.scalar === ScalarType.FLOAT || field.scalar === ScalarType.DOUBLE;
  if (isFloat && typeof value === "number") return floatText(value, field.scalar === ScalarType.FLOAT);
  return String(value);
}

const floatText = (value: number, single: boolean): string => {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value < 0 ? "-inf" : "inf";
  const short = single ? Number(value.toPrecision(9)) : value;
  return Object.is(short, -0) ? "-0" : String(short);
};

/** Bytes in quotes; what is not printable as octal escapes. */
function quoted(bytes: Uint8Array): string {
  let out = '"';
  for (const b of bytes) {
    if (b === 0x0a) out += "\\n";
    else if (b === 0x22 || b === 0x5c) out += `\\${String.fromCharCode(b)}`;
    else out += b >= 0x20 && b < 0x7f ? String.fromCharCode(b) : `\\${b.toString(8).padStart(3, "0")}`;
  }
  return `${out}"`;
}
