#!/usr/bin/env node
/** The `atc` command. */
import { atc } from "./atc-command.ts";
import { processConsole, runMain } from "./main.ts";

await runMain(() => atc(process.argv.slice(2), process.env, processConsole));
