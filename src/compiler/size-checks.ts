/** Sizes that must agree → what the runtime checks. */
import type { CheckJson } from "../artifact/manifest.ts";
import { dimToJson } from "../core/dim-json.ts";
import type { NodeAgreement } from "../core/agreement.ts";

/** The checks, in the order of the agreements; one whose sizes are never all known is passed over when it runs. */
export const sizeChecks = (agreements: readonly NodeAgreement[]): readonly CheckJson[] => agreements.map(({ a, b, how, node, where }): CheckJson =>
  ({ a: dimToJson(a), b: dimToJson(b), node, ...(how === "broadcast" ? { broadcast: true } : {}), ...(where ? { where: where.map(dimToJson) } : {}) }));
