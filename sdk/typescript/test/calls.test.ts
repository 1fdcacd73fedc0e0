// How calls are made: retries, deadlines, fail modes, metadata, numbers. A scripted service stands for a broken one.

import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { afterEach, describe, test } from "node:test";
import * as grpc from "@grpc/grpc-js";
import { context, propagation, trace, TraceFlags } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";

import {
  AbortedError,
  Decision,
  DeadlineError,
  type FailOpenEvent,
  Portcullis,
  ServiceCallError,
  UnavailableError,
} from "@portcullis/sdk";
import { CheckMessagesResponse, Span, ToolPhase } from "@portcullis/sdk/v1";
import { startFake, stopFakes } from "./support/fake.js";

const { UNAVAILABLE, INTERNAL, RESOURCE_EXHAUSTED, UNAUTHENTICATED } = grpc.status;

/** An address where nobody listens. */
async function nobody(): Promise<string> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as { port: number };
  await new Promise((done) => server.close(done));
  return `127.0.0.1:${port}`;
}

/** A listener that takes connections and never says a word. */
async function startSilent(): Promise<{ address: string; stop(): void }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket.on("error", () => undefined)));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as { port: number };
  const stop = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { address: `127.0.0.1:${port}`, stop };
}

/** Metadata that asks for a pause: the wire bytes of google.rpc.Status with a RetryInfo. */
function retryInfo(milliseconds: number): grpc.Metadata {
  const varint = (number: number): number[] =>
    number < 128 ? [number] : [(number % 128) | 128, ...varint(Math.floor(number / 128))];
  const field = (number: number, bytes: Uint8Array) =>
    Buffer.concat([Buffer.from([(number << 3) | 2, ...varint(bytes.length)]), bytes]);
  const seconds = Math.floor(milliseconds / 1000);
  const delay = Buffer.from([0x08, ...varint(seconds), 0x10, ...varint((milliseconds - seconds * 1000) * 1e6)]);
  const any = Buffer.concat([
    field(1, Buffer.from("type.googleapis.com/google.rpc.RetryInfo")),
    field(2, field(1, delay)),
  ]);
  const metadata = new grpc.Metadata();
  metadata.set("grpc-status-details-bin", field(3, any));
  return metadata;
}

afterEach(stopFakes);

describe("retries", () => {
  test("what changes nothing is asked again when nobody answered", async () => {
    const fake = await startFake({
      check: (index) => (index < 2 ? { code: UNAVAILABLE } : { decision: Decision.ALLOW }),
    });
    const client = new Portcullis({ address: fake.address, retry: { pauseMs: 1 } });
    assert.equal((await client.checkMessages("hi")).allowed, true);
    assert.equal(fake.seen.length, 3);
    assert.deepEqual([client.stats.calls, client.stats.retries], [1, 2]);
    client.close();
    fake.stop();
  });

  test("attempts end, and nothing else is asked again", async () => {
    for (const [code, attempts] of [
      [UNAVAILABLE, 3],
      [INTERNAL, 1],
      [RESOURCE_EXHAUSTED, 1],
      [UNAUTHENTICATED, 1],
    ] as const) {
      const fake = await startFake({ check: () => ({ code }) });
      const client = new Portcullis({ address: fake.address, retry: { pauseMs: 1 } });
      await assert.rejects(client.checkMessages("hi"), (error: ServiceCallError) => error.grpcCode === code);
      assert.equal(fake.seen.length, attempts, grpc.status[code]);
      client.close();
      fake.stop();
    }
  });

  test("the pause that the service asks for is kept", async () => {
    const fake = await startFake({
      check: (index) => (index === 0 ? { code: UNAVAILABLE, metadata: retryInfo(120) } : { decision: Decision.ALLOW }),
    });
    const client = new Portcullis({ address: fake.address, retry: { pauseMs: 1 } });
    const begin = performance.now();
    await client.checkMessages("hi");
    assert.ok(performance.now() - begin >= 119);
    client.close();
    fake.stop();
  });

  test("a pause that does not fit the deadline is not waited for", async () => {
    const fake = await startFake({ check: () => ({ code: UNAVAILABLE, metadata: retryInfo(120_000) }) });
    const client = new Portcullis({ address: fake.address, deadlines: { call: 20_000 } });
    await assert.rejects(
      client.checkMessages("hi"),
      (error: UnavailableError) => error.details.retryAfterMs === 120_000,
    );
    assert.equal(fake.seen.length, 1);
    client.close();
    fake.stop();
  });

  test("a submission is followed again from where it stands", async () => {
    const at = (status: number, final: boolean) => ({ submission: { id: "1", status } as never, final });
    const fake = await startFake({
      watch: (index) =>
        [[at(3, false), { code: UNAVAILABLE }], [{ code: UNAVAILABLE }], [at(3, false), at(4, true)]][index]!,
    });
    const client = new Portcullis({ address: fake.address, retry: { pauseMs: 1 } });
    const seen = [];
    for await (const { submission, final } of client.watchSubmission("1")) seen.push([submission.status, final]);
    assert.deepEqual(seen, [
      [3, false],
      [3, false],
      [4, true],
    ]);
    assert.equal(client.stats.retries, 2);
    client.close();
    fake.stop();
  });

  test("a stream that ends before a submission has settled is an error", async () => {
    const fake = await startFake({ watch: () => [{ submission: { id: "1", status: 3 } as never, final: false }] });
    const client = new Portcullis({ address: fake.address });
    const watch = async () => {
      for await (const one of client.watchSubmission("1")) void one;
    };
    await assert.rejects(watch(), /before the submission had settled/);
    client.close();
    fake.stop();
  });

  test("an upload is never sent twice", async () => {
    const fake = await startFake({ review: () => ({ code: UNAVAILABLE }) });
    const client = new Portcullis({ address: fake.address, retry: { pauseMs: 1 } });
    await assert.rejects(client.reviewBundle("test/fixtures/notes"), UnavailableError);
    assert.equal(fake.seen.length, 1);
    client.close();
    fake.stop();
  });
});

describe("a service that is away", () => {
  test("fails closed by default, and says what to do", async () => {
    const address = await nobody();
    const client = new Portcullis({ address, retry: { pauseMs: 1 } });
    await assert.rejects(client.checkMessages("hi"), (error: UnavailableError) => {
      assert.ok(error instanceof UnavailableError);
      assert.match(
        error.message,
        new RegExp(
          `^CheckMessages at ${address}: UNAVAILABLE: no connection: Error: connect ECONNREFUSED ${address}\\. Check that .portcullis serve`,
        ),
      );
      return true;
    });
    let ran = false;
    const tool = client.guardTool(async () => (ran = true), { name: "tool" });
    await assert.rejects(tool(), UnavailableError);
    assert.equal(ran, false);
    assert.deepEqual([client.stats.failedOpen, client.stats.failedClosed], [0, 2]);
    client.close();
  });

  test("open by choice goes on, counted and told", async () => {
    const events: FailOpenEvent[] = [];
    const client = new Portcullis({
      address: await nobody(),
      retry: { attempts: 1 },
      onUnavailable: "open",
      onFailOpen: (event) => events.push(event),
    });
    const answer = await client.checkMessages("hi");
    assert.deepEqual([answer.allowed, answer.failedOpen, answer.decision], [true, true, Decision.WARN]);
    assert.deepEqual([answer.unjudged[0]?.reason, answer.unjudged[0]?.failedOpen], ["unavailable", true]);
    const tool = client.guardTool(async ({ n }: { n: number }) => ({ twice: 2 * n }), { name: "twice" });
    assert.deepEqual(await tool({ n: 2 }), { twice: 4 });
    assert.deepEqual(
      events.map((event) => [event.call, event.toolName]),
      [
        ["checkMessages", undefined],
        ["guardTool", "twice"],
        ["guardTool", "twice"],
      ],
    );
    assert.deepEqual([client.stats.failedOpen, client.stats.failedClosed], [3, 0]);
    client.close();
  });

  test("open by choice never passes text for redacted that is not", async () => {
    const events: FailOpenEvent[] = [];
    const client = new Portcullis({
      address: await nobody(),
      retry: { attempts: 1 },
      onUnavailable: "open",
      onFailOpen: (event) => events.push(event),
    });
    await assert.rejects(client.checkMessages("jane.roe@corp-mail.net", { redact: true }), UnavailableError);
    assert.deepEqual([client.stats.failedOpen, client.stats.failedClosed, events.length], [0, 1, 0]);
    client.close();
  });

  test("a result is told to be withheld where it is, and not where it is handed out", async () => {
    for (const onUnavailable of ["closed", "open"] as const) {
      const fake = await startFake({
        tool: ({ phase, argsJson }) =>
          phase === ToolPhase.BEFORE ? { decision: Decision.ALLOW, argsJson } : { code: UNAVAILABLE },
      });
      const told: string[] = [];
      const client = new Portcullis({
        address: fake.address,
        retry: { attempts: 1 },
        onUnavailable,
        onFailOpen: ({ error }) => told.push(error.message),
      });
      const called = client.guardTool(() => 1, { name: "one" })();
      if (onUnavailable === "open") assert.equal(await called, 1);
      else await called.catch((error: UnavailableError) => told.push(error.message));
      assert.equal(told.length, 1);
      assert.match(told[0]!, /InterceptTool after tool `one` \(it has run\)/);
      assert.equal(told[0]!.includes("withheld"), onUnavailable === "closed", told[0]);
      client.close();
      fake.stop();
    }
  });

  test("open by choice is a warning of Node.js when nobody listens", async () => {
    const warned = new Promise<Error>((resolve) => process.once("warning", resolve));
    const client = new Portcullis({ address: await nobody(), retry: { attempts: 1 }, onUnavailable: "open" });
    await client.checkMessages("hi");
    assert.match((await warned).message, /1 decisions went on without a verdict/);
    client.close();
  });

  test("an error that is no absence always throws", async () => {
    const fake = await startFake({ check: () => ({ code: INTERNAL }), tool: () => ({ code: INTERNAL }) });
    const client = new Portcullis({ address: fake.address, onUnavailable: "open" });
    await assert.rejects(client.checkMessages("hi"), ServiceCallError);
    await assert.rejects(client.guardTool(() => 1, { name: "one" })(), ServiceCallError);
    assert.equal(client.stats.failedOpen, 0);
    client.close();
    fake.stop();
  });

  test("one that takes calls and says nothing is left at the deadline", async () => {
    const silent = await startSilent();
    const client = new Portcullis({ address: silent.address, deadlines: { call: 200 } });
    await assert.rejects(client.checkMessages("hi"), DeadlineError);
    client.close();
    silent.stop();
  });

  test("a token that never comes is left at the deadline", async () => {
    const client = new Portcullis({ token: () => new Promise<string>(() => undefined), deadlines: { call: 50 } });
    await assert.rejects(client.checkMessages("hi"), DeadlineError);
    client.close();
  });
});

test("the caller's signal ends a call", async () => {
  const silent = await startSilent();
  const client = new Portcullis({ address: silent.address });
  const controller = new AbortController();
  const call = client.checkMessages("hi", { signal: controller.signal });
  setImmediate(() => controller.abort());
  await assert.rejects(call, AbortedError);
  await assert.rejects(client.checkMessages("hi", { signal: AbortSignal.abort() }), AbortedError);
  client.close();
  silent.stop();
});

test("token and submitter travel as metadata", async () => {
  const fake = await startFake({ check: () => ({ decision: Decision.ALLOW }) });
  let number = 0;
  const client = new Portcullis({ address: fake.address, token: async () => `token-${++number}`, submitter: "ada" });
  await client.checkMessages("hi");
  await client.checkMessages("hi");
  assert.deepEqual(
    fake.seen.map(({ metadata }) => [metadata.get("authorization"), metadata.get("portcullis-submitter")]),
    [
      [["Bearer token-1"], ["ada"]],
      [["Bearer token-2"], ["ada"]],
    ],
  );
  client.close();
  fake.stop();
});

test("the active span travels as traceparent", async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  const fake = await startFake({
    check: () => ({ decision: Decision.ALLOW }),
    tool: () => ({ decision: Decision.ALLOW, argsJson: "{}" }),
  });
  const client = new Portcullis({ address: fake.address });
  const [traceId, spanId] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];
  const span = trace.wrapSpanContext({ traceId, spanId, traceFlags: TraceFlags.SAMPLED });
  await context.with(trace.setSpan(context.active(), span), async () => {
    await client.checkMessages("hi");
    await client.guardTool(() => undefined, { name: "nothing" })();
  });
  await client.checkMessages("outside");
  const wanted = `00-${traceId}-${spanId}-01`;
  assert.deepEqual(
    fake.seen.map(({ metadata }) => metadata.get("traceparent")),
    [[wanted], [wanted], [wanted], []],
  );
  client.close();
  fake.stop();
});

test("64-bit integers are exact or an error", async () => {
  const at = (start: number) =>
    CheckMessagesResponse.create({
      decision: Decision.ALLOW,
      findings: [{ span: { start, end: start } as Span } as never],
    });
  const fake = await startFake({
    check: (index) => (index === 0 ? at(Number.MAX_SAFE_INTEGER) : at(2 ** 53)),
  });
  const client = new Portcullis({ address: fake.address });
  assert.equal((await client.checkMessages("hi")).findings[0]?.span?.start, 9007199254740991);
  await assert.rejects(client.checkMessages("hi"), /MAX_SAFE_INTEGER/);
  client.close();
  fake.stop();
});

test("an answer that makes no sense runs nothing", async () => {
  for (const argsJson of ["[]", "1", "null", "{", '{"n": 1e999}']) {
    const fake = await startFake({ tool: () => ({ decision: Decision.ALLOW, argsJson }) });
    const client = new Portcullis({ address: fake.address, onUnavailable: "open" });
    let ran = false;
    await assert.rejects(client.guardTool(() => (ran = true), { name: "tool" })(), { name: "PortcullisError" });
    assert.equal(ran, false);
    client.close();
    fake.stop();
  }
});

test("a decision that is not known is no pass", async () => {
  for (const decision of [Decision.UNSPECIFIED, 9 as Decision]) {
    const fake = await startFake({ check: () => ({ decision }), tool: () => ({ decision, argsJson: "{}" }) });
    const client = new Portcullis({ address: fake.address });
    assert.equal((await client.checkMessages("hi")).allowed, false);
    let ran = false;
    await assert.rejects(client.guardTool(() => (ran = true), { name: "tool" })(), { name: "BlockedError" });
    assert.equal(ran, false);
    client.close();
    fake.stop();
  }
});
