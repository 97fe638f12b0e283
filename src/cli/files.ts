/** Files as commands read and write them: results appear whole or not at all. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fail } from "../core/diagnostic.ts";

const reasonOf = (e: unknown): string => {
  const code = (e as NodeJS.ErrnoException).code;
  switch (code) {
    case "ENOENT": return "it does not exist";
    case "EISDIR": return "it is a folder";
    case "EACCES": case "EPERM": return "it may not be accessed";
    case "ENOTDIR": return "its path leads through a file";
    case "ENOSPC": return "there is no room left";
    default: return e instanceof Error ? e.message : String(e);
  }
};

/** A file's bytes. Fails with OF1004. */
export function readBytes(path: string, what: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (e) {
    return fail("OF1004", `cannot read ${what}: ${reasonOf(e)}`, { place: { file: path } });
  }
}

export const readText = (path: string, what: string): string => new TextDecoder().decode(readBytes(path, what));

/** A model with access to the external data beside it. */
export function readModelFile(path: string): { model: Uint8Array; externalData: (location: string) => Uint8Array | undefined } {
  const folder = dirname(resolve(path));
  return {
    model: readBytes(path, "the model"),
    externalData: (location) => {
      try {
        return readFileSync(join(folder, location));
      } catch (e) {
        if ((e as NodeJS.ErrnoException).code === "ENOENT") return undefined;
        return fail("OF1004", `cannot read external data: ${reasonOf(e)}`, { place: { file: join(folder, location) } });
      }
    },
  };
}

/** Writes a file beside its final name and renames it. Fails with OF1005. */
export function writeFile(path: string, content: Uint8Array | string): void {
  const temporary = `${path}.${process.pid}.part`;
  try {
    mkdirSync(dirname(resolve(path)), { recursive: true });
    writeFileSync(temporary, content);
    renameSync(temporary, path);
  } catch (e) {
    rmSync(temporary, { force: true });
    fail("OF1005", `cannot write the file: ${reasonOf(e)}`, { place: { file: path } });
  }
}

export const writeJson = (path: string, value: unknown): void => writeFile(path, `${JSON.stringify(value, undefined, 2)}\n`);
