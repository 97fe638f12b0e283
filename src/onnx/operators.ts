/**
 * Which operator a file's node means: by domain, type, and the opset its graph or function imports. All that is unknown
 * in a model is reported at once, before anything is built.
 */
import { DiagnosticError, fail, nearestName, type Diagnostic, type Place } from "../core/diagnostic.ts";
import type { OpDef } from "../graph/op.ts";
import { formsOfOpset7 } from "./introduced.ts";
import { nameNodes, subgraphProtos, type NamedNode } from "./order.ts";
import { refusedOperators } from "./refused.ts";
import type { FunctionProto, ModelProto, NodeProto, OperatorSetIdProto } from "./schema/onnx_pb.ts";

/** Opset versions by domain; the standard domain is "". */
export type Opsets = ReadonlyMap<string, number>;
/** Operators of older opsets are read too where their form has not changed until opset 7. */
export const oldestOpset = 7, newestOpset = 27;

export const domainOf = (domain: string): string => (domain === "ai.onnx" ? "" : domain);
export const readOpsets = (imports: readonly OperatorSetIdProto[]): Opsets => new Map(imports.map((o) => [domainOf(o.domain), Number(o.version)]));

export class Operators {
  readonly #ops: ReadonlyMap<string, OpDef>;
  readonly #functions: ReadonlyMap<string, FunctionProto>;
  constructor(ops: readonly OpDef[], functions: readonly FunctionProto[]) {
    this.#ops = new Map(ops.map((op) => [`${op.domain}:${op.type}`, op]));
    this.#functions = new Map(functions.map((f) => [`${domainOf(f.domain)}:${f.name}:${f.overload}`, f]));
  }
  operator(type: string, domain: string): OpDef | undefined { return this.#ops.get(`${domainOf(domain)}:${type}`); }
  /** The model-local function that a node calls; these come before operators of the same name. */
  function(node: NodeProto): FunctionProto | undefined { return this.#functions.get(`${domainOf(node.domain)}:${node.opType}:${node.overload}`); }
  /** Operator names of a domain that look like this one. */
  nearest(type: string, domain: string): string | undefined {
    return nearestName(type, [...this.#ops.values()].filter((op) => op.domain === domainOf(domain)).map((op) => op.type));
  }
}

const opsetDiagnostic = (message: string, place: Place): Diagnostic =>
  ({ code: "OF2003", message: `${message}; ${oldestOpset} to ${newestOpset} are supported`, place, hint: "convert the model with onnx.version_converter" });

/** Read as the operators it stands for. */
export const isFlexAttention = (node: NodeProto): boolean => node.opType === "FlexAttention" && domainOf(node.domain) === "ai.onnx.preview";
export const isSequenceMap = (node: NodeProto): boolean => node.opType === "SequenceMap" && domainOf(node.domain) === "";
const readsWithoutOperator = (node: NodeProto): boolean => (node.opType === "Constant" && domainOf(node.domain) === "") || isFlexAttention(node) || isSequenceMap(node);

/**
 * Walks every node, functions inlined and subgraphs included, and counts them. Fails with one DiagnosticError that
 * lists all that is wrong: OF2003 (opset), OF2004 (unknown operator); or with OF2040 (recursive functions).
 */
export function checkOperators(model: ModelProto, operators: Operators): { nodes: number } {
  const found: Diagnostic[] = [];
  const checkOpsets = (imports: readonly OperatorSetIdProto[], where: string): Opsets => {
    const opsets = readOpsets(imports);
    const version = opsets.get("");
    if (version !== undefined && (version < 1 || version > newestOpset)) found.push(opsetDiagnostic(`${where} uses opset ${version} of ai.onnx`, {}));
    return opsets;
  };
  const formerTypes = new Set<string>();
  /** An operator whose form of the oldest opset is newer than the model's. */
  const checkForm = (node: NamedNode, version: number | undefined): void => {
    const { opType } = node.proto;
    if (version === undefined || version >= ((Object.hasOwn(formsOfOpset7, opType) ? formsOfOpset7[opType] : undefined) ?? 1) || formerTypes.has(opType)) return;
    formerTypes.add(opType);
    found.push(opsetDiagnostic(`opset ${version} of ai.onnx has ${opType} in an older form`, { node: node.name }));
  };
  const checkNode = (node: NamedNode, opsets: Opsets): void => {
    const { opType, domain } = node.proto;
    if (!opsets.has(domainOf(domain)) && domainOf(domain) === "")
      found.push({ code: "OF2003", message: `${opType} needs the operator set ai.onnx, which is not imported`, place: { node: node.name } });
    if (domainOf(domain) === "") checkForm(node, opsets.get(""));
    if (readsWithoutOperator(node.proto) || operators.operator(opType, domain)) return;
    const near = operators.nearest(opType, domain), refusal = refusedOperators[`${domainOf(domain)}:${opType}`];
    const hint = refusal?.hint ?? (near === undefined ? undefined : `did you mean ${near}?`);
    found.push({
      code: "OF2004", place: { node: node.name },
      message: `operator ${domainOf(domain) === "" ? "" : `${domain}.`}${opType} (opset ${opsets.get(domainOf(domain)) ?? "not imported"}) is not supported${refusal ? `: ${refusal.reason}` : ""}`,
      ...(hint === undefined ? {} : { hint }),
    });
  };
  const counts = new Map<FunctionProto, number>();
  const walk = (nodes: readonly NodeProto[], opsets: Opsets, calls: readonly FunctionProto[]): number => {
    let count = 0;
    for (const node of nameNodes(nodes)) {
      for (const graph of subgraphProtos(node.proto.attribute)) count += walk(graph.node, opsets, calls);
      const callee = operators.function(node.proto);
      if (!callee) { checkNode(node, opsets); count++; continue; }
      if (calls.includes(callee))
        fail("OF2040", `functions call each other without end: ${[...calls, callee].map((f) => f.name).join(" → ")}`, { place: { node: node.name } });
      const known = counts.get(callee) ?? walk(callee.node, checkOpsets(callee.opsetImport, `function ${callee.name}`), [...calls, callee]);
      counts.set(callee, known);
      count += known;
    }
    return count;
  };
  const nodes = walk(model.graph?.node ?? [], checkOpsets(model.opsetImport, "the model"), []);
  if (found.length) throw new DiagnosticError(found);
  return { nodes };
}
