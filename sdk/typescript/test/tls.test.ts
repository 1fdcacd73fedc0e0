// TLS and mutual TLS: a proxy in this process ends them before a real server.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createServer, type Server as Proxy } from "node:tls";

import { Portcullis, UnavailableError } from "@portcullis/sdk";
import { type Server, startServer } from "./support/server.js";

const PEMS = join(process.cwd(), "../../tests/tls");
const pem = (name: string) => join(PEMS, name);

let server: Server;
const proxies: Proxy[] = [];

/** The address of a proxy that speaks TLS. */
async function proxy(wantsClient: boolean): Promise<string> {
  const [host, port] = server.grpc.split(":") as [string, string];
  const options = {
    cert: readFileSync(pem("server.pem")),
    key: readFileSync(pem("server.key")),
    ca: readFileSync(pem("authority.pem")),
    requestCert: wantsClient,
    rejectUnauthorized: wantsClient,
    ALPNProtocols: ["h2"],
  };
  const listener = createServer(options, (socket) => {
    const to = connect(Number(port), host);
    socket.pipe(to).pipe(socket);
    for (const [one, other] of [
      [socket, to],
      [to, socket],
    ] as const) {
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
    }
  });
  listener.on("tlsClientError", () => undefined);
  proxies.push(listener);
  await new Promise<void>((done) => listener.listen(0, "127.0.0.1", done));
  return `127.0.0.1:${(listener.address() as { port: number }).port}`;
}

let [plain, mutual] = ["", ""];

before(async () => {
  server = await startServer();
  [plain, mutual] = [await proxy(false), await proxy(true)];
});

after(async () => {
  for (const one of proxies) one.close();
  await server?.stop();
});

async function passes(options: ConstructorParameters<typeof Portcullis>[0]): Promise<boolean> {
  const client = new Portcullis({ retry: { attempts: 1 }, ...options });
  try {
    return (await client.checkMessages("hi")).allowed;
  } finally {
    client.close();
  }
}

test("a server is trusted by the authority that is named, as path, text or bytes", async () => {
  const ca = pem("authority.pem");
  for (const given of [ca, readFileSync(ca, "utf8"), readFileSync(ca)]) {
    assert.equal(await passes({ address: `https://${plain}`, tls: { ca: given } }), true);
  }
  // A token may travel now.
  assert.equal(await passes({ address: plain, tls: { ca }, token: server.adminToken }), true);
});

test("a server whose authority is not known is refused", async () => {
  await assert.rejects(passes({ address: plain, tls: true }), UnavailableError);
});

test("a server of another name is refused, unless that name is said", async () => {
  const address = plain;
  const ca = pem("authority.pem");
  await assert.rejects(passes({ address, tls: { ca, serverName: "pdp.example.org" } }), UnavailableError);
  assert.equal(await passes({ address, tls: { ca, serverName: "localhost" } }), true);
});

test("plain text to a TLS port fails closed", async () => {
  await assert.rejects(passes({ address: plain }), UnavailableError);
});

test("a client shows its certificate", async () => {
  const ca = pem("authority.pem");
  const tls = { ca, cert: pem("client.pem"), key: pem("client.key") };
  assert.equal(await passes({ address: mutual, tls }), true);
  await assert.rejects(passes({ address: mutual, tls: { ca } }), UnavailableError);
});
