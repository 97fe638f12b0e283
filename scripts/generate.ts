/** Writes what is generated: the barrels, then the pages of docs/ that are made from what the barrels list. Run by `npm run generate`. */
import { writeFileSync } from "node:fs";
import { barrels } from "./barrels.ts";

for (const [path, text] of barrels()) writeFileSync(path, text);
const { pages } = await import("./pages/pages.ts");
for (const [path, text] of pages()) writeFileSync(path, text);
