/** The catalogue's families: control flow, constants, memory and grouping. */
import { row, type CatalogueSection } from "./catalogue.ts";

export const wholeGraph: CatalogueSection = {
  title: "Control flow, constants and memory",
  rows: [
    row("If with a known condition, or with a condition on sizes", "simplified", "inlining; for a rank that hangs on a size, reading under one answer with a check at run time"),
    row("If as Where", "none", "both branches would run: their costs, errors and effects too"),
    row("Loop with a known number of few iterations", "simplified", "unrolling"),
    row("what does not change in a loop, moved out of it", "simplified", "constant folding for what is constant; not otherwise: a loop may run no time, and an error in it then never happens"),
    row("recurrent cells spelled out", "partition", "kernels over their parts; not as LSTM or GRU: the sequence operators are exported as such"),
    row("functions of the model", "operator", "inlining when reading; regions become functions again on export"),
    row("constant folding", "simplified", "the operators' own definitions, with a limit of size, never for random results"),
    row("equal nodes and equal constants", "simplified", "common subexpressions; constants are compared by their bits"),
    row("dead nodes, unused outputs and initializers", "simplified", "dead code"),
    row("fixed sizes", "operator", "`--input_shape`, `--dim`"),
    row("order of steps, lifetimes, views and in-place results in one arena", "layout", "the memory plan"),
    row("weights packed for their kernels", "kernel", "packing when compiling, or when loading where it makes them larger"),
    row("recomputing what is cheap instead of keeping it", "partition", "inlining into every consumer where that costs no more than loading"),
    row("operators without a kernel", "operator", "host operators in the same memory, named in the report"),
    row("version conversion, sub-models, external data", "operator", "reading and writing every form from opset 7 on; `--out_nodes`; `--external_weight`"),
  ],
};

export const grouping: CatalogueSection = {
  title: "Grouping what is left",
  rows: [
    row("kinds of operators and convexity", "partition", "the partition"),
    row("loops over elements and rows, with broadcasting", "partition", "merging producers into consumers, then siblings, most bytes saved first"),
    row("reductions with what comes before and after", "partition", "the same, where no work is repeated in each pass"),
    row("several results of one loop", "partition", "siblings that read the same elements"),
    row("whole rows in one kernel (Softmax, normalisations, attention)", "kernel", "passes over a row while it is in the cache; attention by blocks with a running maximum"),
    row("element-wise work before a product, in the product's kernel", "none", "an element is read for every tile of the result, and would be computed as often; the work joins the kernel before it. Widening, dequantising and index maps are read in place"),
    row("gathers and concatenations in the kernel that reads them", "layout", "index maps that are inlined; placements"),
    row("independent small kernels in one call", "none", "they share nothing: only the call itself would be saved"),
    row("limits of size", "partition", "128 nodes and 4 results a kernel"),
    row("patterns of the user", "operator", "`--fusion_rules`, before all others; every cut is explained"),
  ],
};
