/** Generated files are what generating them now gives. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { barrels } from "../scripts/barrels.ts";
import { code } from "../scripts/code/code.ts";
import { pages } from "../scripts/pages/pages.ts";

describe("generated files are up to date (npm run generate)", () => {
  it.each([...barrels(), ...code(), ...pages()])("%s", (path, text) => {
    expect(readFileSync(path, "utf8") === text).toBe(true);
  });
});
