/** Command lines run in this process, each test in a folder of its own. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { atc } from "../../src/cli/atc-command.ts";
import { onnxfuse } from "../../src/cli/onnxfuse-command.ts";
import { modelBytes, type ModelSpec } from "./model-spec.ts";

/** A finished command: its exit code and what it printed. */
export interface Done { readonly code: number; readonly out: string; readonly error: string }

async function call(command: (console: { out(l: string): void; error(l: string): void }) => Promise<number>): Promise<Done> {
  const out: string[] = [], error: string[] = [];
  const code = await command({ out: (l) => out.push(l), error: (l) => error.push(l) });
  return { code, out: out.join("\n"), error: error.join("\n") };
}
const words = (line: string): string[] => line.split(" ").filter((w) => w !== "");

export interface CommandLines {
  /** Runs `atc` with a line of arguments. */
  readonly runAtc: (line: string, environment?: Record<string, string>) => Promise<Done>;
  /** Runs `onnxfuse` with a line of arguments. */
  readonly run: (line: string) => Promise<Done>;
  /** Writes a model into the folder. */
  readonly write: (name: string, spec: ModelSpec) => void;
  /** The folder, which is the current one. */
  readonly folder: () => string;
}

/** For use at the top of a test file. */
export function commandLines(): CommandLines {
  let folder = "", before = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "onnxfuse-cli-"));
    before = process.cwd();
    process.chdir(folder);
  });
  afterEach(() => {
    process.chdir(before);
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    runAtc: (line, environment = {}) => call((c) => atc(words(line), environment, c)),
    run: (line) => call((c) => onnxfuse(words(line), c)),
    write: (name, spec) => writeFileSync(join(folder, name), modelBytes(spec)),
    folder: () => folder,
  };
}
