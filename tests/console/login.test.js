// Who gets in, and what a session is worth.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { csrfOf, form, login, send } from "./support/http.js";
import { startServer } from "./support/server.js";

const SESSION = "portcullis_session";
// Leads to the first page that one may see.
const HOME = "/console/";
let server;

before(async () => {
  server = await startServer();
});

after(async () => {
  assert.equal(await server?.stop(), 0, "SIGTERM ends the server in good order");
});

const sessionOf = (answer) => answer.headers["set-cookie"]?.[0]?.match(new RegExp(`^${SESSION}=([^;]*)`))?.[1];
const isIn = async (id) =>
  (await send(server.url, "/console/submissions", { headers: { cookie: `${SESSION}=${id}` } })).status === 200;

test("without a session every page leads to the login, and shows nothing else", async () => {
  for (const path of ["/console/submissions", "/console/decisions", "/console/policy", "/console/incidents", "/console/rules"]) {
    const answer = await send(server.url, path);
    assert.equal(answer.status, 303, path);
    assert.equal(answer.headers.location, `/console/login?next=${encodeURIComponent(path)}`);
    assert.equal(answer.text, "");
  }
  for (const path of ["/console", "/console/"]) {
    const answer = await send(server.url, path);
    assert.match(answer.headers.location, /^\/console\/login/, path);
  }
});

test("a wrong token opens nothing and is never repeated", async () => {
  for (const token of ["", " ", "x", "wrong-token-wrong-token", "a".repeat(10_000), "ключ", "a\r\nset-cookie: x=y", server.tokens.admin.slice(1)]) {
    const answer = await send(server.url, "/console/login", form({ token }));
    assert.equal(answer.status, 401, JSON.stringify(token.slice(0, 20)));
    assert.equal(answer.headers["set-cookie"], undefined);
    if (token.trim().length > 2) assert.ok(!answer.text.includes(token.trim()), "the token stands in the page");
    assert.match(answer.text, /role="alert"/);
  }
});

test("the cookie is out of reach of scripts and of other sites", async () => {
  const answer = await send(server.url, "/console/login", form({ token: server.tokens.admin }));
  assert.equal(answer.status, 303);
  const [cookie] = answer.headers["set-cookie"];
  const attributes = cookie.split("; ").slice(1).map((attribute) => attribute.toLowerCase());
  for (const wanted of ["httponly", "samesite=strict", "path=/console"]) assert.ok(attributes.includes(wanted), cookie);
  assert.ok(!attributes.some((attribute) => attribute.startsWith("domain")), cookie);
  assert.ok(sessionOf(answer).length >= 32, "too short to be random");
  assert.ok(!cookie.includes(server.tokens.admin), "the credential is not the session");
  // Behind a proxy that speaks TLS it never travels in clear.
  const sent = form({ token: server.tokens.admin });
  const proxied = await send(server.url, "/console/login", { ...sent, headers: { ...sent.headers, "x-forwarded-proto": "https" } });
  assert.match(proxied.headers["set-cookie"][0], /; Secure/);
});

test("an id that was planted before the login is worth nothing after it", async () => {
  const planted = "ab".repeat(32);
  const sent = form({ token: server.tokens.admin });
  const answer = await send(server.url, "/console/login", { ...sent, headers: { ...sent.headers, cookie: `${SESSION}=${planted}` } });
  assert.equal(answer.status, 303);
  assert.notEqual(sessionOf(answer), planted);
  assert.equal(await isIn(planted), false);
  assert.equal(await isIn(sessionOf(answer)), true);

  // A session of somebody's own that the browser of another was given: the login ends it.
  const own = sessionOf(answer);
  const second = await send(server.url, "/console/login", { ...sent, headers: { ...sent.headers, cookie: `${SESSION}=${own}` } });
  assert.notEqual(sessionOf(second), own);
  assert.equal(await isIn(own), false);
  assert.equal(await isIn(sessionOf(second)), true);
});

test("each login has an id and a token for forms of its own", async () => {
  const [one, two] = [await login(server.url, server.tokens.admin), await login(server.url, server.tokens.admin)];
  assert.notEqual(one.cookie, two.cookie);
  assert.notEqual(one.csrf, two.csrf);
  assert.ok(!one.cookie.includes(one.csrf), "one does not tell the other");
});

test("a logout ends the session in the server, and needs the token for forms", async () => {
  const visitor = await login(server.url, server.tokens.admin);
  const id = visitor.cookie.split("=")[1];
  const refused = await visitor.post("/console/logout", { csrf: "" });
  assert.equal(refused.status, 403);
  assert.equal(await isIn(id), true);
  assert.equal((await visitor.get("/console/logout")).status, 405);
  assert.equal(await isIn(id), true);
  const done = await visitor.post("/console/logout");
  assert.equal(done.status, 303);
  assert.equal(done.headers.location, "/console/login");
  assert.match(done.headers["set-cookie"][0], /Max-Age=0/);
  assert.equal(await isIn(id), false);
});

test("the login leads to pages of the console alone", async () => {
  const inside = "/console/submissions?status=blocked_inline&sort=name";
  for (const [next, wanted] of [
    [inside, inside],
    ["/console/rules", "/console/rules"],
    ["", HOME],
    ["https://evil.example/", HOME],
    ["//evil.example/console/rules", HOME],
    ["///evil.example", HOME],
    ["/\\evil.example", HOME],
    ["\\\\evil.example", HOME],
    ["/console/\\evil.example", HOME],
    ["/console//evil.example", HOME],
    ["/console/../metrics", HOME],
    ["/console/%2e%2e/%2e%2e/metrics", HOME],
    ["/console/.%2E/metrics", HOME],
    ["/metrics", HOME],
    ["/consoles/", HOME],
    ["javascript:alert(1)", HOME],
    ["data:text/html,x", HOME],
    [" //evil.example", HOME],
    ["\t//evil.example", HOME],
    ["/console/rules\r\nset-cookie: planted=1", HOME],
    ["/console/rules\u0000", HOME],
    ["/console/logout", HOME],
  ]) {
    const shown = await send(server.url, `/console/login?next=${encodeURIComponent(next)}`);
    assert.equal(shown.status, 200);
    const answer = await send(server.url, "/console/login", form({ token: server.tokens.admin, next }));
    assert.equal(answer.status, 303, next);
    const { location } = answer.headers;
    if (wanted !== undefined) assert.equal(location, wanted, JSON.stringify(next));
    const lands = new URL(location, server.url);
    assert.equal(lands.origin, server.url, JSON.stringify(next));
    assert.ok(!/planted/.test(JSON.stringify(answer.headers)), JSON.stringify(answer.headers));
  }
});

test("a request of another site, or one that names another host, opens nothing", async () => {
  const sent = form({ token: server.tokens.admin });
  for (const headers of [
    { origin: "http://evil.example" },
    { origin: "null" },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { host: "evil.example" },
    { host: "127.0.0.1.evil.example" },
  ]) {
    const answer = await send(server.url, "/console/login", { ...sent, headers: { ...sent.headers, ...headers } });
    assert.ok([403, 421].includes(answer.status), `${JSON.stringify(headers)}: ${answer.status}`);
    assert.equal(answer.headers["set-cookie"], undefined);
  }
});

test("the form of the login is no form of a session", async () => {
  const answer = await send(server.url, "/console/login");
  assert.equal(csrfOf(answer.text), undefined);
  assert.match(answer.text, /<label for="token">/);
});
