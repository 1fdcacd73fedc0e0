// What every answer below /console carries, whoever made it.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { login, send } from "./support/http.js";
import { NOBODY, pages } from "./support/pages.js";
import { startServer } from "./support/server.js";
import { blocked } from "./support/skills.js";

const ASSETS = new URL("../../src/console/assets/", import.meta.url);
let server;
let visitor;
let submission;

before(async () => {
  server = await startServer();
  submission = (await server.upload(blocked())).submission_id;
  visitor = await login(server.url, server.tokens.admin);
});

after(async () => {
  assert.equal(await server?.stop(), 0, "SIGTERM ends the server in good order");
});

/** Fails unless the headers keep a browser from doing what no page of ours wants. */
function assertHardened(name, { headers }) {
  const policy = Object.fromEntries(
    (headers["content-security-policy"] ?? "").split(";").map((part) => {
      const [directive, ...sources] = part.trim().split(/\s+/);
      return [directive, sources.join(" ")];
    }),
  );
  for (const [directive, wanted] of [
    ["default-src", "'none'"],
    ["script-src", "'self'"],
    ["style-src", "'self'"],
    ["img-src", "'self'"],
    ["connect-src", "'self'"],
    ["form-action", "'self'"],
    ["base-uri", "'none'"],
    ["frame-ancestors", "'none'"],
  ]) {
    assert.equal(policy[directive], wanted, `${name}: ${directive}`);
  }
  assert.ok(!JSON.stringify(policy).includes("unsafe"), `${name}: ${headers["content-security-policy"]}`);
  assert.equal(headers["x-content-type-options"], "nosniff", name);
  assert.equal(headers["x-frame-options"], "DENY", name);
  assert.ok(["same-origin", "no-referrer"].includes(headers["referrer-policy"]), name);
  assert.equal(headers["cross-origin-opener-policy"], "same-origin", name);
  assert.equal(headers["cross-origin-resource-policy"], "same-origin", name);
  assert.equal(headers["access-control-allow-origin"], undefined, name);
}

test("pages, errors, redirects, downloads and assets carry the headers", async () => {
  const answers = [];
  const add = async (name, answer) => answers.push([name, await answer]);
  for (const path of [...pages({ submission }), `/console/submissions/${NOBODY}`, "/console/nothing", "/console/submissions?page_token=x", "/console/submissions?sort=x"]) {
    await add(`GET ${path}`, visitor.get(path));
    await add(`GET ${path} without a session`, send(server.url, path));
  }
  await add("the login", send(server.url, "/console/login"));
  await add("a download", visitor.post(`/console/submissions/${submission}/download`, { confirm: "yes" }));
  await add("an action without a token", visitor.post(`/console/submissions/${submission}/override`, { csrf: "" }));
  await add("an action that is refused", visitor.post(`/console/submissions/${submission}/override`, { reason: "x" }));
  await add("a wrong method", visitor.post("/console/decisions"));
  await add("a strange method", send(server.url, "/console/submissions", { method: "TRACE" }));
  await add("another host", send(server.url, "/console/submissions", { headers: { host: "evil.example" } }));
  await add("another site", send(server.url, "/console/submissions", { headers: { origin: "http://evil.example" } }));
  for (const [name, answer] of answers) {
    assertHardened(name, answer);
    assert.match(answer.headers["cache-control"] ?? "", /no-store/, `${name} may not be kept`);
    assert.ok(answer.status < 500, `${name}: ${answer.status}`);
  }
});

test("assets are typed, cannot be guessed to be something else, and are the files of this repository", async () => {
  for (const [name, type] of [
    ["console.css", /^text\/css/],
    ["console.js", /^(text|application)\/javascript/],
    ["htmx.min.js", /^(text|application)\/javascript/],
    ["icon.svg", /^image\/svg\+xml/],
  ]) {
    const answer = await send(server.url, `/console/assets/${name}`);
    assert.equal(answer.status, 200, name);
    assert.match(answer.headers["content-type"], type, name);
    assertHardened(name, answer);
    assert.ok(answer.bytes.equals(readFileSync(new URL(name, ASSETS))), `${name} is another file; build the server`);
  }
});

test("htmx is the version that is noted, unchanged", () => {
  const noted = /SHA-256 of `htmx\.min\.js`: `([0-9a-f]{64})`/.exec(readFileSync(new URL("README.md", ASSETS), "utf8"))[1];
  const hash = createHash("sha256").update(readFileSync(new URL("htmx.min.js", ASSETS))).digest("hex");
  assert.equal(hash, noted);
});

test("no page holds a script, a style or a handler of its own, or loads anything from elsewhere", async () => {
  for (const path of [...pages({ submission }), "/console/login", "/console/nothing"]) {
    const { text } = await visitor.get(path);
    assert.doesNotMatch(text, /<script(?![^>]*\ssrc="\/console\/assets\/)/i, path);
    assert.doesNotMatch(text, /<style|<[^>]*\sstyle=/i, path);
    assert.doesNotMatch(text, /<[a-z][^>]*\s(on[a-z]+|hx-on[^=\s]*)=/i, path);
    assert.doesNotMatch(text, /<(script|link|img|iframe|object|embed|base)[^>]*(src|href)="(?!\/console\/)/i, path);
  }
});

test("paths that climb lead to no file and to no other page", async () => {
  for (const path of [
    "/console/assets/../../Cargo.toml",
    "/console/assets/..%2f..%2fCargo.toml",
    "/console/assets/%2e%2e/%2e%2e/data/admin-token",
    "/console/assets/..\\..\\data\\admin-token",
    "/console/assets/%2fetc%2fpasswd",
    "/console/assets//etc/passwd",
    "/console/assets/console.css%00.html",
    "/console/assets/README.md",
    "/console/assets/",
    "/console/assets",
    "/console/../metrics",
    "/console/%2e%2e/metrics",
    "/console/submissions/../../metrics",
    "/console/submissions/..%2f..%2fdata%2fadmin-token/download",
    "/console/submissions/%2e%2e/download",
    `/console/submissions/${NOBODY}%2f..%2f${submission}/download`,
    `/console/submissions/${submission}%00/download`,
    `/console/submissions/${submission}.zip/download`,
    `/console/submissions/${"a".repeat(5_000)}/download`,
    "/console/submissions/%ff%fe/download",
    "/console/submissions/%27%20or%201=1--/download",
  ]) {
    const answer = path.endsWith("/download") ? await visitor.post(path, { confirm: "yes" }) : await visitor.get(path);
    assert.ok([400, 404, 414].includes(answer.status), `${path}: ${answer.status}`);
    assert.ok(!/root:|portcullis_requests_total|\[package\]/.test(answer.text), path);
    assert.ok(!answer.text.includes(server.tokens.admin), path);
    assert.equal(answer.headers["content-disposition"], undefined, path);
  }
});
