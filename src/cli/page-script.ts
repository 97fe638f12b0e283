/** The report page's script as the build made it: in `report/page.js` of the package's `dist`. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { fail } from "../core/diagnostic.ts";

/** Fails with OF1017 where it was never built. */
export function pageScript(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    for (const path of [join(folder, "report/page.js"), join(folder, "dist/report/page.js")]) if (existsSync(path)) return readFileSync(path, "utf8");
    if (folder === dirname(folder)) return fail("OF1017", "the report page's script has not been built", { hint: "run npm run build once" });
  }
}
