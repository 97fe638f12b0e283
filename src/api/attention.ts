/**
 * onnxfuse/attention: scaled dot-product attention by itself, softmax(q·kᵀ·scale + mask)·v, as one kernel with an
 * online softmax that never holds the scores. An artifact made by our own compiler when the package was built; at use
 * only the runtime is needed. A fully masked row gives what the operators one by one give.
 */
import { fail } from "../core/diagnostic.ts";
import { load } from "../runtime/load.ts";
import type { Session } from "../runtime/session.ts";
import { Tensor, type TensorLike } from "../runtime/tensor.ts";
import { attentionArtifacts } from "./attention-artifacts.ts";

/** Letters: batch, heads (N), sequence, depth of a head (D); H is heads times depth. */
export type AttentionLayout = "BNSD" | "BSND" | "BSH";

export interface AttentionInputs {
  /** float32, as `inputLayout` says. */
  readonly query: TensorLike;
  /** As many heads as the query, or a divisor of them: then consecutive query heads share one. */
  readonly key: TensorLike;
  readonly value: TensorLike;
  /** Heads of the query. */
  readonly headNum: number;
  /** Heads of key and value; default `headNum`. */
  readonly keyHeadNum?: number;
  readonly inputLayout: AttentionLayout;
  /** Added to the scores: float32 [batch or 1, heads or 1, query length, key length]. */
  readonly mask?: TensorLike;
  /** Default 1/√depth. */
  readonly scale?: number;
}

/** Attention loaded for one layout, for repeated use. */
export class Attention {
  readonly #layout: AttentionLayout;
  readonly #sessions: { readonly plain: Session; readonly masked: Session };

  private constructor(layout: AttentionLayout, plain: Session, masked: Session) {
    this.#layout = layout;
    this.#sessions = { plain, masked };
  }

  static async load(inputLayout: AttentionLayout): Promise<Attention> {
    const known: readonly string[] = ["BNSD", "BSND", "BSH"];
    if (!known.includes(inputLayout)) fail("OF7020", `there is no layout '${String(inputLayout)}'`, { hint: `use one of ${known.join(", ")}` });
    const base = inputLayout === "BNSD" ? "BNSD" : "BSND";
    const [plain, masked] = await Promise.all([load(decode(attentionArtifacts[base])), load(decode(attentionArtifacts[`${base}+mask`]))]);
    return new Attention(inputLayout, plain, masked);
  }

  /** The result, laid out as the query. Fails with OF7021 where shapes do not fit. */
  async run(inputs: Omit<AttentionInputs, "inputLayout">): Promise<Tensor> {
    const { headNum, keyHeadNum = headNum } = inputs;
    if (headNum % keyHeadNum !== 0) fail("OF7021", `${headNum} query heads cannot share ${keyHeadNum} key heads evenly`);
    const query = this.#groups(this.#split(inputs.query, headNum, "query"), keyHeadNum), key = this.#split(inputs.key, keyHeadNum, "key"), value = this.#split(inputs.value, keyHeadNum, "value");
    const depth = query.dims[4] ?? 1;
    const scale = new Tensor("float32", Float32Array.of(inputs.scale ?? 1 / Math.sqrt(depth)), []);
    const { output } = inputs.mask
      ? await this.#sessions.masked.run({ query, key, value, scale, mask: inputs.mask })
      : await this.#sessions.plain.run({ query, key, value, scale });
    if (!output) return fail("OF7021", "attention gave no result");
    if (this.#layout !== "BSH") return output;
    const [batch = 0, sequence = 0, heads = 0, width = 0] = output.dims;
    return new Tensor("float32", output.data as Float32Array, [batch, sequence, heads * width]);
  }

  /** The query with its heads as key heads and the query heads of each. */
  #groups(query: TensorLike, keyHeads: number): TensorLike {
    const axis = this.#layout === "BNSD" ? 1 : 2, { dims } = query;
    return { type: query.type, data: query.data, dims: [...dims.slice(0, axis), keyHeads, (dims[axis] ?? 0) / keyHeads, ...dims.slice(axis + 1)] };
  }

  dispose(): void {
    this.#sessions.plain.dispose();
    this.#sessions.masked.dispose();
  }

  /** Four axes, with the heads the caller says. */
  #split(t: TensorLike, heads: number, name: string): TensorLike {
    if (!Number.isInteger(heads) || heads < 1) fail("OF7021", `${heads} is not a number of heads`);
    if (this.#layout === "BSH") {
      const [batch = 0, sequence = 0, hidden = 0] = t.dims;
      if (t.dims.length !== 3 || hidden % heads !== 0) fail("OF7021", `${name} of [${t.dims.join(", ")}] does not split into ${heads} heads`, { hint: "BSH takes [batch, sequence, heads · depth]" });
      return { type: t.type, data: t.data, dims: [batch, sequence, heads, hidden / heads] };
    }
    const axis = this.#layout === "BNSD" ? 1 : 2;
    if (t.dims.length !== 4 || t.dims[axis] !== heads) fail("OF7021", `${name} of [${t.dims.join(", ")}] does not have ${heads} heads`, { hint: `${this.#layout} has them at axis ${axis}` });
    return t;
  }
}

/** Attention once. To run it often, keep an `Attention`. */
export async function flashAttention(inputs: AttentionInputs): Promise<Tensor> {
  const attention = await Attention.load(inputs.inputLayout);
  try {
    return await attention.run(inputs);
  } finally {
    attention.dispose();
  }
}

function decode(base64: string): Uint8Array {
  const text = atob(base64);
  return Uint8Array.from(text, (c) => c.charCodeAt(0));
}
