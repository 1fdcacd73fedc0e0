// TLS, mutual TLS, tokens over TLS and identities of certificates: listeners of real servers, with nothing between.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { AuthenticationError, Portcullis, type PortcullisOptions, UnavailableError } from "@portcullis/sdk";
import { type Server, startServer } from "./support/server.js";

const PEMS = join(process.cwd(), "../../tests/tls");
const pem = (name: string) => join(PEMS, name);
const ca = pem("authority.pem");
const certificate = { cert: pem("client.pem"), key: pem("client.key") };

const servers: Server[] = [];
let [plain, mutual] = ["", ""];
let adminToken = "";

/** A server whose listener speaks TLS, and wants certificates of clients if `wantsClient`. */
async function guarded(wantsClient: boolean, settings = {}, prepare?: (folder: string) => void): Promise<Server> {
  const tls = { certificate: pem("server.pem"), key: pem("server.key"), ...(wantsClient ? { client_ca: ca } : {}) };
  const server = await startServer({ settings: { server: { tls }, ...settings }, ...(prepare ? { prepare } : {}) });
  servers.push(server);
  return server;
}

before(async () => {
  const [one, other] = [await guarded(false), await guarded(true)];
  [plain, mutual, adminToken] = [one.grpc, other.grpc, one.adminToken];
});

after(async () => {
  for (const server of servers) assert.equal(await server.stop(), 0);
});

async function passes(options: PortcullisOptions): Promise<boolean> {
  const client = new Portcullis({ retry: { attempts: 1 }, ...options });
  try {
    return (await client.checkMessages("hi")).allowed;
  } finally {
    client.close();
  }
}

test("a server is trusted by the authority that is named, as path, text or bytes", async () => {
  for (const given of [ca, readFileSync(ca, "utf8"), readFileSync(ca)]) {
    assert.equal(await passes({ address: `https://${plain}`, tls: { ca: given } }), true);
  }
  // A token may travel now.
  assert.equal(await passes({ address: plain, tls: { ca }, token: adminToken }), true);
});

test("a server whose authority is not known is refused", async () => {
  await assert.rejects(passes({ address: plain, tls: true }), UnavailableError);
});

test("a server of another name is refused, unless that name is said", async () => {
  const address = plain;
  await assert.rejects(passes({ address, tls: { ca, serverName: "pdp.example.org" } }), UnavailableError);
  assert.equal(await passes({ address, tls: { ca, serverName: "localhost" } }), true);
});

test("plain text to a TLS port fails closed", async () => {
  await assert.rejects(passes({ address: plain }), UnavailableError);
});

test("a client shows its certificate", async () => {
  assert.equal(await passes({ address: mutual, tls: { ca, ...certificate } }), true);
  await assert.rejects(passes({ address: mutual, tls: { ca } }), UnavailableError);
});

/** Settings that want a token, and a token of the agent and one of an auditor, made by the program itself. */
function withTokens() {
  const tokens: Record<string, string> = {};
  const prepare = (folder: string) => {
    for (const role of ["agent", "auditor"]) {
      const flags = ["token", "create", "--name", `${role}-1`, "--roles", role, "--append", "tokens.yaml"];
      const made = execFileSync(process.env["TEST_SERVER"]!, flags, {
        cwd: folder,
        env: {},
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
      });
      tokens[role] = made.trim();
    }
  };
  return { tokens, prepare, settings: { auth: { mode: "tokens", tokens: { path: "tokens.yaml" } } } };
}

for (const wantsClient of [false, true]) {
  test(`tokens over ${wantsClient ? "mutual " : ""}TLS`, async () => {
    const { tokens, prepare, settings } = withTokens();
    const server = await guarded(wantsClient, settings, prepare);
    const options = { address: server.grpc, tls: { ca, ...(wantsClient ? certificate : {}) } };
    const agent = tokens["agent"]!;
    const file = join(server.folder, "token");
    writeFileSync(file, `${agent}\n`);
    for (const token of [agent, () => agent, { file }]) assert.equal(await passes({ ...options, token }), true);
    const refusals: [string | undefined, string][] = [
      [tokens["auditor"], "NEEDS_ROLE"],
      ["pct_of_nobody", "BAD_CREDENTIALS"],
      [undefined, "NO_CREDENTIALS"],
    ];
    for (const [token, reason] of refusals) {
      const asked = passes({ ...options, ...(token === undefined ? {} : { token }) });
      await assert.rejects(asked, (error: unknown) => {
        assert.ok(error instanceof AuthenticationError, String(error));
        assert.equal(error.details?.reason, reason);
        assert.ok(!error.message.includes("pct_of_nobody"));
        return true;
      });
    }
    if (wantsClient) {
      // A token does not replace the certificate.
      await assert.rejects(passes({ ...options, tls: { ca }, token: agent }), UnavailableError);
    }
  });
}

test("a certificate is an identity", async () => {
  for (const [roles, allowed] of [
    [["agent"], true],
    [["auditor"], false],
    [undefined, false],
  ] as const) {
    const identities = roles === undefined ? [{ san: "somebody.else", name: "a", roles: ["agent"] }] : [{ san: "portcullis.test", name: "a", roles }];
    const server = await guarded(true, { auth: { mode: "mtls", mtls: { identities } } });
    const asked = passes({ address: server.grpc, tls: { ca, ...certificate } });
    if (allowed) assert.equal(await asked, true);
    else await assert.rejects(asked, AuthenticationError);
  }
});
