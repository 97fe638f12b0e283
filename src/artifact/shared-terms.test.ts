import { describe, expect, it } from "vitest";
import { restoreTerms, shareTerms, type Json } from "./shared-terms.ts";

const size = ["+", 1, ["/", ["+", -1, "height"], 4]];
const manifest = { options: { rules: ["#", 0] }, memory: { sizes: [size, ["*", 3, size], ["*", 3, size], "n", 4] }, buffers: [{ name: "#", dims: [size, 1] }], steps: [{ host: "x", attributes: { axes: [1, 2], names: ["#", "+"] } }] };

describe("shared terms", () => {
  it("are restored", () => {
    const shared = shareTerms(manifest);
    expect(restoreTerms(JSON.parse(JSON.stringify(shared)) as Record<string, Json>)).toEqual(manifest);
    expect(JSON.stringify(shared).length).toBeLessThan(JSON.stringify(manifest).length);
    expect(JSON.stringify(shared).split("height").length).toBe(2);
  });
  it("leave a manifest without repetitions alone", () => {
    expect(shareTerms({ memory: { sizes: ["n"] } })).toEqual({ memory: { sizes: ["n"] } });
  });
  it("that are missing are noticed", () => {
    expect(() => restoreTerms({ terms: [], memory: { sizes: [["#", 0]] } })).toThrow("OF6004");
    expect(() => restoreTerms({ terms: [["*", 2, ["#", 0]]], memory: {} })).toThrow("OF6004");
    expect(() => restoreTerms({ terms: 3, memory: {} })).toThrow(TypeError);
  });
});
