/**
 * An artifact as it comes in: its manifest and code, then its weights, read once and in order to where they belong, so
 * that they are never held twice. Guarantees what `readArtifact` does, once `end` has returned: nothing of it may run
 * before.
 */
import { checkManifest } from "./check-manifest.ts";
import { parseSection } from "./artifact.ts";
import type { ByteSource } from "./byte-source.ts";
import { Checksum } from "./checksum.ts";
import { damaged, expectChecksum, expectZeros, headerBytes, readHeader, readTable, type SectionPlace } from "./container.ts";
import { inconsistent } from "./inconsistent.ts";
import type { Manifest } from "./manifest.ts";

/** The weights section from its start to its end. Offsets are bytes in it, and never go back. */
export interface WeightStream {
  /** Elements from `offset` on; a view that may be good until the next call only. */
  take(offset: number, length: number): Promise<Uint8Array>;
  /** Fills `into` with the elements from `offset` on. */
  fill(offset: number, into: Uint8Array): Promise<void>;
}

/** Bytes that are read ahead while those before them are summed. */
const chunkBytes = 1 << 22;
/** Bytes of sections that are only looked over, a step. */
const stepBytes = 1 << 16;
/** More than any section takes that is held as a whole. */
const mostHeld = 2 ** 30;

export class ArrivingArtifact {
  readonly manifest: Manifest;
  /** The weights in the artifact itself; to be read before `end`. */
  readonly weights: WeightStream;
  readonly #reader: Reader;
  readonly #sum: Checksum;
  readonly #held: readonly Uint8Array[];
  readonly #places: readonly SectionPlace[];

  private constructor(reader: Reader, sum: Checksum, places: readonly SectionPlace[], held: readonly Uint8Array[], weights: SectionPlace) {
    this.#reader = reader;
    this.#sum = sum;
    this.#places = places;
    this.#held = held;
    this.weights = new SectionStream(reader, sum, weights);
    const at = places.findIndex((p) => p.kind === "manifest");
    this.manifest = checkManifest(parseSection(held[at] ?? inconsistent("it has no manifest"), "manifest"), places.map((p) => p.kind), weights.length);
  }

  /** Reads up to the weights. Fails with OF6001 to OF6004. */
  static async open(source: ByteSource): Promise<ArrivingArtifact> {
    const reader = new Reader(source), sum = new Checksum(), head = (await reader.upTo(headerBytes)).slice();
    const { tableEnd, fileBytes } = readHeader(head, source.length);
    const table = new Uint8Array(tableEnd);
    table.set(head);
    table.set(await reader.take(tableEnd - headerBytes), headerBytes);
    const places = readTable(table, fileBytes, sum), held: Uint8Array[] = [];
    for (const place of places) {
      await reader.skipTo(place.offset);
      if (place.kind === "weights") return new ArrivingArtifact(reader, sum, places, held, place);
      if (place.length > mostHeld) damaged(`its ${place.kind} section is too large`);
      const bytes = (await reader.take(place.length)).slice();
      expectChecksum(place, sum.update(bytes).take());
      held.push(bytes);
    }
    return inconsistent("it has no weights section");
  }

  /** A section that the manifest names. */
  section(index: number): Uint8Array {
    return this.#held[index] ?? inconsistent(`section ${index} does not lie before the weights`);
  }

  /** Reads what is left and checks it. */
  async end(): Promise<void> {
    for (const place of this.#places.slice(this.#held.length)) {
      await this.#reader.skipTo(place.offset);
      if (place.kind === "weights") continue;
      await this.#reader.look(place.length, (bytes) => this.#sum.update(bytes));
      expectChecksum(place, this.#sum.take());
    }
    await this.#reader.end();
  }
}

/** Reads on; what lies between sections must be zeros. */
class Reader {
  readonly #source: ByteSource;
  #at = 0;
  /** Reads what is left of the section that is being read. */
  #finish: (() => Promise<void>) | undefined;
  constructor(source: ByteSource) { this.#source = source; }

  get at(): number { return this.#at; }

  /** The next bytes, fewer where the file ends. */
  async upTo(length: number): Promise<Uint8Array> {
    const bytes = await this.#source.take(length);
    this.#at += bytes.length;
    return bytes;
  }
  async take(length: number): Promise<Uint8Array> {
    const bytes = await this.upTo(length);
    return bytes.length === length ? bytes : this.#cut();
  }
  /** Fills `into` piece by piece, each told to `seen` while the next one is read. */
  async fill(into: Uint8Array, seen: (bytes: Uint8Array) => void): Promise<void> {
    const part = (at: number): Uint8Array => into.subarray(at, at + chunkBytes);
    let read = this.#source.fill(part(0));
    for (let at = 0; at < into.length; at += chunkBytes) {
      const count = await read;
      this.#at += count;
      if (count < part(at).length) this.#cut();
      if (at + chunkBytes < into.length) read = this.#source.fill(part(at + chunkBytes));
      seen(part(at));
    }
  }
  async look(length: number, seen: (bytes: Uint8Array) => void): Promise<void> {
    for (let left = length; left > 0; left -= stepBytes) seen(await this.take(Math.min(left, stepBytes)));
  }
  /** Has the rest of a section read by `finish` before anything that comes after it. */
  during(finish: () => Promise<void>): void { this.#finish = finish; }
  async skipTo(offset: number): Promise<void> {
    const finish = this.#finish;
    this.#finish = undefined;
    await finish?.();
    if (offset > this.#at) await this.look(offset - this.#at, expectZeros);
  }
  async end(): Promise<void> {
    await this.skipTo(Math.ceil(this.#at / 64) * 64);
    if ((await this.#source.take(1)).length > 0) damaged("bytes follow its last section");
  }
  #cut(): never { return damaged(`it ends after ${this.#at} bytes`); }
}

/** A section whose parts are read in order and summed. */
class SectionStream implements WeightStream {
  readonly #reader: Reader;
  readonly #place: SectionPlace;
  readonly #sum: Checksum;
  constructor(reader: Reader, sum: Checksum, place: SectionPlace) {
    this.#reader = reader;
    this.#sum = sum;
    this.#place = place;
    reader.during(async () => {
      await this.#goTo(place.length);
      expectChecksum(place, sum.take());
    });
  }
  async take(offset: number, length: number): Promise<Uint8Array> {
    await this.#goTo(offset, length);
    const bytes = await this.#reader.take(length);
    this.#sum.update(bytes);
    return bytes;
  }
  async fill(offset: number, into: Uint8Array): Promise<void> {
    await this.#goTo(offset, into.length);
    await this.#reader.fill(into, (bytes) => this.#sum.update(bytes));
  }
  async #goTo(offset: number, length = 0): Promise<void> {
    if (offset + length > this.#place.length) inconsistent("a weight lies outside its section");
    const missing = this.#place.offset + offset - this.#reader.at;
    if (missing < 0) inconsistent("its weights overlap");
    await this.#reader.look(missing, (bytes) => this.#sum.update(bytes));
  }
}
