/** Runs command lines as a person would: through a shell, with `atc` and `onnxfuse` of this build on the PATH. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

export interface Workplace {
  /** An empty folder, the working directory of `run`. */
  readonly folder: string;
  run(command: string, environment?: Readonly<Record<string, string>>): { readonly code: number; readonly stdout: string; readonly stderr: string };
}

export function workplace(): Workplace {
  const root = mkdtempSync(join(tmpdir(), "onnxfuse-"));
  const bin = join(root, "bin"), folder = join(root, "work");
  mkdirSync(bin);
  mkdirSync(folder);
  for (const name of ["atc", "onnxfuse"]) {
    writeFileSync(join(bin, name), `#!/bin/sh\nexec "${process.execPath}" "${resolve(`dist/cli/${name}.js`)}" "$@"\n`);
    chmodSync(join(bin, name), 0o755);
  }
  return {
    folder,
    run(command, environment = {}) {
      const done = spawnSync("sh", ["-c", command], { cwd: folder, encoding: "utf8", env: { ...process.env, ...environment, PATH: `${bin}:${process.env["PATH"] ?? ""}` }, maxBuffer: 1 << 28 });
      return { code: done.status ?? -1, stdout: done.stdout, stderr: done.stderr };
    },
  };
}
