/** Operator types as the log prints them, in the words of GE's users. */
const inLines: Readonly<Record<string, string>> = { BatchNormalization: "BatchNorm", Relu: "ReLU" };
const inDetails: Readonly<Record<string, string>> = { BatchNormalization: "BN", Relu: "ReLU" };

/** `Conv + BatchNorm + ReLU` */
export const chainOf = (types: readonly string[]): string => types.map((t) => inLines[t] ?? t).join(" + ");
/** `Conv+BN+ReLU` */
export const shortChainOf = (types: readonly string[]): string => types.map((t) => inDetails[t] ?? t).join("+");
