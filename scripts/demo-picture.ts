/**
 * Draws the demo's real output as docs/demo.png: runs `npm run demo` and lets Chromium take a picture of its text.
 * Usage: tsx scripts/demo-picture.ts [path of Chromium]
 */
import { spawnSync } from "node:child_process";
import { chromium } from "playwright-core";

const executablePath = process.argv[2] ?? "/usr/bin/chromium";
const done = spawnSync("npm", ["run", "--silent", "demo"], { encoding: "utf8", maxBuffer: 1 << 26 });
if (done.status !== 0) throw new Error(done.stderr);
const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const lines = `$ npm run demo\n${done.stdout.trim()}`.split("\n").map((line) => (line.startsWith("$") ? `<b>${escape(line)}</b>` : escape(line)));

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ deviceScaleFactor: 2, viewport: { width: 1060, height: 600 } });
await page.setContent(`<pre style="margin:0;padding:18px 22px;background:#10151c;color:#d5dde6;font:13px/1.45 'DejaVu Sans Mono','Noto Sans Mono CJK SC',monospace;white-space:pre-wrap;width:1016px"><style>b{color:#7fd1a0}</style>${lines.join("\n")}</pre>`);
await page.locator("pre").screenshot({ path: "docs/demo.png" });
await browser.close();
