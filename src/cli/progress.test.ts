import { expect, test } from "vitest";
import { progressTo } from "./progress.ts";

const shown = (isTTY: boolean): { readonly out: string[]; at: number; readonly progress: (text?: string) => void } => {
  const state = { out: [] as string[], at: 0, progress: (_?: string): void => undefined };
  state.progress = progressTo({ isTTY, write: (text) => state.out.push(text) }, () => state.at);
  return state;
};

test("a terminal has one line that changes", () => {
  const { out, progress } = shown(true);
  for (const text of ["one", "two", undefined]) progress(text);
  expect(out).toEqual(["\r\x1b[Kone", "\r\x1b[Ktwo", "\r\x1b[K"]);
});

test("a log has a line every ten seconds, and none of short work", () => {
  const s = shown(false);
  for (let i = 0; i <= 25; i++) { s.at = i * 1000; s.progress(`round ${i}`); }
  s.progress();
  expect(s.out).toEqual(["round 10\n", "round 20\n"]);
});
