// The way of an upload through the hands of an administrator, in a browser.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, afterEach, before, beforeEach, test } from "node:test";

import { startBrowser } from "./support/browser.js";
import { startModel, verdict } from "./support/model.js";
import { startServer } from "./support/server.js";
import { blocked, good } from "./support/skills.js";
import { zip } from "./support/zip.js";

let model;
let server;
let browser;
let visitor;
let page;

before(async () => {
  model = await startModel();
  const llm = { backend: "ollama", model: "m", base_url: model.url, attempts_max: 1, cache_bytes_max: 0 };
  server = await startServer({ settings: { llm } });
  browser = await startBrowser();
});

after(async () => {
  await browser?.stop();
  await model?.stop();
  assert.equal(await server?.stop(), 0, "SIGTERM ends the server in good order");
});

beforeEach(async () => {
  visitor = await browser.visitor(server);
  ({ page } = visitor);
  await visitor.login(server.tokens.admin);
});

afterEach(async () => {
  await visitor.close();
  assert.deepEqual(visitor.troubles, []);
});

const asAdmin = () => ({ token: server.tokens.admin });
const submission = async (id) =>
  (await server.call("SubmissionService", "GetSubmission", { submission_id: id }, asAdmin())).submission;
const row = (name) => page.locator("#submissions tbody tr", { hasText: name });
/** Opens the confirmation of an action and answers its form. */
const confirming = async (name) => {
  await page.locator("#actions summary", { hasText: name }).click();
  return page.getByRole("dialog");
};
/** Resolves once the page shows a badge with this word. */
const shows = (place, word) => page.locator(`${place} .badge`, { hasText: word }).first().waitFor();

test("a blocked upload is found, read, and published with a reason", async () => {
  const { submission_id: id, entity_id } = await server.upload(blocked({ name: "bad-notes" }), { submitter: "ada" });
  await server.upload(good({ name: "fine-notes" }), { submitter: "bob" });

  await page.goto("/console/submissions");
  // The verdict, and why, stand beside the name; who uploaded it comes behind.
  assert.match(await row("bad-notes").innerText(), /blocked inline[\s\S]*static security[\s\S]*ada/i);
  await page.getByRole("navigation", { name: "Status" }).getByRole("link", { name: /blocked inline/i }).click();
  assert.match(page.url(), /status=blocked_inline/);
  assert.equal(await row("fine-notes").count(), 0);
  await row("bad-notes").getByRole("link").first().click();
  assert.match(page.url(), new RegExp(`/console/submissions/${id}$`));

  // The finding with its line, and the lines around it.
  const finding = page.locator("#findings .finding", { hasText: "code.evaluate-decoded" });
  assert.match(await finding.innerText(), /scripts\/run\.py:5/);
  const hit = finding.locator(".source .line.hit");
  assert.equal(await hit.getAttribute("data-line"), "5");
  assert.equal((await hit.textContent()).trimEnd(), `    exec(base64.b64decode("cHJpbnQoMSk="))`);
  const around = await finding.locator(".source .line").evaluateAll((lines) => lines.map((line) => line.dataset.line));
  assert.ok(around.includes("4") && around.includes("6"), around.join());
  // What was scanned by what.
  const ledger = page.locator("#ledger");
  assert.match(await ledger.locator("tr", { hasText: "scripts/run.py" }).innerText(), /python/);
  assert.match(await ledger.locator("tr", { hasText: "SKILL.md" }).innerText(), /text/);
  assert.match(await page.locator("#timeline").innerText(), /blocked.inline/i);

  // Too short a reason: the page says so, and nothing has changed.
  let dialog = await confirming("Override");
  await dialog.getByLabel(/reason/i).fill(" no \n ");
  await dialog.getByRole("button", { name: /override|publish/i }).click();
  const alert = page.getByRole("alert");
  await alert.waitFor();
  assert.match(await alert.innerText(), /reason.*4|4.*characters/i);
  assert.equal((await submission(id)).status, "SUBMISSION_STATUS_BLOCKED_INLINE");

  // A good one: published.
  if (!(await page.locator("#actions details[open] form").count())) dialog = await confirming("Override");
  else dialog = page.locator("#actions details[open]");
  await dialog.getByLabel(/reason/i).fill("Read it: the text it decodes is print(1).");
  await dialog.getByRole("button", { name: /override|publish/i }).click();
  await shows("#submission", "overridden");
  const now = await submission(id);
  assert.equal(now.status, "SUBMISSION_STATUS_OVERRIDDEN");
  assert.equal(now.override.reason, "Read it: the text it decodes is print(1).");
  assert.match(await page.locator("#timeline").innerText(), /overridden/i);
  assert.match(await page.locator("#main").innerText(), /the text it decodes is print\(1\)/);
  // Visible to anybody now.
  const entity = await server.call("EntityService", "GetEntity", { entity_id }, { submitter: "somebody" });
  assert.equal(entity.entity.visibility, "VISIBILITY_APPROVED");
});

test("a verdict that comes late appears by itself, and takes nothing from whoever is at work", async () => {
  model.hold();
  const { submission_id: id } = await server.upload(good({ name: "late-notes" }), { submitter: "ada" });
  await model.asked();
  await page.goto("/console/submissions");
  assert.match(await row("late-notes").innerText(), /pending llm/i);
  // A new page would not know this, nor where the focus was.
  await page.evaluate(() => (globalThis.stayed = true));
  const link = row("late-notes").getByRole("link").first();
  await link.focus();
  model.release(verdict({ risk_level: "low", summary: "It sorts notes." }));
  await row("late-notes").locator(".badge", { hasText: "approved" }).waitFor();
  assert.equal(await page.evaluate(() => globalThis.stayed), true);
  assert.equal(await link.evaluate((el) => el === el.ownerDocument.activeElement), true, "the focus is where it was");
  assert.equal((await submission(id)).status, "SUBMISSION_STATUS_APPROVED");
  // Nothing waits: nothing is asked any more.
  const polls = await page.locator('[hx-trigger*="every"]').count();
  assert.equal(polls, 0);
});

test("the page of one submission updates itself, behind an open dialog too", async () => {
  model.hold();
  const { submission_id: id } = await server.upload(good({ name: "watched-notes" }), { submitter: "ada" });
  await model.asked();
  await page.goto(`/console/submissions/${id}`);
  await shows("#submission", "pending llm");
  await page.evaluate(() => (globalThis.stayed = true));
  const dialog = await confirming("Delete");
  const reason = dialog.getByRole("textbox").first();
  await reason.fill("half a sent");
  model.release(
    verdict({
      risk_level: "high",
      summary: "It asks for more than it says.",
      findings: [
        { file: "SKILL.md", line: 8, category: "scope", severity: "high", reason: "It keeps names.", fix_hint: "Leave names out." },
      ],
    }),
  );
  await page.locator("#submission .badge", { hasText: "blocked llm" }).first().waitFor({ state: "attached" });
  assert.equal(await reason.inputValue(), "half a sent");
  assert.equal(await reason.evaluate((el) => el === el.ownerDocument.activeElement), true);
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => globalThis.stayed), true);
  const text = await page.locator("#submission").innerText();
  for (const said of ["It asks for more than it says.", "It keeps names.", "Leave names out.", "SKILL.md:8"]) {
    assert.ok(text.includes(said), said);
  }
});

test("what cannot be done now is switched off, and says why", async () => {
  const { submission_id: id } = await server.upload(blocked({ name: "stuck-notes" }), { submitter: "ada" });
  await page.goto(`/console/submissions/${id}`);
  const actions = page.locator("#actions");
  for (const name of ["Retry", "Restore"]) {
    assert.equal(await actions.locator("summary", { hasText: name }).count(), 0, `${name} can be opened`);
    const button = actions.getByRole("button", { name: new RegExp(name), disabled: true });
    for (const one of await button.all()) {
      const why = await one.getAttribute("aria-describedby");
      assert.ok((await page.locator(`#${why}`).innerText()).length > 10, `${name} says why`);
    }
  }
  assert.ok((await actions.getByRole("button", { disabled: true }).count()) > 0, "something is switched off");
  assert.equal(await page.locator("#actions summary", { hasText: "Override" }).count(), 1);
});

test("the verdict of a review is a decision of its own, and its id leads there", async () => {
  model.release(verdict({ risk_level: "critical", summary: "It sends what it reads to strangers." }));
  const { submission_id: id, decision_id: upload } = await server.upload(good({ name: "decided-late" }), { submitter: "ada" });
  await server.settled(id);
  const { decision_id } = await submission(id);
  assert.notEqual(decision_id, upload);
  await page.goto(`/console/submissions/${id}`);
  await page.locator("#verdict").getByRole("link", { name: decision_id }).click();
  const text = await page.locator("#decision").innerText();
  assert.match(text, /ReviewBundle[\s\S]*block/);
  assert.match(text, /review by a model[\s\S]*It sends what it reads to strangers/);
  await page.locator("#decision").getByRole("link", { name: /its files/ }).click();
  assert.match(page.url(), new RegExp(`/console/submissions/${id}$`));
  await page.goto("/console/decisions?decision=block");
  assert.equal(await page.locator(`#decisions a[href$="${decision_id}"]`).count(), 1, "the list has it");
});

test("the manifest of an agent is the document that introduces it, and what is left out is told", async () => {
  const lines = Array.from({ length: 165 }, (_, at) => `Order ${at + 1}.`);
  const agent = (body) => `---\nname: my-agent\ndescription: Sorts the notes of a meeting by speaker and by topic.\n---\n${body}\n`;
  const manifest = async (files) => {
    const { submission_id: id } = await server.upload(zip(files), { submitter: "ada", kind: "BUNDLE_KIND_AGENT" });
    await page.goto(`/console/submissions/${id}`);
    await page.locator("#manifest summary").click();
    return page.locator("#manifest");
  };
  model.release(verdict());
  let shown = await manifest({ "README.md": "# Read me\n", "agents/my-agent.md": agent(lines.join("\n")) });
  assert.equal(await shown.locator("summary").innerText(), "agents/my-agent.md");
  assert.match(await shown.innerText(), /Order 165\./, "to its end");
  assert.equal(await page.locator("#manifest-rest").count(), 0);
  const many = Array.from({ length: 2_500 }, (_, at) => `Order ${at + 1}.`);
  model.release(verdict());
  shown = await manifest({ "README.md": "# Read me\n", "my-agent.md": agent(many.join("\n")) });
  assert.match(await page.locator("#manifest-rest").innerText(), /and 504 more lines/);
});

test("rescan, retry, archive, restore, download and delete", async () => {
  model.release(verdict({ risk_level: "critical" }));
  const { submission_id: id } = await server.upload(good({ name: "moving-notes" }), { submitter: "ada" });
  await page.goto(`/console/submissions/${id}`);
  await shows("#verdict", "blocked llm");

  const act = async (name, fill = {}) => {
    const dialog = await confirming(name);
    for (const [label, value] of Object.entries(fill)) await dialog.getByLabel(new RegExp(label, "i")).fill(value);
    await dialog.getByRole("button", { name: new RegExp(name, "i") }).click();
    await page.locator('#main [role="status"], #main [role="alert"]').first().waitFor();
  };
  await act("Retry");
  await shows("#verdict", "blocked llm");
  assert.equal((await submission(id)).attempts.length, 2);
  model.release(verdict());
  await act("Rescan");
  await shows("#verdict", "approved");
  assert.equal((await submission(id)).attempts.length, 3);

  await act("Archive");
  assert.equal((await submission(id)).visibility, "VISIBILITY_ARCHIVED");
  await page.goto("/console/submissions");
  assert.equal(await row("moving-notes").count(), 0, "archived ones are left out");
  await page.getByRole("navigation", { name: "Status" }).getByRole("link", { name: /archived/i }).click();
  await row("moving-notes").getByRole("link").first().click();
  await act("Restore");
  assert.equal((await submission(id)).visibility, "VISIBILITY_APPROVED");

  const downloading = page.waitForEvent("download");
  await (await confirming("Download")).getByRole("button", { name: "Download" }).click();
  const download = await downloading;
  assert.match(download.suggestedFilename(), /^moving-notes[\w.-]*\.zip$/);
  assert.equal(readFileSync(await download.path()).subarray(0, 4).toString("latin1"), "PK\x03\x04");

  await page.goto(`/console/submissions/${id}`);
  assert.match(await page.locator("#timeline").innerText(), /download/i, "it is recorded");
  await act("Delete", { reason: "No longer needed." });
  assert.equal((await submission(id)).status, "SUBMISSION_STATUS_DELETED");
  await page.goto(`/console/submissions/${id}`);
  await shows("#submission", "deleted");
});

test("lists are sorted, searched and paged by links that can be kept", async () => {
  const wanted = Array.from({ length: 12 }, (_, at) => `paged-${String(at).padStart(2, "0")}`);
  for (const name of wanted) await server.upload(blocked({ name }), { submitter: `sam-${name}` });
  const names = () => page.locator("#submissions tbody tr").evaluateAll((rows) => rows.map((row) => /paged-\d+/.exec(row.textContent)?.[0]));
  await page.goto("/console/submissions?text=paged&sort=name&order=asc");
  assert.deepEqual(await names(), wanted);
  const head = page.locator("#submissions th[aria-sort]");
  assert.equal(await head.getAttribute("aria-sort"), "ascending");
  await head.getByRole("link").click();
  assert.deepEqual(await names(), [...wanted].reverse());
  assert.equal(await head.getAttribute("aria-sort"), "descending");

  await page.goto("/console/submissions?text=paged&sort=name&order=asc&page_size=10");
  assert.deepEqual(await names(), wanted.slice(0, 10));
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: /next/i }).click();
  assert.deepEqual(await names(), wanted.slice(10));
  assert.match(await page.locator("#submissions .pager").innerText(), /12/);

  await page.goto("/console/submissions?text=paged&submitter=sam-paged-07");
  assert.deepEqual(await names(), ["paged-07"]);
  await page.goto("/console/submissions?text=nothing-is-called-this");
  assert.match(await page.locator(".empty").innerText(), /\w{3}/);
  assert.ok((await page.locator(".empty a").count()) > 0, "an empty list leads somewhere");
});
