/**
 * Which channel each element of a tensor belongs to, for walks over the elements in their order. Weights have channels
 * by filter, by column, or in groups; one form says them all, so that no walk asks a function about every element.
 */

/**
 * Elements lie as [groups][repeat][width][run]: `run` elements of one channel, then as many of the next until there were
 * `width`, which come `repeat` times before the next `width` channels.
 */
export interface ChannelMap {
  readonly count: number;
  readonly run: number;
  readonly width: number;
  readonly repeat: number;
}

const always = Number.MAX_SAFE_INTEGER;
export const oneChannel: ChannelMap = { count: 1, run: always, width: 1, repeat: always };
/** Every channel's elements together. */
export const byFilter = (count: number, run: number): ChannelMap => ({ count, run, width: count, repeat: 1 });
/** Channels are the columns of a matrix. */
export const byColumn = (count: number): ChannelMap => ({ count, run: 1, width: count, repeat: always });

/** A walk from run to run: the current one is of `channel`, and `end` is the element after it. */
export class ChannelWalk {
  channel = 0;
  end: number;
  readonly #map: ChannelMap;
  #first = 0;
  #times = 0;

  constructor(map: ChannelMap) {
    this.#map = map;
    this.end = map.run;
  }

  next(): void {
    const { run, width, repeat } = this.#map;
    this.end += run;
    this.channel++;
    if (this.channel < this.#first + width) return;
    this.#times++;
    if (this.#times === repeat) {
      this.#times = 0;
      this.#first += width;
    }
    this.channel = this.#first;
  }
}
