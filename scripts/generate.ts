/** Writes what is generated: the barrels and the runtime's own code, then the pages of docs/ that are made from what the barrels list. Run by `npm run generate`. */
import { writeFileSync } from "node:fs";
import { barrels } from "./barrels.ts";
import { code } from "./code/code.ts";

for (const [path, text] of [...barrels(), ...code()]) writeFileSync(path, text);
const { pages } = await import("./pages/pages.ts");
for (const [path, text] of pages()) writeFileSync(path, text);
