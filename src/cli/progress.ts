/** Shows what long work is at: one line that changes on a terminal; in a log, a line every ten seconds, so that short work says nothing. */

/** Milliseconds between two lines of a log, and before the first. */
const logged = 10_000;

/** Where it is shown. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** Takes what the work is at, or nothing when the line is to be cleared. `now` is in milliseconds. */
export function progressTo(stream: ProgressStream, now: () => number = () => performance.now()): (text?: string) => void {
  let last = now();
  return (text = "") => {
    if (stream.isTTY) { stream.write(`\r\x1b[K${text}`); return; }
    if (text === "" || now() - last < logged) return;
    last = now();
    stream.write(`${text}\n`);
  };
}
