/**
 * States: inputs that take, run after run, what an output was (a KV cache, the hidden state of a recurrent model). They are
 * named in pairs; a `*` in both names stands for the same text, so that `past.*` and `present.*` name those of all layers.
 */
import { isHeld } from "../core/container.ts";
import { fail, nearestName } from "../core/diagnostic.ts";
import { dimEqual, formatShape, isSymbolic } from "../core/dim.ts";
import type { Graph, StateLink, Value } from "../graph/graph.ts";

/**
 * Has the graph carry values from outputs to inputs. Fails with OF5005 where there is no such input or output, with OF5006
 * where the input cannot take what the output is.
 */
export function linkStates(graph: Graph, pairs: Readonly<Record<string, string>>): void {
  const links = Object.entries(pairs).flatMap(([input, output]) => matches(graph, input, output));
  for (const [i, { input, output }] of links.entries()) {
    const before = links.slice(0, i), twice = before.some((l) => l.input === input) ? input : before.some((l) => l.output === output) ? output : undefined;
    if (twice !== undefined) fail("OF5005", `'${twice}' is named in two states`, { place: { field: "states" } });
    checkPair(named(graph.inputs, input, "input"), named(graph.outputs, output, "output"));
  }
  graph.states = links;
}

function matches(graph: Graph, input: string, output: string): readonly StateLink[] {
  const [before = "", after, ...more] = input.split("*");
  if (after === undefined) return [{ input, output }];
  if (more.length || output.split("*").length !== 2) fail("OF5005", `the state '${input}=${output}' has not one * in each name`, { place: { field: "states" } });
  const found = graph.inputs.filter(({ name }) => name.length >= before.length + after.length && name.startsWith(before) && name.endsWith(after));
  if (!found.length) fail("OF5005", `no input is named like '${input}'`, { place: { field: "states" }, hint: `the inputs are ${graph.inputs.map((v) => v.name).join(", ")}` });
  return found.map(({ name }) => ({ input: name, output: output.replace("*", () => name.slice(before.length, name.length - after.length)) }));
}

function named(values: readonly Value[], name: string, what: string): Value {
  const near = nearestName(name, values.map((v) => v.name));
  return values.find((v) => v.name === name) ?? fail("OF5005", `the model has no ${what} '${name}'`, { place: { field: "states" }, hint: near === undefined ? `its ${what}s are ${values.map((v) => v.name).join(", ")}` : `did you mean '${near}'?` });
}

/** An input of open sizes takes what comes; a size that is given must be the output's. */
function checkPair(input: Value, output: Value): void {
  const impossible = (why: string, hint: string): never => fail("OF5006", `the input '${input.name}' cannot take the output '${output.name}': ${why}`, { place: { field: "states" }, hint });
  if (isHeld(input.type) || isHeld(output.type)) impossible("only tensors of numbers are carried", "feed it to every run");
  if (input.default) impossible("it has a value of its own", "name an input that is no initializer");
  if (input.type.dtype !== output.type.dtype) impossible(`it takes ${input.type.dtype}, not ${output.type.dtype}`, "name an output of its type");
  if (output.type.rank !== undefined || input.type.shape.length !== output.type.shape.length) impossible(`it takes ${formatShape(input.type.shape)}, not ${formatShape(output.type.shape)}`, "name an output of its rank");
  const fixed = input.type.shape.every((d, i) => isSymbolic(d) || dimEqual(d, output.type.shape[i] ?? -1));
  if (!fixed) impossible(`it takes ${formatShape(input.type.shape)}, not ${formatShape(output.type.shape)}`, "leave the sizes that change open");
}
