// Incidents: found in the list, read with what the work was, marked as false positives, and counted by rule.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";

import { startBrowser } from "./support/browser.js";
import { startServer } from "./support/server.js";

let server;
let browser;
let visitor;
let page;
let incident;

before(async () => {
  server = await startServer();
  browser = await startBrowser();
  const work = { goal: "Tidy the build folder", scope: "only ./build", acceptance_criteria: ["the tests pass"], non_goals: ["no change of the system"] };
  [incident] = await server.watch("Tidying up before the build.\n+ sudo rm -rf --no-preserve-root /\n", {
    session_id: "session-17",
    work,
    context: { agent_id: "builder" },
  });
});

after(async () => {
  await browser?.stop();
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

test("an incident is found, read and marked", async () => {
  await page.goto("/console/incidents");
  const row = page.locator("#incidents tbody tr", { hasText: "session-17" });
  const cells = await row.innerText();
  for (const wanted of ["stream.delete", "critical", "kill"]) assert.ok(cells.includes(wanted), cells);
  await row.getByRole("link").first().click();
  const shown = page.locator("#incident");
  const text = await shown.innerText();
  for (const wanted of ["rm -rf --no-preserve-root /", "Tidying up before the build.", "Tidy the build folder", "only ./build", "the tests pass", "no change of the system", "session-17", "builder"]) {
    assert.ok(text.includes(wanted), `${wanted} is not in ${text}`);
  }
  await page.locator("summary", { hasText: /false positive/i }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/reason/i).fill("It was a drill.");
  await dialog.getByRole("button", { name: /false positive/i }).click();
  await shown.locator(".badge", { hasText: /false positive/i }).waitFor();
  assert.match(await shown.innerText(), /It was a drill\./);
  const { incident: now } = await server.call("IncidentService", "GetIncident", { incident_id: incident.id }, { token: server.tokens.admin });
  assert.equal(now.false_positive, true);
});

test("an excerpt marks the text that was matched, and not a mention of it", async () => {
  const [{ id }] = await server.watch("echo 'sudo rm -rf --no-preserve-root /' is bad\n+ sudo rm -rf --no-preserve-root /\n", { session_id: "session-18" });
  await page.goto(`/console/incidents/${id}`);
  const marked = page.locator("#incident pre.marked");
  const [before, match] = [await marked.evaluate((el) => el.firstChild.textContent), await marked.locator("mark").textContent()];
  assert.match(match, /rm -rf --no-preserve-root \//);
  assert.match(before, /is bad\n/, "the mention stands before the mark");
});

test("rates of each rule over 7 and 30 days", async () => {
  await page.goto("/console/incidents/rules");
  const row = page.locator("#rules tbody tr", { hasText: "stream.delete" }).or(page.locator("main tbody tr", { hasText: "stream.delete" })).first();
  const stats = await server.call("IncidentService", "GetIncidentStats", {}, { token: server.tokens.admin });
  const { last_7_days, last_30_days } = stats.rules.find(({ rule_id }) => rule_id === "stream.delete");
  assert.ok(last_7_days.incidents >= 1 && last_30_days.incidents >= 1);
  const numbers = (await row.innerText()).match(/\d+/g).map(Number);
  assert.ok(numbers.includes(Number(last_7_days.incidents)), await row.innerText());
  assert.match(await page.locator("main").innerText(), /7 days[\s\S]*30 days/);
});

test("an empty list says what to do", async () => {
  await page.goto("/console/incidents?rule=stream.nothing");
  assert.ok((await page.locator(".empty").innerText()).length > 20);
});
