/** The catalogue's families: convolution and matrix products. */
import { row, type CatalogueSection } from "./catalogue.ts";

export const contractions: CatalogueSection = {
  title: "Weights and biases of convolutions and products",
  rows: [
    row("normalisation after a convolution or product, into its weights", "rule", "where its conditions hold", "fold-batch-norm-into-conv", "fold-batch-norm-into-conv-transpose", "fold-batch-norm-into-gemm", "fold-batch-norm-into-matmul"),
    row("normalisation before a convolution", "rule", "where its conditions hold", "fold-batch-norm-into-following-conv"),
    row("normalisation before a transposed convolution, or before Gemm", "rule", "not into the weights: how many taps reach an element of a transposed convolution depends on its place; before Gemm the multiplication joins the producer's kernel", "decompose-batch-norm"),
    row("normalisation that stands alone, as one multiplication and addition", "rule", "where its conditions hold", "decompose-batch-norm"),
    row("factors after a convolution or product", "rule", "where its conditions hold", "fold-mul-into-biased-matmul", "fold-mul-into-conv", "fold-mul-into-conv-transpose", "fold-mul-into-gemm", "fold-mul-into-matmul"),
    row("sums after a convolution or product, as its bias", "rule", "the epilogue for MatMul of any rank", "fold-add-into-conv", "fold-add-into-conv-transpose", "fold-add-into-gemm"),
    row("factors and shifts before a convolution", "rule", "where its conditions hold", "fold-mul-into-following-conv", "fold-add-into-following-conv"),
    row("padding into the window that reads it", "rule", "zeros before MaxPool only where nothing is below 0 and every window has an element", "pad-into-conv", "pad-into-average-pool", "pad-into-max-pool"),
    row("automatic padding as numbers", "kernel", "the convolution's kernel, which computes it from the sizes, symbolic ones too"),
    row("two products in a row as one", "rule", "where approximations are allowed: an infinite input may differ", "merge-following-products"),
    row("two convolutions in a row, one of them 1x1, as one", "rule", "where approximations are allowed: an infinite input may differ", "merge-following-convs"),
    row("added branches of 3x3, 1x1 and the input itself as one convolution", "rule", "where approximations are allowed: an infinite input may differ", "merge-parallel-convs"),
    row("products of one input side by side: query, key and value", "rule", "where its conditions hold", "merge-sibling-products"),
    row("products of one input that meet again element by element: gate and up", "rule", "one kernel with accumulators for each; 1x1 convolutions stay a call each, the last of which takes what joins them: as such a kernel they took 0.97 to 1.04 of the time", "merge-gated-products"),
    row("convolutions of one input side by side", "rule", "where its conditions hold", "merge-sibling-convolutions"),
    row("groups of convolutions on the parts of a Split as one grouped convolution", "rule", "equal parts in their order, the same window; what follows all of them alike goes behind", "merge-split-convolutions"),
    row("low-rank adapters added to the matrix", "rule", "where approximations are allowed: an infinite input may differ; adapters that are fed must stay", "merge-low-rank-adapter"),
    row("several constant factors and sums in a row as one", "partition", "one kernel does them in one loop; not as one constant: the order of roundings would change, and a product of factors may overflow"),
    row("constant weights transposed when compiling", "simplified", "constant folding"),
  ],
};

export const epilogues: CatalogueSection = {
  title: "What joins the kernel of a convolution or product",
  rows: [
    row("activations, of every kind, and anything element by element", "partition", "the epilogue: computed while the sums are in registers"),
    row("residual sums, with broadcasting", "partition", "the epilogue; not where the residual is computed from the result itself (`residual-cycle`)"),
    row("activations, factors and biases behind a Transpose or Reshape of the result", "rule", "done before the view, so that they are in the epilogue; constants of one value, or of one along an axis that the view keeps", "compute-before-view"),
    row("transposed operands and results", "layout", "views: the kernel reads and writes by strides"),
    row("scales before or after a product", "partition", "the epilogue for those after; not moved across the product: what was finite could overflow"),
    row("reshapes around a product", "layout", "views"),
    row("Einsum", "kernel", "a kernel of its own over its labels"),
    row("pooling in the kernel of the convolution before it", "partition", "where the convolution's result is larger than a second-level cache: along strips of rows, which the pool reads from a scratch tile; not for smaller results (`stays-in-cache`), nor where rows of overlapping windows would be computed twice at more than 8 products an element (`windows-overlap`). A mean over the whole plane stays a kernel of its own: it is at most 0.3 % of a run"),
    row("depthwise and 1x1 convolution in one kernel", "partition", "where what lies between them is larger than a second-level cache: along strips of rows, which the product reads from a scratch tile; smaller results stay in the cache between two kernels, which are as quick (`stays-in-cache`)"),
    row("rows chosen after a product, chosen before it instead", "rule", "by Slice or Gather, where nothing else reads the product", "select-rows-before-product"),
    row("1x1 convolutions as products; Winograd for 3x3; depthwise loops", "kernel", "the kernel's structure, chosen for each layer; Winograd after a check of the layer's error"),
    row("layouts with channels last", "layout", "the layout of the program, with one conversion at an end where it is needed"),
    row("factoring and distributing products over sums", "none", "the order of roundings would change, and sums may overflow"),
    row("products in another order, where that is cheaper", "none", "sums are rounded in another order, and may overflow; constant matrices are joined where approximations are allowed"),
    row("a bias of zeros left out", "none", "it is a load and an addition for each result, in the epilogue: too little to look for"),
    row("dilation spelled as space to batch", "none", "ONNX has no such operator"),
  ],
};
