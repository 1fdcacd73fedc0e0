// The bench: that it works in any run, and with PORTCULLIS_OVERHEAD_MAX, such as 1.10, that the client costs no more.

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

function bench(...args: string[]): Promise<{ stdout: string }> {
  const env = { ...process.env, PORTCULLIS_ADDRESS: server.grpc };
  return promisify(execFile)(process.execPath, ["build/bench/overhead.js", ...args], { env, timeout: 110_000 });
}

test("the client costs no more over the stub than it may", async (context) => {
  const limit = process.env["PORTCULLIS_OVERHEAD_MAX"];
  const { stdout } = await bench(...(limit === undefined ? ["20"] : ["4000", limit]));
  context.diagnostic(stdout.trim());
  assert.match(stdout, /^ratio  \d\.\d{3}$/m);
});

test("a ratio above the limit is a failure", async () => {
  await assert.rejects(bench("20", "0.01"), (error: { code: number; stderr: string }) => {
    assert.equal(error.code, 1);
    assert.match(error.stderr, /^the ratio \d\.\d{3} is above 0\.01$/m);
    return true;
  });
});
