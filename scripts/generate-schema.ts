/**
 * Writes src/onnx/schema/onnx_pb.ts from onnx.proto, with enums as constant objects (erasable syntax). Needed only when
 * the schema changes; the result is committed. Needs protoc (Debian: `apt-get install protobuf-compiler`).
 * Run by `npm run generate:schema`.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const folder = "src/onnx/schema";
execFileSync("protoc", [
  "--plugin=protoc-gen-es=node_modules/.bin/protoc-gen-es", `--es_out=${folder}`, "--es_opt=target=ts,import_extension=ts",
  "-I", folder, "onnx.proto",
], { stdio: "inherit" });

const path = `${folder}/onnx_pb.ts`;
const erasable = readFileSync(path, "utf8").replace(/^export enum (\w+) \{\n([\s\S]*?)^\}\n/gm, (_, name: string, body: string) =>
  `export const ${name} = {\n${body.replace(/^( +\w+) = /gm, "$1: ")}} as const;\nexport type ${name} = (typeof ${name})[keyof typeof ${name}];\n`);
writeFileSync(path, erasable);
