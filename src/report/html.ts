/** The report as one HTML file that loads nothing: data, style and script are inside it. */
import type { PageData } from "./page-data.ts";
import { style } from "./style.ts";

/** `script` is the bundled page.ts. */
export function pageHtml(data: PageData, script: string): string {
  const title = escape(`${data.model}: fusion report`);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title><style>${style}</style></head>
<body><script type="application/json" id="data">${JSON.stringify(data).replaceAll("<", "\\u003c")}</script>
<script>${script.replaceAll("</script", "<\\/script")}</script></body></html>
`;
}
const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
