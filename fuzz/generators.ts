/** All generators by name, in the order in which they take turns. */
import { accumulation } from "./accumulation.ts";
import { attentions } from "./attention.ts";
import { contrib } from "./contrib.ts";
import { contribQuantised } from "./contrib-quantised.ts";
import { elementWise } from "./element-wise.ts";
import type { Generator } from "./fuzz-case.ts";
import { movement } from "./movement.ts";
import { recurrence } from "./recurrent.ts";
import { sampling } from "./sampling.ts";

/** Operators whose data may be whatever others give. */
export const ofAnyData: Readonly<Record<string, Generator>> = { ...elementWise, ...movement, ...accumulation };
export const generators: Readonly<Record<string, Generator>> = { ...ofAnyData, ...contrib, ...contribQuantised, ...attentions, ...recurrence, ...sampling };
