/**
 * Whether a segment is quicker on all threads or on the first one alone: measured, since it hangs on how near the cores
 * are to each other and what else they do. Results are the same. The first runs, and those after some hundreds, go in
 * pairs, one each way; the median of their ratios decides. Segments that take long are always shared.
 */

/** Runs before the first comparison, in which engines exchange their quick code for better. */
const warmUp = 6;
/** Pairs of a comparison. */
const pairs = 7;
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
  #times: number[] = [];

  /** Whether the next run is for the first thread alone. */
  alone(): boolean {
    if (this.#left !== undefined) return this.#alone;
    // Alone, shared, shared, alone, …: what drifts slows both alike.
    return this.#times.length % 4 === 0 || this.#times.length % 4 === 3;
  }

  /** Notes what the run took, in milliseconds. */
  note(time: number): void {
    if (this.#left !== undefined) {
      if (!this.#alone) this.#quickest = Math.min(this.#quickest, time);
      if (--this.#left > 0) return;
      this.#left = this.#quickest > long ? Infinity : undefined;
      return;
    }
    this.#times.push(time);
    if (this.#times.length === 2 * pairs) this.#decide();
  }

  #decide(): void {
    const ratios = Array.from({ length: pairs }, (_, i) => {
      const [first = 0, second = 0] = this.#times.slice(2 * i, 2 * i + 2);
      return i % 2 === 0 ? first - second : second - first;
    }).sort((a, b) => a - b);
    this.#alone = (ratios[(pairs - 1) / 2] ?? 0) < 0;
    this.#times = [];
    this.#left = this.#interval;
    this.#interval = Math.min(2 * this.#interval, longestInterval);
  }
}
