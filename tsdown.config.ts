import { defineConfig } from "tsdown";

/** One package with subpath entries. Host operators stay separate files, each loaded when a program first needs it. */
export default defineConfig([{
  entry: {
    "api/index": "src/api/index.ts",
    "api/attention": "src/api/attention.ts",
    "runtime/index": "src/runtime/index.ts",
    "cli/atc": "src/cli/atc.ts",
    "cli/onnxfuse": "src/cli/onnxfuse.ts",
  },
  format: "esm",
  platform: "neutral",
  target: "es2022",
  dts: { entry: ["src/api/index.ts", "src/api/attention.ts", "src/runtime/index.ts"] },
  outExtensions: () => ({ js: ".js", dts: ".d.ts" }),
  external: [/^node:/, "commander"],
  // What reads models is one file instead of seventy.
  noExternal: [/^@bufbuild\/protobuf/],
  // Without comments and blanks: what a process reads before its first inference.
  minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
  // What the runtime needs at once is one file.
  outputOptions: { codeSplitting: { groups: [{ name: "runtime", test: /^(?!.*\.d\.[cm]?ts).*src\/(runtime\/(?!host-operators|threads|thread-source|loop|prepare-weight|scale|states|given-outputs)|artifact\/|backends\/wasm\/(load|relax)|memory\/place\.|core\/(assert|container|datum|diagnostic|dim-json|dtype|float-bits|float16|packed|small-floats|string-bytes|tensor|value-check|dim)\.)/ }] } },
  clean: true,
}, {
  // The report page's script, with its layout library, for browsers.
  entry: { "report/page": "src/report/page.ts" },
  format: "iife",
  platform: "browser",
  target: "es2022",
  minify: true,
  outputOptions: { entryFileNames: "[name].js" },
  noExternal: [/.*/],
  clean: false,
}]);
