/** The frame of every command: user errors become one line a diagnostic and exit code 1, bugs keep their stack. */
import { DiagnosticError, formatDiagnostic } from "../core/diagnostic.ts";
import { progressTo } from "./progress.ts";

/** What commands write to. */
export interface Console {
  out(line: string): void;
  error(line: string): void;
  /** Shows what long work is at (progress.ts); without text, clears it. */
  progress?(text?: string): void;
}
export const processConsole: Console = {
  out: (line) => { process.stdout.write(`${line}\n`); },
  error: (line) => { process.stderr.write(`${line}\n`); },
  progress: progressTo(process.stderr),
};

/** Lines that describe an error. */
export function errorLines(e: unknown): string[] {
  if (e instanceof DiagnosticError) return e.diagnostics.map(formatDiagnostic);
  const detail = e instanceof Error ? (e.stack ?? e.message) : String(e);
  return [`OF0000: this is a bug in onnxfuse, please report it: ${detail}`];
}

/** Runs a command and sets the exit code. A closed pipe (`| head`) ends quietly. */
export async function runMain(command: () => Promise<number>): Promise<void> {
  process.stdout.on("error", (e: NodeJS.ErrnoException) => { if (e.code === "EPIPE") process.exit(0); });
  process.exitCode = await command();
}
