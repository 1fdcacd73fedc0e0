// The worked examples in TypeScript under a real server, called as an agent calls it.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import * as grpc from "@grpc/grpc-js";

import { Decision } from "../gen/portcullis/v1/decision.js";
import {
  AddInterceptorRequest,
  type AddInterceptorResponse,
  InterceptorRegistryServiceClient,
  InterceptorSource,
  RemoveInterceptorRequest,
} from "../gen/portcullis/v1/interceptor_registry_service.js";
import { Hook, ToolPhase } from "../gen/portcullis/v1/interceptors.js";
import {
  InterceptToolRequest,
  type InterceptToolResponse,
  PolicyDecisionServiceClient,
} from "../gen/portcullis/v1/policy_decision_service.js";
import { type Server, startServer } from "./server.js";

const folder = mkdtempSync(join(tmpdir(), "portcullis-ts-token-"));
const tokenFile = join(folder, "token");
let server: Server;
let client: PolicyDecisionServiceClient;
let registry: InterceptorRegistryServiceClient;

before(async () => {
  writeFileSync(tokenFile, "an-example-token\n");
  const credentials = { guard: { hosts: ["127.0.0.1"], bearer_file: tokenFile } };
  // JSON is YAML.
  server = await startServer(JSON.stringify({ extensions: { private_hosts: ["127.0.0.1"], credentials } }));
  client = new PolicyDecisionServiceClient(server.grpc, grpc.credentials.createInsecure());
  registry = new InterceptorRegistryServiceClient(server.grpc, grpc.credentials.createInsecure());
});

after(async () => {
  client?.close();
  registry?.close();
  rmSync(folder, { recursive: true, force: true });
  assert.equal(await server?.stop(), 0, "SIGTERM ends the server in good order");
});

const deadline = () => ({ deadline: new Date(Date.now() + 20_000) });

function admin(): grpc.Metadata {
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${server.adminToken}`);
  return metadata;
}

function add(interceptor: object): Promise<AddInterceptorResponse> {
  const fields = { hook: Hook.HOOK_TOOL_BEFORE, toolMatcher: "^web_fetch$", ...interceptor };
  const request = AddInterceptorRequest.fromPartial({ interceptor: fields });
  return new Promise((done, fail) => {
    registry.addInterceptor(request, admin(), deadline(), (error, answer) => (error ? fail(error) : done(answer)));
  });
}

function remove(interceptorId: string): Promise<void> {
  const request = RemoveInterceptorRequest.fromPartial({ interceptorId });
  return new Promise((done, fail) => {
    registry.removeInterceptor(request, admin(), deadline(), (error) => (error ? fail(error) : done()));
  });
}

function fetchPage(url: string): Promise<InterceptToolResponse> {
  const request = InterceptToolRequest.fromPartial({
    phase: ToolPhase.TOOL_PHASE_BEFORE,
    toolName: "web_fetch",
    argsJson: JSON.stringify({ url }),
    verbose: true,
  });
  return new Promise((done, fail) => {
    client.interceptTool(request, new grpc.Metadata(), deadline(), (error, answer) =>
      error ? fail(error) : done(answer),
    );
  });
}

/** Starts an example on a free port; resolves once it says where it listens. */
function start(script: string, ...more: string[]): Promise<{ address: string; child: ChildProcess }> {
  const path = resolve("dist", "example", script);
  const child = spawn(process.execPath, [path, "--listen", "127.0.0.1:0", ...more], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return new Promise((done, fail) => {
    child.once("error", fail);
    child.once("exit", (code) => fail(new Error(`${script} ended with ${code}`)));
    createInterface({ input: child.stdout! }).once("line", (line) => {
      done({ address: line.replace("listening on ", ""), child });
    });
  });
}

describe("the examples", () => {
  for (const script of ["grpc_guard.js", "webhook_guard.js"]) {
    for (const credential of ["", "guard"]) {
      test(`${script} decides about calls${credential && ", with a token"}`, async () => {
        const { address, child } = await start(script, ...(credential ? ["--token-file", tokenFile] : []));
        const id = `test:${script}:${credential || "open"}`;
        const handler = script.startsWith("grpc")
          ? { extension: { endpoint: address, credential } }
          : { webhook: { url: `${address}/`, credential } };
        try {
          const added = await add({ id, ...handler });
          assert.equal(added.interceptor?.source, InterceptorSource.INTERCEPTOR_SOURCE_API);
          assert.deepEqual(added.matchedTools, ["web_fetch"]);
          const passed = await fetchPage("https://example.com/a");
          assert.deepEqual([passed.decision, passed.unjudged], [Decision.DECISION_ALLOW, []]);
          const changed = await fetchPage("http://example.com/a");
          assert.equal(changed.decision, Decision.DECISION_ALLOW);
          assert.deepEqual(JSON.parse(changed.argsJson), { url: "https://example.com/a" });
          const asked = await fetchPage("https://wiki.corp.example/");
          assert.equal(asked.decision, Decision.DECISION_ASK);
          const blocked = await fetchPage("https://example.org/");
          assert.equal(blocked.decision, Decision.DECISION_BLOCK);
          assert.match(blocked.blockReason, /example\.org/);
          const gone = new Promise((done) => child.once("exit", done));
          child.kill("SIGKILL");
          await gone;
          const away = await fetchPage("https://example.com/a");
          assert.equal(away.decision, Decision.DECISION_BLOCK, "what cannot be asked is not judged");
          assert.deepEqual(
            away.unjudged.map((one) => one.failedOpen),
            [false],
          );
        } finally {
          child.kill("SIGKILL");
          await remove(id);
        }
      });
    }
  }
});
