/** The package as it is published: version, entries, commands. `npm test` builds it first. */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { version } from "../src/compiler/version.ts";

interface Package {
  readonly version: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
}
const described = JSON.parse(readFileSync("package.json", "utf8")) as Package;

test("artifacts record the package's version", () => {
  expect(version).toBe(described.version);
});

describe.skipIf(!existsSync("dist"))("the build", () => {
  const entries = Object.values(described.exports).flatMap((e) => (typeof e === "string" ? [] : [e]));
  test("has every entry, with types", () => {
    expect(entries).toHaveLength(3);
    for (const e of entries) for (const file of [e.types, e.default]) expect(existsSync(file), file).toBe(true);
  });
  test("has commands that a shell can start", () => {
    for (const file of Object.values(described.bin)) expect(readFileSync(file, "utf8")).toMatch(/^#!\/usr\/bin\/env node\n/);
  });
  test("compiles and runs through its entries alone", async () => {
    const [main, runtime] = await Promise.all(entries.map((e) => import(/* @vite-ignore */ new URL(`../${e.default}`, import.meta.url).href) as Promise<Record<string, unknown>>));
    expect(Object.keys(main ?? {})).toEqual(expect.arrayContaining(["compile", "optimise", "DiagnosticError"]));
    expect(Object.keys(runtime ?? {})).toEqual(expect.arrayContaining(["load", "Session", "Tensor"]));
  });
  test("keeps Node's own modules out of what browsers load", () => {
    for (const e of entries) expect(readFileSync(e.default, "utf8")).not.toMatch(/from "node:/);
  });
});
