/** Weights in files beside their artifact, as a stream. */
import { present } from "../core/assert.ts";
import { fail } from "../core/diagnostic.ts";
import type { WeightStream } from "./arriving.ts";
import type { ExternalPieceJson } from "./manifest.ts";

/** Reads a file beside the artifact; undefined where there is none. */
export type ReadFile = (file: string) => Uint8Array | undefined | Promise<Uint8Array | undefined>;

/** `checksum` of artifact/checksum.ts, which the runtime has at hand when it loads this. */
export type Sum = (bytes: Uint8Array) => number;

/** Files that are asked for before they are needed. */
const ahead = 4;

/**
 * Weights in files, each read when its turn comes and let go when it is past. Fails with OF6006 where a file is missing,
 * OF6007 where it is not the one the artifact was written with.
 */
export class ExternalStream implements WeightStream {
  readonly #pieces: readonly ExternalPieceJson[];
  readonly #read: ReadFile | undefined;
  readonly #sum: Sum;
  readonly #files = new Map<number, Promise<Uint8Array>>();
  /** The piece that is being read. */
  #at = 0;

  constructor(pieces: readonly ExternalPieceJson[], read: ReadFile | undefined, sum: Sum) {
    this.#sum = sum;
    this.#pieces = [...pieces].sort((a, b) => a.offset - b.offset);
    this.#read = read;
    this.#pieces.forEach((p, i) => { if (p.offset < endOf(this.#pieces[i - 1])) fail("OF6004", "the artifact is inconsistent: its external weights overlap", { hint: "compile the model again" }); });
  }

  async take(offset: number, length: number): Promise<Uint8Array> {
    await this.#goTo(offset);
    const piece = this.#pieces[this.#at];
    if (piece && piece.offset <= offset && offset + length <= endOf(piece)) return (await this.#file(this.#at)).subarray(offset - piece.offset, offset - piece.offset + length);
    const bytes = new Uint8Array(length);
    await this.fill(offset, bytes);
    return bytes;
  }

  async fill(offset: number, into: Uint8Array): Promise<void> {
    await this.#goTo(offset);
    into.fill(0);
    for (let i = this.#at; ; i++) {
      const piece = this.#pieces[i];
      if (!piece || piece.offset >= offset + into.length) return;
      const bytes = await this.#file(i), from = piece.offset - offset;
      if (from >= 0) into.set(bytes.subarray(0, into.length - from), from);
      else into.set(bytes.subarray(-from, into.length - from));
    }
  }

  /** Reads the files that no weight was taken from, as they must be there too. */
  async end(): Promise<void> { await this.#goTo(Infinity); }

  async #goTo(offset: number): Promise<void> {
    for (let piece = this.#pieces[this.#at]; piece && endOf(piece) <= offset; piece = this.#pieces[this.#at]) {
      await this.#file(this.#at);
      this.#files.delete(this.#at++);
    }
  }

  #file(index: number): Promise<Uint8Array> {
    for (let i = index; i < Math.min(index + ahead, this.#pieces.length); i++) {
      const piece = this.#pieces[i];
      if (!piece || this.#files.has(i)) continue;
      const file = (async () => whole(piece, await this.#read?.(piece.file), this.#sum))();
      // Told to whoever asks for it.
      file.catch(() => undefined);
      this.#files.set(i, file);
    }
    return present(this.#files.get(index), "external weights");
  }
}

export const endOf = (piece: ExternalPieceJson | undefined): number => (piece ? piece.offset + piece.length : 0);

function whole({ file, length, checksum: sum }: ExternalPieceJson, bytes: Uint8Array | undefined, checksum: Sum): Uint8Array {
  if (!bytes) return fail("OF6006", `the artifact's weights in '${file}' were not found`, { hint: "keep the folder beside the artifact, or pass `externalData` to load" });
  if (!(bytes instanceof Uint8Array) || bytes.byteLength !== length || checksum(bytes) !== sum) return fail("OF6007", `'${file}' does not hold the weights that the artifact was written with`, { hint: "copy both again, or compile again" });
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
