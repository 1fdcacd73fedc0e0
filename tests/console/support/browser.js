// A headless browser, and pages that remember what went wrong in them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// How long a page may take to become what a test waits for on a busy machine.
const WAIT_MS = 20_000;

/** Starts the browser that CHROMIUM names. */
export async function startBrowser() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  // Pages of our own server alone are loaded, and a container allows no sandbox within its own.
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  return {
    stop: () => browser.close(),
    /** A fresh visitor; its pages keep `troubles`: violations of the security policy, errors, requests to elsewhere. */
    async visitor(server, options = {}) {
      const context = await browser.newContext({ baseURL: server.url, viewport: { width: 1280, height: 900 }, ...options });
      context.setDefaultTimeout(WAIT_MS);
      const troubles = [];
      const page = await context.newPage();
      page.on("console", (message) => {
        // The browser reports every refusal; those of what a page loads are counted below.
        const isRefusal = message.text().startsWith("Failed to load resource: the server responded with a status of 4");
        if (["error", "warning"].includes(message.type()) && !isRefusal) troubles.push(`${page.url()}: ${message.text()}`);
      });
      page.on("response", (response) => {
        const isPage = response.request().isNavigationRequest();
        if (response.status() >= (isPage ? 500 : 400)) troubles.push(`${page.url()}: ${response.status()} for ${response.url()}`);
      });
      page.on("pageerror", (error) => troubles.push(`${page.url()}: ${error}`));
      page.on("request", (request) => {
        if (!request.url().startsWith(server.url)) troubles.push(`${page.url()}: asks ${request.url()}`);
      });
      return {
        page,
        troubles,
        context,
        close: () => context.close(),
        /** Logs in by the page. */
        async login(token) {
          await page.goto("/console/login");
          await page.getByLabel("Token").fill(token);
          await page.getByRole("button", { name: "Log in" }).click();
          await page.locator("h1", { hasText: /submissions/i }).waitFor();
        },
      };
    },
  };
}

/** What axe has to object to on a page, one line each. */
export async function violations(page) {
  // Run by the debugger, so that the security policy of the page stays as it is.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 200)} ${node.failureSummary}`));
}

/** Fails if the page itself must be scrolled sideways. */
export async function assertFits(page, name) {
  const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(content <= window, `${name} is ${content} wide in a window of ${window}`);
}
