/** Optionals: values that may hold nothing. A value of any other type stands for an optional that holds it. */
import { formatContainer } from "../core/container.ts";
import { containerType, itemOf, itemType } from "../graph/container-type.ts";
import { defineOp, optional, type TypeInfo } from "../graph/op.ts";
import * as evaluate from "../evaluate/optional.ts";

const shared = { domain: "", fusionKind: "opaque", containers: true, anyRank: true } as const;
const describe = ({ dtype, container }: TypeInfo): string => (container ? `a ${formatContainer(container)}` : `a ${dtype} tensor`);

export const Optional = defineOp({
  ...shared, type: "Optional", since: 15, inputs: { input: "optional" }, attributes: { type: optional("type") },
  infer({ input }, { type }, context) {
    if (input?.container?.kind === "optional") context.fail("OF3018", `needs a tensor or a sequence, got ${describe(input)}`);
    if (input) return [containerType({ kind: "optional", item: itemOf(input), present: true })];
    return [containerType({ kind: "optional", item: type?.valueType ?? context.fail("OF3003", "needs its attribute 'type' where it has no input"), present: false })];
  },
  evaluateData: evaluate.Optional,
});

export const OptionalHasElement = defineOp({
  ...shared, type: "OptionalHasElement", since: 18, inputs: { input: "optional" }, attributes: {},
  infer({ input }) {
    const known = !input ? false : input.container?.kind === "optional" ? input.container.present : true;
    return [{ dtype: "bool", shape: [], ...(known === undefined ? {} : { elements: [Number(known)] }) }];
  },
  evaluateData: evaluate.OptionalHasElement,
});

export const OptionalGetElement = defineOp({
  ...shared, type: "OptionalGetElement", since: 18, inputs: { input: "required" }, attributes: {},
  infer: ({ input }, _, context) => [input.container?.kind === "optional" ? itemType(input.container.item, "element", context) : input],
  evaluateData: evaluate.OptionalGetElement,
});
