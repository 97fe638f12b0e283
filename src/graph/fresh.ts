/** Fresh symbols for sizes that only running can tell, once a graph has been read. */
import { symbol, type Dim } from "../core/dim.ts";
import type { Graph } from "./graph.ts";

/** A symbol that nothing else in the graph means. Deterministic. */
export const freshSymbol = (graph: Graph, hint: string): Dim => symbol(graph.freshName(`$${hint.replace(/[^A-Za-z0-9_.]/g, "_")}`));
