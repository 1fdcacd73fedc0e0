// A program that has used the client ends by itself, and no rejection is left unhandled.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { type Server, startServer } from "./support/server.js";

let server: Server;

before(async () => {
  server = await startServer();
});

after(async () => {
  await server?.stop();
});

const PROGRAM = `
import { spawn } from "node:child_process";
import { Portcullis } from "@portcullis/sdk";
const portcullis = new Portcullis({ retry: { pauseMs: 1 }, deadlines: { call: Number(process.env.DEADLINE) } });
const outcomes = await Promise.allSettled([
  portcullis.checkMessages("hi"),
  portcullis.guardTool(async () => 1, { name: "one" })(),
  portcullis.reviewBundle("test/fixtures/notes", { dryRun: true }),
]);
// Nobody looks at these.
portcullis.attach(spawn("sh", ["-c", "echo fine"], { detached: true, stdio: ["ignore", "pipe", "pipe"] }));
const watch = portcullis.watchSubmission("01890000-0000-7000-8000-000000000000").next().catch(() => undefined);
await watch;
console.log(outcomes.map(({ status }) => status).join(" "));
`;

for (const [about, address, wanted] of [
  ["a service that is there", () => server.grpc, "fulfilled fulfilled fulfilled"],
  ["a service that is away", () => "127.0.0.1:1", "rejected rejected rejected"],
  ["a list with one that is away", () => `127.0.0.1:1,${server.grpc}`, "fulfilled fulfilled fulfilled"],
] as const) {
  test(about, async () => {
    const env = { ...process.env, PORTCULLIS_ADDRESS: address(), DEADLINE: "60000" };
    const begin = performance.now();
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      ["--unhandled-rejections=strict", "--input-type=module", "-e", PROGRAM],
      { env, timeout: 30_000 },
    );
    assert.equal(stdout.trim(), wanted, stderr);
    assert.equal(stderr, "");
    // Far from the deadline: no timer of a call that is over keeps the program.
    assert.ok(performance.now() - begin < 20_000);
  });
}
