/**
 * Whether a segment is quicker on all threads or on the first one alone: measured, since it hangs on where the system puts
 * the threads (on one core, each waits for the other's turn) and on what else the cores do. Results are the same. Some of
 * the first runs, and of those after some hundreds, are a comparison in rounds: a few runs one way, a few the other; the
 * most rounds decide. Segments that take long are always shared.
 */

/** Runs before the first comparison, in which engines exchange their quick code for better. */
const warmUp = 6;
/** Rounds of a comparison, and runs each way in one; the first shared one, for which threads must wake, does not count. */
const rounds = 3, shared = 4, alone = 3;
/** Runs between comparisons: at first, and at most. */
const firstInterval = 256, longestInterval = 8192;
/** Milliseconds above which a shared run is not compared: waiting for each other is nothing to it. */
const long = 4;

export class Pace {
  #alone = false;
  #interval = firstInterval;
  /** Runs until the next comparison; undefined in one. */
  #left: number | undefined = warmUp;
  #quickest = Infinity;
  /** Of the comparison so far, round by round. */
  #times: number[] = [];

  /** Whether the next run is for the first thread alone. */
  alone(): boolean {
    return this.#left === undefined ? this.#times.length % (shared + alone) >= shared : this.#alone;
  }

  /** Notes what the run took, in milliseconds. */
  note(time: number): void {
    if (this.#left === undefined) {
      this.#times.push(time);
      if (this.#times.length === rounds * (shared + alone)) this.#decide();
      return;
    }
    if (!this.#alone) this.#quickest = Math.min(this.#quickest, time);
    if (--this.#left === 0) this.#left = this.#quickest > long ? Infinity : undefined;
  }

  #decide(): void {
    let slower = 0;
    for (let i = 0; i < rounds; i++) {
      const round = this.#times.slice(i * (shared + alone), (i + 1) * (shared + alone));
      if (median(round.slice(1, shared)) > median(round.slice(shared))) slower++;
    }
    this.#alone = 2 * slower > rounds;
    this.#times = [];
    this.#left = this.#interval;
    this.#interval = Math.min(2 * this.#interval, longestInterval);
  }
}

const median = (times: readonly number[]): number => [...times].sort((a, b) => a - b)[times.length >> 1] ?? 0;
