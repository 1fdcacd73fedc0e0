// Several addresses: turns, an address that goes away, a name.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Portcullis } from "@portcullis/sdk";
import { type Server, startServer } from "./support/server.js";

const servers: Server[] = [];

before(async () => {
  servers.push(...(await Promise.all([startServer(), startServer()])));
});

after(async () => {
  for (const server of servers) await server.stop();
});

/** How many conversations a server has judged, by its own count. */
async function judged({ http }: Server): Promise<number> {
  const text = await (await fetch(`http://${http}/metrics`)).text();
  const lines = text.split("\n").filter((line) => /^portcullis_requests_total\{.*CheckMessages"/.test(line));
  return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

test("calls take turns over a list, and go on when one address goes away", async () => {
  const client = new Portcullis({ address: servers.map((server) => server.grpc), deadlines: { call: 20_000 } });
  // Until both are connected, the one that is gets the calls.
  while ((await Promise.all(servers.map(judged))).some((count) => count === 0)) await client.checkMessages("hi");
  const before = await Promise.all(servers.map(judged));
  for (let call = 0; call < 20; call++) await client.checkMessages("hi");
  const after = await Promise.all(servers.map(judged));
  assert.deepEqual([after[0]! - before[0]!, after[1]! - before[1]!], [10, 10]);

  const [gone, left] = servers as [Server, Server];
  await gone.stop("SIGKILL");
  for (let call = 0; call < 20; call++) assert.equal((await client.checkMessages("hi")).allowed, true);
  assert.equal((await judged(left)) - after[1]!, 20);
  client.close();

  // One that was never there.
  const late = new Portcullis({ address: [gone.grpc, left.grpc] });
  for (let call = 0; call < 4; call++) assert.equal((await late.checkMessages("hi")).allowed, true);
  assert.equal(late.stats.retries, 0);
  late.close();
});

test("a name is looked up", async () => {
  const port = servers[1]!.grpc.split(":")[1]!;
  for (const address of [`dns:///localhost:${port}`, `localhost:${port}`]) {
    const client = new Portcullis({ address });
    assert.equal((await client.checkMessages("hi")).allowed, true);
    client.close();
  }
});

test("an address list of which nobody is there says so", async () => {
  const client = new Portcullis({ address: ["127.0.0.1:1", "127.0.0.1:2"], retry: { pauseMs: 1 } });
  await assert.rejects(client.checkMessages("hi"), { name: "UnavailableError" });
  client.close();
});
