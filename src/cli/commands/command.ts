/** The form of an `onnxfuse` command. */
import type { Console } from "../main.ts";

export interface CommandOption {
  /** `name`, `name <value>`, or `name <value...>` where it may be given several times. */
  readonly flags: string;
  readonly doc: string;
}

/** A parsed command line. */
export interface CommandLine {
  readonly operands: readonly string[];
  /** The last value of an option; undefined where it is not given. */
  value(name: string): string | undefined;
  /** All values of an option that may be given several times. */
  values(name: string): readonly string[];
  has(name: string): boolean;
  /** A whole number of at least `least`. Fails with OF1002. */
  count(name: string, otherwise: number, least?: number): number;
  /** The help text, where it was asked for. */
  readonly help?: string;
}

export interface Command {
  readonly name: string;
  /** Operands as the help shows them, such as `<model.onnx>`; `...` marks several. */
  readonly operands: string;
  readonly doc: string;
  readonly options: readonly CommandOption[];
  /** The exit code. */
  run(line: CommandLine, console: Console): Promise<number>;
}

export const jsonOption: CommandOption = { flags: "json", doc: "print JSON" };
export const threadsOption: CommandOption = { flags: "threads <number>", doc: "how many threads compute (default 1)" };

/** Options of everything that compiles a model. */
export const modelOptions: readonly CommandOption[] = [
  { flags: "shape <shape...>", doc: 'an input\'s shape, "x:1,3,224,224"; -1 stays dynamic' },
  { flags: "dim <size...>", doc: "a named dimension's size, batch=1" },
  { flags: "state <pair...>", doc: "an input that sessions carry from run to run, and the output that is its next value: past.*=present.*" },
  { flags: "no-fusion", doc: "build without fusion" },
  { flags: "fusion-rules <file>", doc: "custom fusion rules, JSON" },
  { flags: "rules <file>", doc: "custom fusion rules: a module (.mjs, .ts) that makes them with defineRule, or JSON" },
  { flags: "fusion-switches <file>", doc: "turns named fusions on or off" },
  { flags: "disable <fusion...>", doc: "turn one fusion off, by rule, GE pass or region kind" },
  { flags: "enable <fusion...>", doc: "turn one fusion on that a switch file turns off" },
  { flags: "only-rule <rule>", doc: "of all rules only this one" },
  { flags: "max-rewrites <number>", doc: "at most so many rewrites, to find by halving the one that changes a result" },
  { flags: "freeze-initializers", doc: "make initializers that are inputs too constant" },
  { flags: "no-winograd", doc: "compute 3x3 convolutions directly: slower, with a tenth of the rounding error" },
  { flags: "keep-dtype <node...>", doc: "nodes, or OpType::Type, whose 16-bit float results are rounded also inside fusions, and whose weights keep their type" },
  { flags: "choices <file>", doc: "tiles, strips and algorithms by kernel, as onnxfuse tune has measured them" },
  { flags: "weights <form>", doc: "hold the weights of contractions in f16, or in int8 with a scale for every output channel" },
  { flags: "allow-approximate", doc: "allow rewrites that are right only for finite values, or approximate" },
  { flags: "approximate <rule...>", doc: "allow these of the rules that approximate" },
];
