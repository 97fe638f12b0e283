import { describe, expect, test } from "vitest";
import type { DimJson } from "../core/dim-json.ts";
import type { MemoryJson } from "../artifact/manifest.ts";
import { Arena } from "./arena.ts";
import { Heap } from "./heap.ts";

const block = (slot: number, bytes: DimJson, first: number, last: number, where?: DimJson): MemoryJson["arena"][number] => ({ bytes, first, last, at: { slot }, ...(where === undefined ? {} : { where: [where] }) });
/** Sizes that grow, shrink and vanish with n. */
const plan: MemoryJson = {
  table: 64, sizes: ["n", ["*", 2, "n"]], slots: 8, fixedEnd: 256, weightBytes: 0,
  arena: [block(2, ["*", 4, "n"], 0, 2), block(3, ["*", 64, ["+", "n", 3]], 1, 3), block(4, ["max", 0, ["+", 9000, ["*", -64, "n"]]], 2, 4), block(5, ["*", 128, ["%", "n", 7]], 0, 4), block(6, 640, 3, 5, ["/", "n", 50]), block(7, ["*", 4, "m"], 2, 5)],
};
const bytesAt = (n: number, m: number): number[] => [4 * n, 64 * (n + 3), Math.max(0, 9000 - 64 * n), 128 * (n % 7), n >= 50 ? 640 : 0, 4 * m];

function arena(): { readonly arena: Arena; readonly heap: Heap; readonly at: () => number[] } {
  const heap = new Heap(new WebAssembly.Memory({ initial: 1 }), plan.fixedEnd), a = new Arena(plan, heap);
  return { arena: a, heap, at: () => plan.arena.map((b) => a.address(b.at)) };
}

function expectApart(at: readonly number[], bytes: readonly number[], heap: Heap, what: string): void {
  const wrong: string[] = [];
  plan.arena.forEach((a, i) => {
    const from = at[i] ?? 0, to = from + (bytes[i] ?? 0);
    if (to > from && (from < plan.fixedEnd || to > heap.bytes.length)) wrong.push(`block ${i} lies outside`);
    plan.arena.forEach((b, k) => {
      if (k <= i || a.last < b.first || b.last < a.first || to === from || !bytes[k]) return;
      if (to > (at[k] ?? 0) && (at[k] ?? 0) + (bytes[k] ?? 0) > from) wrong.push(`blocks ${i} and ${k} overlap`);
    });
  });
  expect(wrong, what).toEqual([]);
}

describe("an arena whose sizes keep changing", () => {
  test("keeps apart what is alive together, whatever the sizes do", () => {
    const { arena: a, heap, at } = arena();
    for (let n = 0; n < 300; n++) for (const m of [n % 5, 40]) {
      a.begin(new Map([["n", n], ["m", m]]));
      expectApart(at(), bytesAt(n, m), heap, `n ${n}, m ${m}`);
      expect([a.size("n"), new DataView(heap.memory.buffer).getInt32(64, true), new DataView(heap.memory.buffer).getInt32(68, true)]).toEqual([n, n, 2 * n]);
    }
  });

  test("gives growing sizes the same places for a while, in memory that does not grow the second time", () => {
    const { arena: a, heap, at } = arena();
    const places = new Set<string>();
    const pass = (): number => {
      for (let n = 1024; n < 1536; n++) { a.begin(new Map([["n", 7 * n], ["m", 1]])); places.add(at().slice(0, 3).join()); }
      return heap.bytes.length;
    };
    const memory = pass();
    expect(places.size).toBeLessThan(60);
    expect(places.size).toBeGreaterThan(2);
    expect(pass()).toBe(memory);
  });

  test("places what a step tells around what is there", () => {
    const { arena: a, heap, at } = arena();
    for (let n = 1; n < 60; n++) {
      a.begin(new Map([["n", n]]));
      const before = at().slice(0, 5);
      a.extend(new Map([["m", 3 * n]]));
      const after = at(), base = (after[0] ?? 0) - (before[0] ?? 0);
      expectApart(after, bytesAt(n, 3 * n), heap, `n ${n}`);
      before.forEach((b, i) => { if (bytesAt(n, 0)[i]) expect((after[i] ?? 0) - b, `n ${n}, block ${i}`).toBe(base); });
    }
  });
});
