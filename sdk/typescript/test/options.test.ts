// What a client refuses to be made of.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ConfigurationError, Portcullis, type PortcullisOptions } from "@portcullis/sdk";

const wrong: [about: string, options: object, text: RegExp][] = [
  ["an option that is misspelt", { adress: "localhost:1" }, /has `adress`, which is not known/],
  ["an option of an object", { context: { agentID: "a" } }, /`context` has `agentID`/],
  ["an option of TLS", { tls: { serverCa: "x" } }, /`tls` has `serverCa`/],
  ["an option that every object has", { constructor: 1 }, /`constructor`/],
  ["an empty address", { address: "" }, /is empty/],
  ["an empty list", { address: [] }, /empty list/],
  ["a path", { address: "http://localhost:1/api" }, /cannot be called|not one that can be called/],
  ["a port out of range", { address: "localhost:99999" }, /port/],
  ["a bare IPv6 address", { address: "::1:50051" }, /brackets/],
  ["a user in the address", { address: "ada@localhost:1" }, /not one that can be called/],
  ["http and https together", { address: ["http://a:1", "https://b:1"] }, /mixes/],
  ["TLS on http", { address: "http://a:1", tls: true }, /says http/],
  ["a certificate without key", { tls: { cert: "-----BEGIN x" } }, /go together/],
  ["a certificate that is not there", { tls: { ca: "/nowhere/ca.pem" } }, /tls\.ca.*cannot be read/],
  ["an empty token", { token: "" }, /`token` is empty/],
  ["a token with a line break", { token: "secret\nsecret" }, /white space/],
  ["a token in plain text to elsewhere", { address: "pdp.example.org:50051", token: "secret" }, /plain text/],
  ["a submitter that no header carries", { submitter: "Ada\n" }, /submitter/],
  ["an unknown mode", { onUnavailable: "maybe" }, /"closed" or "open"/],
  ["a deadline of nothing", { deadlines: { call: 0 } }, /deadlines\.call/],
  ["no attempts", { retry: { attempts: 0 } }, /retry\.attempts/],
];

for (const [about, options, text] of wrong) {
  test(`${about} is refused`, () => {
    assert.throws(
      () => new Portcullis(options as PortcullisOptions),
      (error: Error) => {
        assert.ok(error instanceof ConfigurationError, String(error));
        assert.match(error.message, text);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      },
    );
  });
}

test("an option of a call that is misspelt is refused", async () => {
  const client = new Portcullis();
  const call = { polcy: "strict" } as object;
  const isRefused = (error: Error) => error instanceof ConfigurationError && /`polcy`/.test(error.message);
  await assert.rejects(client.checkMessages("hi", call), isRefused);
  await assert.rejects(client.checkMessages("hi", { context: call }), isRefused);
  await assert.rejects(client.interceptTool({ polcy: "x" } as object), isRefused);
  await assert.rejects(client.interceptTool({ policy: "x" } as object), /belongs into the options/);
  await assert.rejects(client.interceptMessage({}, call), isRefused);
  await assert.rejects(client.reviewBundle(".", call), isRefused);
  await assert.rejects(async () => client.watchSubmission("1", call).next(), isRefused);
  assert.throws(() => client.guardTool(async () => 1, { name: "a", ...call }), isRefused);
  await assert.rejects(client.guardTool(async () => 1, { name: "a", environment: call })(), isRefused);
  assert.throws(() => client.attach({} as never, {}, call), isRefused);
  assert.throws(() => client.attach({} as never, call), isRefused);
  client.close();
});

const right: PortcullisOptions[] = [
  {},
  { address: "localhost" },
  { address: "[::1]:50051" },
  { address: "http://127.0.0.1:50051/" },
  { address: "https://pdp.example.org", token: "secret" },
  { address: ["a.example.org:1", "b.example.org:2"], tls: true, token: () => "secret" },
  { address: "dns:///pdp.example.org:50051" },
  { address: "unix:/run/portcullis.sock", token: "secret" },
  { address: "pdp:50051", token: "secret", allowPlainTextToken: true },
];

for (const options of right) {
  test(`${JSON.stringify(options)} is taken`, () => new Portcullis(options).close());
}
