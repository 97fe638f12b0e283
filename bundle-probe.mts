import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "vite";
const root = process.argv[2] ?? "."; const folder = "/tmp/h-scratch/d/bundle";
await build({ configFile: false, logLevel: "silent", root: resolve(root), build: { outDir: folder, emptyOutDir: true, target: "es2022", minify: true, lib: { entry: resolve(root, "src/runtime/index.ts"), formats: ["es"], fileName: () => "runtime.js" }, rollupOptions: { external: [/^node:/] } } });
const seen = new Set<string>();
const eager = (entry: string) => { if (seen.has(entry)) return; seen.add(entry); for (const [, t = ""] of readFileSync(join(folder, entry), "utf8").matchAll(/(?:^|[;}\s])(?:import|export)\s*(?:[^"'();]*?from\s*)?["']\.\/([^"']+)["']/g)) eager(t); };
eager("runtime.js");
let n = 0;
for (const f of seen) { const b = gzipSync(readFileSync(join(folder, f)), { level: 9 }).length; n += b; console.log(f, b); }
console.log(root, n, readdirSync(folder).filter((f) => f.includes("thread")));
