/**
 * GE's "gears": `--dynamic_batch_size="1,2,4"`, `--dynamic_image_size="h,w;h,w"`, `--dynamic_dims="d,d;d,d"`. They are
 * checked as GE checks them; one program serves every size here, so the sizes simply stay open.
 */
import { fail } from "../../core/diagnostic.ts";
import type { GivenShape } from "./input-shapes.ts";

const gearOptions = ["dynamic_batch_size", "dynamic_image_size", "dynamic_dims"] as const;

/** Fails with OF1011: gears that are not lists of sizes, exclude each other, or do not fit the open sizes of `--input_shape`. */
export function checkGears(values: Readonly<Record<string, string | undefined>>, shapes: Readonly<Record<string, GivenShape>>): void {
  const given = gearOptions.filter((name) => values[name] !== undefined);
  const [name, other] = given;
  if (name === undefined) return;
  const wrong = (message: string, hint: string): never => fail("OF1011", message, { place: { field: name }, hint });
  if (other !== undefined) wrong(`--${name} and --${other} exclude each other`, "use --dynamic_dims for all sizes");
  const text = values[name] ?? "";
  const gears = (name === "dynamic_batch_size" ? text.split(",") : text.split(";")).map((g) => g.split(","));
  for (const size of gears.flat()) if (!/^\s*[1-9]\d*\s*$/.test(size)) wrong(`'${size}' is not a size`, name === "dynamic_batch_size" ? "write 1,2,4" : "write 224,224;448,448");
  const open = Object.values(shapes).map((s) => s.filter((d) => d === undefined).length);
  const total = open.reduce((n, d) => n + d, 0);
  if (total === 0) wrong("no size of --input_shape is open", 'write -1 for sizes that change, --input_shape="x:-1,3,224,224"');
  const expected = name === "dynamic_batch_size" ? 1 : name === "dynamic_image_size" ? 2 : total;
  for (const gear of gears) if (gear.length !== expected) wrong(`'${gear.join(",")}' has ${gear.length} sizes instead of ${expected}`, `--input_shape leaves ${total} sizes open`);
}
