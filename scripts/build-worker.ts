/** Writes dist/runtime/worker.js, what `workerUrl` points to: a thread's script as a file, for pages that allow no workers from Blobs. */
import { mkdirSync, writeFileSync } from "node:fs";
import { browserThread } from "../src/runtime/thread-source.ts";

mkdirSync("dist/runtime", { recursive: true });
writeFileSync("dist/runtime/worker.js", browserThread.trimStart());
