/** Files as commands read and write them: results appear whole or not at all. */
import { existsSync, mkdirSync, readFileSync, realpathSync, renameSync, rmdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { DiagnosticError, fail } from "../core/diagnostic.ts";

const reasonOf = (e: unknown): string => {
  const code = (e as NodeJS.ErrnoException).code;
  switch (code) {
    case "ENOENT": return "it does not exist";
    case "EISDIR": return "it is a folder";
    case "EACCES": case "EPERM": return "it may not be accessed";
    case "ENOTDIR": return "its path leads through a file";
    case "ENOSPC": case "EDQUOT": return "there is no room left";
    case "EFBIG": return "it grows too large";
    case "EROFS": return "the file system is read-only";
    case "ENAMETOOLONG": return "its name is too long";
    default: return e instanceof Error ? e.message : String(e);
  }
};

/** Whether bytes begin as artifacts do. */
export const isArtifact = (bytes: Uint8Array): boolean => bytes[0] === 0x89 && bytes[1] === 0x4f && bytes[2] === 0x4d && bytes[3] === 0x46;

/** A file's bytes. Fails with OF1004. */
export function readBytes(path: string, what: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (e) {
    return fail("OF1004", `cannot read ${what}: ${reasonOf(e)}`, { place: { file: path } });
  }
}

export const readText = (path: string, what: string): string => new TextDecoder().decode(readBytes(path, what));

/**
 * A model with access to the external data beside it. Links are followed as long as they stay beside the model, or
 * beside the file that the model's own name is a link to (as in a cache of downloads); else OF2014.
 */
export function readModelFile(path: string): { model: Uint8Array; externalData: (location: string) => Uint8Array | undefined } {
  const model = readBytes(path, "the model");
  if (isArtifact(model)) fail("OF2001", "this is an artifact, not a model: it is compiled already", { place: { file: path }, hint: "give the .onnx file that it was made of" });
  const folder = dirname(resolve(path));
  const allowed = [realpathSync(folder), dirname(realpathSync(path))];
  return {
    model,
    externalData: (location) => {
      const file = join(folder, location);
      try {
        const real = realpathSync(file);
        if (!allowed.some((a) => real.startsWith(a.endsWith(sep) ? a : a + sep))) fail("OF2014", `external data '${location}' is a link that leads outside the model's folder`, { place: { file }, hint: "external data must lie beside the model, under a relative path" });
        return readFileSync(real);
      } catch (e) {
        if (e instanceof DiagnosticError) throw e;
        if ((e as NodeJS.ErrnoException).code === "ENOENT") return undefined;
        return fail("OF1004", `cannot read external data: ${reasonOf(e)}`, { place: { file } });
      }
    },
  };
}

export interface OutputFile { readonly path: string; readonly content: Uint8Array | string }

/**
 * Writes files beside their final names and renames them when all are complete: on failure (OF1005) none of them, and
 * nothing of them, is left. The file that they are made of, where it is given, is not replaced by one of them.
 */
export function writeFiles(files: readonly OutputFile[], source?: string): void {
  const made: string[] = [];
  const staged: { readonly path: string; readonly temporary: string }[] = [];
  const taken = new Set<string>();
  try {
    for (const { path, content } of files) {
      if (taken.has(resolve(path))) fail("OF1005", "two results would have this name", { place: { file: path }, hint: "give them other names or folders" });
      taken.add(resolve(path));
      if (source !== undefined && isSameFile(path, source)) fail("OF1005", "the result would replace the model that it is made of", { place: { file: path }, hint: "give it another name" });
      attempt(path, () => {
        if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw Object.assign(new Error(), { code: "EISDIR" });
        makeFolder(dirname(resolve(path)), made);
        const temporary = `${path}.${process.pid}.part`;
        staged.push({ path, temporary });
        writeFileSync(temporary, content);
      });
    }
    for (const { path, temporary } of staged) attempt(path, () => renameSync(temporary, path));
  } catch (e) {
    for (const { temporary } of staged) if (existsSync(temporary)) rmSync(temporary, { force: true });
    for (const folder of made.reverse()) attempt(folder, () => rmdirSync(folder));
    throw e;
  }
}

function isSameFile(a: string, b: string): boolean {
  const [first, second] = [a, b].map((path) => (existsSync(path) ? statSync(path) : undefined));
  return first !== undefined && second !== undefined && first.ino === second.ino && first.dev === second.dev;
}

function attempt(path: string, action: () => void): void {
  try {
    action();
  } catch (e) {
    fail("OF1005", `cannot write the file: ${reasonOf(e)}`, { place: { file: path } });
  }
}

/** A folder and those around it, one by one: Node's recursive form does not end in file systems that refuse folders. */
function makeFolder(folder: string, made: string[]): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder), made);
  mkdirSync(folder);
  made.push(folder);
}

/** Files under paths relative to another. */
export const filesBeside = (path: string, files: Readonly<Record<string, Uint8Array>>): OutputFile[] =>
  Object.entries(files).map(([file, content]) => ({ path: join(dirname(path), file), content }));

/** Writes one file, which is not to be `source`. Fails with OF1005. */
export const writeFile = (path: string, content: Uint8Array | string, source?: string): void => writeFiles([{ path, content }], source);

export const jsonText = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`;
export const writeJson = (path: string, value: unknown, source?: string): void => writeFile(path, jsonText(value), source);
