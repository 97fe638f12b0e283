/**
 * Writes docs/report.png: the report page of a model in Chromium, with the kernel that saves most chosen.
 * Usage: tsx scripts/report-picture.ts MODEL.onnx [--dim name=size …] (after npm run build)
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { onnxfuse } from "../src/cli/onnxfuse-command.ts";

const [model, ...options] = process.argv.slice(2);
if (model === undefined) throw new Error("name a model");
const folder = mkdtempSync(join(tmpdir(), "onnxfuse-report-")), file = join(folder, "report.html");
const code = await onnxfuse(["report", model, "--output", file, ...options], { out: console.log, error: console.error });
if (code === 0) {
  const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  const page = await browser.newPage({ viewport: { width: 1500, height: 1050 } });
  await page.goto(pathToFileURL(file).href);
  await page.locator(".pane .node").first().waitFor();
  await page.locator("#traffic .row").first().click();
  await page.screenshot({ path: "docs/report.png" });
  await browser.close();
}
rmSync(folder, { recursive: true });
process.exitCode = code;
