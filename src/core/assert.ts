/** Statically unreachable: adding a union member makes every switch that ends here fail to compile. */
export function assertNever(value: never): never {
  throw new InvariantError(`unreachable: ${JSON.stringify(value)}`);
}

/** A bug in onnxfuse itself, never the user's fault. */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

/** Throws an InvariantError unless `condition` holds. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/** The value, which the caller knows to be there. */
export function present<T>(value: T | undefined | null, what: string): T {
  if (value === undefined || value === null) throw new InvariantError(`missing ${what}`);
  return value;
}
