/** The layers of the source: who may import whom, what the runtime pulls in, no cycles, files of a readable size. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const root = resolve("src");
const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(".ts")).map((f) => f.replaceAll("\\", "/")).sort();
const sources = files.filter((f) => !f.endsWith(".test.ts"));
const text = (file: string): string => readFileSync(join(root, file), "utf8");

interface Import { readonly from: string; readonly to: string; readonly kind: "type" | "value" | "dynamic" }

/** Imports of files below src, and of packages and Node built-ins by name. */
function importsOf(file: string): Import[] {
  const out: Import[] = [];
  const add = (target: string, kind: Import["kind"]): void => {
    out.push({ from: file, to: target.startsWith(".") ? relative(root, resolve(root, dirname(file), target)).replaceAll("\\", "/") : target, kind });
  };
  for (const [, type, target = ""] of text(file).matchAll(/^(?:import|export)\s+(type\s)?[^"';]*?from\s+"([^"]+)"/gm)) add(target, type ? "type" : "value");
  for (const [, target = ""] of text(file).matchAll(/\bimport\((?:\/\*[^*]*\*\/\s*)?"([^"]+)"\)/g)) add(target, "dynamic");
  return out;
}
const imports = sources.flatMap(importsOf);
const isPackage = (target: string): boolean => !target.endsWith(".ts");

/** Folder → folders it may import, besides itself. */
const layers: Readonly<Record<string, readonly string[]>> = {
  core: [],
  kernel: ["core"],
  evaluate: ["core"],
  graph: ["core", "kernel"],
  ops: ["core", "kernel", "graph", "evaluate"],
  rewrite: ["core", "graph"],
  rules: ["core", "graph", "ops", "rewrite"],
  portable: ["core", "graph", "ops", "rewrite"],
  onnx: ["core", "graph", "ops"],
  passes: ["core", "graph", "ops", "rewrite"],
  reference: ["core", "graph", "ops", "evaluate"],
  lower: ["core", "kernel", "graph"],
  schedule: ["core", "kernel"],
  memory: ["core", "kernel"],
  backends: ["core", "kernel", "schedule", "memory"],
  artifact: ["core"],
  compiler: ["core", "kernel", "graph", "reference", "ops", "rewrite", "rules", "portable", "onnx", "passes", "lower", "schedule", "memory", "backends", "artifact"],
  runtime: ["core", "artifact", "evaluate"],
  verify: ["compiler", "runtime", "reference", "core", "graph", "onnx", "ops", "passes", "rewrite", "rules", "artifact"],
  api: ["core", "graph", "ops", "compiler", "verify", "runtime", "onnx", "rewrite"],
  profile: ["core", "compiler", "schedule", "onnx", "backends", "artifact", "runtime"],
  report: ["core", "graph", "rewrite", "compiler"],
  cli: ["core", "api", "runtime", "profile", "compiler", "report", "verify", "artifact", "onnx", "ops", "rewrite"],
};
/** Files that may be imported from a folder whose rest may not be. */
const doors: Readonly<Record<string, readonly string[]>> = { schedule: ["memory/pack.ts"], runtime: ["memory/place.ts", "memory/pack.ts", "memory/quads.ts", "memory/control.ts", "backends/wasm/load.ts", "backends/wasm/splice.ts"] };
/** A backend's loader is the runtime's side of it. */
const ownFolders: Readonly<Record<string, readonly string[]>> = { "backends/wasm/load.ts": ["core", "artifact", "backends"], "backends/wasm/relax.ts": ["core"], "backends/wasm/splice.ts": [] };
/** Packages that a folder may use; Node's own only where commands are. */
const packages: Readonly<Record<string, RegExp>> = { cli: /^(node:|commander$)/, onnx: /^@bufbuild\/protobuf/, runtime: /^$/, report: /^@dagrejs\/dagre$/ };
const dynamicNodeImports: readonly string[] = ["runtime/open.ts", "runtime/threads.ts"];

const folderOf = (file: string): string => file.split("/")[0] ?? "";

function violations(list: readonly Import[]): string[] {
  return list.flatMap(({ from, to, kind }) => {
    const folder = folderOf(from);
    if (isPackage(to)) {
      const allowed = packages[folder]?.test(to) || (kind === "dynamic" && to.startsWith("node:") && dynamicNodeImports.includes(from));
      return allowed ? [] : [`${from} imports the package ${to}`];
    }
    const target = folderOf(to);
    const allowed = ownFolders[from] ?? [folder, ...(layers[folder] ?? [])];
    return allowed.includes(target) || doors[folder]?.includes(to) ? [] : [`${from} imports ${to}`];
  });
}

/** Files reachable by static imports of values. */
function closure(start: string, list: readonly Import[]): Set<string> {
  const seen = new Set<string>([start]);
  for (const file of seen) for (const i of list) if (i.from === file && i.kind === "value" && !isPackage(i.to)) seen.add(i.to);
  return seen;
}

function cycle(list: readonly Import[]): string[] | undefined {
  const targets = new Map<string, string[]>();
  for (const i of list) if (i.kind === "value" && !isPackage(i.to)) targets.set(i.from, [...(targets.get(i.from) ?? []), i.to]);
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return undefined;
    for (const to of targets.get(file) ?? []) { const found = visit(to, [...path, file]); if (found) return found; }
    done.add(file);
    return undefined;
  };
  for (const file of targets.keys()) { const found = visit(file, []); if (found) return found; }
  return undefined;
}

describe("layers", () => {
  it("every folder has its place", () => {
    expect([...new Set(sources.map(folderOf))].filter((f) => !(f in layers))).toEqual([]);
  });
  it("nobody imports what they may not", () => {
    expect(violations(imports)).toEqual([]);
  });
  it("would see a forbidden import", () => {
    expect(violations([{ from: "core/dim.ts", to: "graph/graph.ts", kind: "type" }, { from: "compiler/compile.ts", to: "node:fs", kind: "value" }, { from: "runtime/session.ts", to: "memory/plan.ts", kind: "value" }])).toHaveLength(3);
  });
  it("has no cycles", () => {
    expect(cycle(imports)).toBeUndefined();
    expect(cycle([{ from: "a.ts", to: "b.ts", kind: "value" }, { from: "b.ts", to: "a.ts", kind: "value" }])).toEqual(["a.ts", "b.ts", "a.ts"]);
  });
});

describe("the runtime", () => {
  it("holds no compiler", () => {
    const reached = new Set([...closure("runtime/index.ts", imports), ...closure("runtime/prepare-weight.ts", imports)]);
    const folders = new Set([...reached].map(folderOf));
    expect([...folders].sort()).toEqual(["artifact", "backends", "core", "memory", "runtime"]);
    expect([...reached].filter((f) => f.startsWith("backends/") || f.startsWith("memory/")).sort()).toEqual(["backends/wasm/load.ts", "backends/wasm/relax.ts", "memory/pack.ts", "memory/place.ts", "memory/quads.ts", "memory/winograd-code.ts", "memory/winograd-kernels.ts"]);
  });
  it("loads host operators one by one", () => {
    const host = importsOf("runtime/host-operators.ts").filter((i) => i.to.startsWith("evaluate/"));
    expect(host.length).toBeGreaterThan(50);
    expect(host.every((i) => i.kind === "dynamic")).toBe(true);
  });
});

describe("files", () => {
  const generated = new Set(["onnx/schema/onnx_pb.ts", "ops/index.ts", "rules/index.ts", "runtime/host-operators.ts", "api/attention-artifacts.ts", "artifact/checksum-code.ts", "memory/winograd-code.ts"]);
  it("are named in kebab-case, and nothing is a drawer for everything", () => {
    const names = files.map((f) => f.split("/").pop() ?? "");
    expect(names.filter((n) => n !== "onnx_pb.ts" && !/^[a-z0-9]+(-[a-z0-9]+)*(\.test)?\.ts$/.test(n))).toEqual([]);
    expect(names.filter((n) => /^(utils?|helpers?|common|misc)\./.test(n))).toEqual([]);
  });
  it("are at most 400 lines", () => {
    expect(files.filter((f) => !generated.has(f) && text(f).split("\n").length > 400)).toEqual([]);
  });
  it("say at their head what they are for", () => {
    expect(sources.filter((f) => !generated.has(f) && !/^(#![^\n]*\n)?\/\*\*/.test(text(f)))).toEqual([]);
  });
  it("need no escape from the type checker", () => {
    const forbidden = /@ts-(ignore|nocheck|expect-error)|:\s*any\b|\bas any\b|<any>|\benum\s+\w+\s*\{|\bnamespace\s+\w+/;
    expect(sources.filter((f) => !generated.has(f) && forbidden.test(text(f).replace(/\/\*[\s\S]*?\*\/|\/\/.*|"[^"\n]*"|`[^`]*`/g, "")))).toEqual([]);
  });
});
