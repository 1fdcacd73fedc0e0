// Who uploads sees what is its own, what to fix, and the verdict as it comes.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { startBrowser } from "./support/browser.js";
import { startModel, verdict } from "./support/model.js";
import { startServer } from "./support/server.js";
import { blocked, good } from "./support/skills.js";

let model;
let server;
let browser;

before(async () => {
  model = await startModel();
  const llm = { backend: "ollama", model: "m", base_url: model.url, attempts_max: 1, cache_bytes_max: 0 };
  server = await startServer({ settings: { llm }, people: { ada: { roles: ["submitter"] }, bob: { roles: ["submitter"] } } });
  browser = await startBrowser();
});

after(async () => {
  await browser?.stop();
  await model?.stop();
  assert.equal(await server?.stop(), 0, "SIGTERM ends the server in good order");
});

test("an uploader sees its own uploads, what to fix, and a verdict as it comes", async () => {
  const asAda = { token: server.tokens.ada };
  await server.upload(blocked({ name: "bobs-notes" }), {}, { token: server.tokens.bob });
  const stopped = await server.upload(blocked({ name: "stopped-notes" }), {}, asAda);
  model.hold();
  await server.upload(good({ name: "waiting-notes" }), {}, asAda);
  await model.asked();

  const visitor = await browser.visitor(server);
  const { page } = visitor;
  await visitor.login(server.tokens.ada);
  const list = page.locator("#submissions");
  assert.deepEqual((await list.locator("tbody a").allInnerTexts()).sort(), ["stopped-notes", "waiting-notes"]);
  const row = list.locator("tbody tr", { hasText: "waiting-notes" });
  assert.match(await row.innerText(), /pending llm/);

  // The verdict comes without a new page.
  await page.evaluate(() => (globalThis.stayed = true));
  model.release(verdict({ risk_level: "low" }));
  await row.locator(".badge", { hasText: "approved" }).waitFor();
  assert.equal(await page.evaluate(() => globalThis.stayed), true);

  await page.goto(`/console/submissions/${stopped.submission_id}`);
  const findings = page.locator("#findings");
  assert.match(await findings.innerText(), /what to fix/i);
  assert.match(await findings.innerText(), /scripts\/run\.py:5/);
  assert.match(await findings.locator(".fix").first().innerText(), /readable source/);
  // What it may not do is not offered.
  for (const name of ["Override", "Rescan", "Delete", "Download"]) {
    assert.equal(await page.locator("#actions summary", { hasText: name }).count(), 0, name);
  }

  // The verdict is seen on a phone without looking for it.
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto("/console/submissions");
  const box = await list.locator("tbody tr", { hasText: "stopped-notes" }).locator(".badge", { hasText: "blocked inline" }).boundingBox();
  assert.ok(box.x >= 0 && box.x + box.width <= 390, JSON.stringify(box));
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, "nothing is outside of the screen");
  await page.setViewportSize({ width: 1200, height: 800 });

  // It may try bundles alone, and one is what it starts with.
  await page.goto("/console/playground");
  assert.equal(await page.locator('[name="kind"]:checked').getAttribute("value"), "bundle");
  assert.equal(await page.locator("#text").isVisible(), false);
  await page.locator("#file").setInputFiles({ name: "notes.zip", mimeType: "application/zip", buffer: Buffer.from(blocked({ name: "tried" })) });
  await page.locator("#playground-result .badge", { hasText: /^block$/ }).waitFor();

  // What is approved it takes down itself.
  await page.goto("/console/submissions");
  await row.getByRole("link").first().click();
  await page.locator("#confirm-archive > summary").click();
  await page.getByRole("dialog").getByRole("button", { name: "Archive" }).click();
  await page.locator("#lifecycle .badge", { hasText: "archived" }).waitFor();
  assert.deepEqual(visitor.troubles, []);
  await visitor.close();
});
