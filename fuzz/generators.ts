/** All generators by name, in the order in which they take turns. */
import { accumulation } from "./accumulation.ts";
import { elementWise } from "./element-wise.ts";
import type { Generator } from "./fuzz-case.ts";
import { movement } from "./movement.ts";

export const generators: Readonly<Record<string, Generator>> = { ...elementWise, ...movement, ...accumulation };
