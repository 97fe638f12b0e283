/** `--fusion_rules`: a file of custom rules, checked before anything is compiled. */
import { readCustomRules } from "../compiler/custom-rules.ts";
import { readText } from "./files.ts";

/** The file's text. Fails with OF4020 to OF4022, which name the file, line and field. */
export function readRulesFile(path: string): string {
  const text = readText(path, "the fusion rules");
  readCustomRules(text, path);
  return text;
}
