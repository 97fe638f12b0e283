/** Evaluation of ScatterRows: what ScatterND does. */
import type { Evaluate } from "../core/evaluate.ts";
import { ScatterND } from "./gather.ts";

export const ScatterRows: Evaluate = ScatterND;
