/** What a model file says about itself besides its graph. */
import type { Diagnostic } from "../core/diagnostic.ts";
import type { NodeAgreement } from "../core/agreement.ts";
import type { Opsets } from "./operators.ts";

export interface ModelInfo {
  readonly irVersion: number;
  /** Versions of the operator sets, by domain ("" is ai.onnx). */
  readonly opsets: Opsets;
  readonly producerName: string;
  readonly producerVersion: string;
  readonly domain: string;
  readonly modelVersion: number;
  readonly docString: string;
  /** The graph's name. */
  readonly name: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Every node after function inlining, Constants and nodes of subgraphs included. */
  readonly originalNodes: number;
  /** How often the graph holds the model's nodes, for different sizes. */
  readonly variants: number;
  /** The file's operator type of every original node, by the node's name (as in `origins`). */
  readonly nodeTypes: ReadonlyMap<string, string>;
  /** Sizes that must agree when the model runs, with the node that says so. */
  readonly agreements: readonly NodeAgreement[];
  /** Names that the file gives to sizes of its outputs, by output; undefined where a size has none. */
  readonly outputSizes?: ReadonlyMap<string, readonly (string | undefined)[]>;
  /** What the reader ignored. */
  readonly warnings: readonly Diagnostic[];
}
