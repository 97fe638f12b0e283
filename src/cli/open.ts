/** Opens what a command is given: an artifact as it is, a model by compiling it. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { compile, type CompileOptions } from "../api/index.ts";
import { fail } from "../core/diagnostic.ts";
import { load, type Session } from "../runtime/index.ts";
import { isArtifact, readBytes, readModelFile } from "./files.ts";

/** The artifact in a file, compiled first where it is a model. */
export async function openArtifact(path: string, options: CompileOptions): Promise<Uint8Array> {
  const bytes = readBytes(path, "the file");
  if (isArtifact(bytes)) return bytes;
  if (path.endsWith(".om")) return bytes;
  return (await compile(readModelFile(path), options)).artifact;
}

/** A session for the artifact or model in a file. */
export async function openSession(path: string, options: CompileOptions, threads = 1): Promise<{ readonly session: Session; readonly artifact: Uint8Array }> {
  const artifact = await openArtifact(path, options);
  return { session: await loadBeside(artifact, path, threads), artifact };
}

/** Loads an artifact, with the weights that lie beside its file where it holds none. */
export const loadBeside = (artifact: Uint8Array, path: string, threads = 1): Promise<Session> =>
  load(artifact, { threads, externalData: (file) => { const at = join(dirname(path), file); return existsSync(at) ? readBytes(at, "the artifact's weights") : undefined; } });

/** An artifact's bytes. Fails with OF1012 for anything else. */
export function readArtifactFile(path: string): Uint8Array {
  const bytes = readBytes(path, "the artifact");
  return isArtifact(bytes) || path.endsWith(".om") ? bytes : fail("OF1012", `'${path}' is not an artifact`, { hint: "compile it first, with onnxfuse compile" });
}
