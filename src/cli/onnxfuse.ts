#!/usr/bin/env node
/** The `onnxfuse` command. */
import { onnxfuse } from "./onnxfuse-command.ts";
import { processConsole, runMain } from "./main.ts";

await runMain(() => onnxfuse(process.argv.slice(2), processConsole));
