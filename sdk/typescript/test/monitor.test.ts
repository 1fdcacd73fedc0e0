// Real child processes under watch.

import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { Writable } from "node:stream";
import { after, afterEach, before, describe, test } from "node:test";

import { ConfigurationError, type Incident, Portcullis, type Verdict, VerdictKind } from "@portcullis/sdk";
import { IncidentServiceClient } from "@portcullis/sdk/v1";
import { startFake, stopFakes } from "./support/fake.js";
import { type Server, startServer } from "./support/server.js";

const DANGEROUS = "+ sudo rm -rf --no-preserve-root /";
const WAIT_MS = 20_000;
const isLinux = existsSync("/proc/self/stat");

let server: Server;
let portcullis: Portcullis;
const children: ChildProcess[] = [];

before(async () => {
  server = await startServer();
  portcullis = new Portcullis({ address: server.grpc });
});

after(async () => {
  portcullis?.close();
  await server?.stop();
});

afterEach(() => {
  stopFakes();
  for (const child of children.splice(0)) {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // It is gone, as it should be.
    }
  }
});

/** A Node.js program in a process group of its own. */
function start(program: string, options: object = {}): ChildProcess {
  const child = spawn(process.execPath, ["-e", program], {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    ...options,
  });
  children.push(child);
  return child;
}

/** Takes what is written to it, slowly if asked to. */
function sink(pauseMs = 0): Writable & { bytes: number; text: string } {
  const made = new Writable({
    write(data: Buffer, _, done) {
      made.bytes += data.length;
      if (made.bytes < 10_000) made.text += data.toString("latin1");
      if (pauseMs === 0) done();
      else setTimeout(done, pauseMs);
    },
  }) as Writable & { bytes: number; text: string };
  return Object.assign(made, { bytes: 0, text: "" });
}

function isAlive(pid: number): boolean {
  try {
    const state = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ").at(-1)![0]!;
    return !"ZX".includes(state);
  } catch {
    return false;
  }
}

async function gone(pids: readonly number[]): Promise<void> {
  const until = Date.now() + WAIT_MS;
  while (pids.some(isAlive)) {
    assert.ok(Date.now() < until, "the group lives on");
    await new Promise((next) => setTimeout(next, 10));
  }
}

// Lives on with a child of its own, whose id it tells, and then prints something.
const familyThatPrints = (text: string) => `
const child = require("node:child_process").spawn(process.execPath, ["-e", "setTimeout(() => {}, 60000)"], { stdio: "inherit" });
process.stderr.write("child " + child.pid + "\\n", () => console.log(${JSON.stringify(text)}));
setTimeout(() => {}, 60000);
`;

describe("attach", () => {
  test("a dangerous child is killed with its group, and the incident is kept", { skip: !isLinux }, async () => {
    const child = start(familyThatPrints(DANGEROUS));
    const stderr = sink();
    const [incidents, verdicts]: [Incident[], Verdict[]] = [[], []];
    const monitor = portcullis.attach(
      child,
      { goal: "Build the app", acceptanceCriteria: ["It builds"], labels: { run: "7" } },
      {
        sessionId: "sdk-kill",
        context: { agentId: "builder" },
        passThrough: { stderr },
        onIncident: (incident) => incidents.push(incident),
        onVerdict: (verdict) => void verdicts.push(verdict),
      },
    );
    const result = await monitor.done;
    assert.deepEqual(
      [result.killed, result.killReach, result.signal, result.sessionId],
      [true, "group", "SIGKILL", "sdk-kill"],
    );
    assert.equal(result.verdict?.verdict, VerdictKind.KILL);
    assert.equal(result.summary?.worst, VerdictKind.KILL);
    assert.equal(result.error, undefined);
    await gone([child.pid!, Number(/child (\d+)/.exec(stderr.text)![1])]);
    assert.deepEqual(
      monitor.getIncidents().map((one) => [one.category, one.verdict]),
      [["dangerous_command", VerdictKind.KILL]],
    );
    assert.deepEqual([incidents.length, verdicts.length], [1, 1]);
    const kept = await new Promise<Incident | undefined>((found, fail) => {
      portcullis
        .stub(IncidentServiceClient)
        .getIncident({ incidentId: incidents[0]!.id }, (error, answer) =>
          error ? fail(error) : found(answer.incident),
        );
    });
    assert.deepEqual(
      [kept?.sessionId, kept?.work?.goal, kept?.context?.agentId],
      ["sdk-kill", "Build the app", "builder"],
    );
  });

  test("what a child leaves behind in its group is killed with it", { skip: !isLinux }, async () => {
    const child = spawn("sh", ["-c", `sleep 600 & echo "left $!"; echo '${DANGEROUS}'`], {
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    children.push(child);
    const exited = new Promise((done) => child.once("exit", done));
    const stdout = sink();
    const monitor = portcullis.attach(child, {}, { passThrough: { stdout } });
    await exited;
    const result = await monitor.done;
    assert.deepEqual([result.killed, result.killReach], [true, "group"]);
    await gone([Number(/left (\d+)/.exec(stdout.text)![1])]);
  });

  test("a stopped child is continued and killed", { skip: !isLinux }, async () => {
    const child = start(
      `console.log(${JSON.stringify(DANGEROUS)}); process.kill(process.pid, "SIGSTOP"); setTimeout(() => {}, 60000);`,
    );
    const { killed, signal } = await portcullis.attach(child).done;
    assert.deepEqual([killed, signal], [true, "SIGKILL"]);
  });

  test("a harmless child ends as it likes, every byte seen", async () => {
    const child = start(
      `process.stdout.write(Buffer.from([0xff, 0x00, 0xe2, 0x82])); console.error("warning: ünused"); process.exitCode = 7;`,
    );
    const [stdout, stderr] = [sink(), sink()];
    const result = await portcullis.attach(child, {}, { passThrough: { stdout, stderr } }).done;
    assert.deepEqual([result.exitCode, result.killed, result.error], [7, false, undefined]);
    assert.deepEqual([stdout.text, stderr.bytes], ["\xff\x00\xe2\x82", 17]);
    assert.deepEqual([result.summary?.bytes, result.summary?.incidentsTotal], [21, 0]);
    assert.equal(result.summary?.worst, VerdictKind.SAFE);
  });

  test("a child that ends at once is seen to its last byte", async () => {
    for (const program of ["", `require("fs").writeSync(1, ${JSON.stringify(DANGEROUS)} + "\\n"); process.exit(3)`]) {
      const result = await portcullis.attach(start(program)).done;
      assert.equal(result.summary?.bytes, program === "" ? 0 : DANGEROUS.length + 1);
      assert.equal(result.incidents.length, program === "" ? 0 : 1);
    }
  });

  test("a flood is slowed down, not stored, and seen to its end", async () => {
    const megabytes = 24;
    const child = start(
      `
      const piece = Buffer.alloc(1024 * 1024, "all is well\\n");
      for (let left = ${megabytes}; left > 0; left--) require("fs").writeSync(1, piece, 0, piece.length);
      console.error(${JSON.stringify(DANGEROUS)});
      setTimeout(() => {}, 60000);
    `.replace(
        /require\("fs"\)\.writeSync\(1, piece, 0, piece\.length\)/,
        `{ let at = 0; while (at < piece.length) { try { at += require("fs").writeSync(1, piece, at); } catch (e) { if (e.code !== "EAGAIN") throw e; } } }`,
      ),
    );
    const before = process.memoryUsage().rss;
    const stdout = sink();
    const result = await portcullis.attach(child, {}, { passThrough: { stdout } }).done;
    assert.equal(result.killed, true);
    assert.equal(stdout.bytes, megabytes * 1024 * 1024);
    assert.equal(result.summary?.bytes, stdout.bytes + DANGEROUS.length + 1);
    assert.ok(process.memoryUsage().rss - before < 150 * 1024 * 1024, "the flood was stored");
  });

  test("a slow reader of the copy slows the child down", async () => {
    const child = start(`process.stdout.write("x".repeat(1024 * 1024))`);
    const stdout = sink(1);
    const result = await portcullis.attach(child, {}, { passThrough: { stdout } }).done;
    assert.equal(result.summary?.bytes, 1024 * 1024);
    stdout.end();
    await new Promise((done) => stdout.once("finish", done));
    assert.equal(stdout.bytes, 1024 * 1024);
  });

  test("a reader of the copy that goes away changes nothing", async () => {
    const child = start(`process.stdout.write("x".repeat(1024 * 1024))`);
    const stdout = new Writable({ highWaterMark: 1, write: () => undefined });
    stdout.on("error", () => undefined);
    setTimeout(() => stdout.destroy(), 50);
    assert.equal((await portcullis.attach(child, {}, { passThrough: { stdout } }).done).summary?.bytes, 1024 * 1024);
  });

  test("a child without a group of its own is killed alone", { skip: !isLinux }, async () => {
    const child = start(`console.log(${JSON.stringify(DANGEROUS)}); setTimeout(() => {}, 60000);`, { detached: false });
    const result = await portcullis.attach(child).done;
    assert.deepEqual([result.killed, result.killReach, result.signal], [true, "process", "SIGKILL"]);
  });

  test("detach lets the child go on, unwatched", async () => {
    const child = start(
      `console.log("one"); process.stdin.once("data", () => console.log(${JSON.stringify(DANGEROUS)}));`,
      { stdio: ["pipe", "pipe", "pipe"] },
    );
    const stdout = sink();
    const monitor = portcullis.attach(child, {}, { passThrough: { stdout } });
    await new Promise((seen) => child.stdout!.once("data", seen));
    const result = await monitor.detach();
    assert.deepEqual([result.killed, result.exitCode, result.summary?.bytes], [false, null, 4]);
    const exited = new Promise((done) => child.once("close", done));
    child.stdin!.end("go on\n");
    assert.equal(await exited, 0);
    assert.equal(stdout.text, `one\n${DANGEROUS}\n`);
    assert.deepEqual(await monitor.detach(), result);
  });

  test("what cannot be read in full is refused", async () => {
    assert.throws(() => portcullis.attach(start("", { stdio: ["ignore", "pipe", "ignore"] })), /no stderr/);
    const encoded = start("");
    encoded.stdout!.setEncoding("utf8");
    assert.throws(() => portcullis.attach(encoded), /encoding/);
    const read = start(`console.log("hello")`);
    await new Promise((done) => read.once("close", done));
    assert.throws(() => portcullis.attach(read), ConfigurationError);
    assert.throws(() => portcullis.attach(start(""), {}, { onDisconnect: "maybe" as never }), /"kill" or "continue"/);
  });

  test("a child that is over and has said nothing is nothing", async () => {
    const child = start("");
    await new Promise((done) => child.once("close", done));
    const result = await portcullis.attach(child).done;
    assert.deepEqual([result.exitCode, result.summary?.bytes], [0, 0]);
  });

  test("a program that is not there is told in the result", async () => {
    const child = spawn("/nowhere/at-all", [], { detached: true, stdio: ["ignore", "pipe", "pipe"] });
    const { error, killed } = await portcullis.attach(child).done;
    assert.match(String(error), /could not be started.*ENOENT/);
    assert.equal(killed, false);
  });

  test("functions that fail stop nothing", async () => {
    const warned = new Promise<Error>((resolve) => process.once("warning", resolve));
    const fails = () => {
      throw new Error("broken listener");
    };
    const child = start(`console.log(${JSON.stringify(DANGEROUS)}); setTimeout(() => {}, 60000);`);
    assert.equal((await portcullis.attach(child, {}, { onIncident: fails, onVerdict: fails }).done).killed, true);
    assert.match((await warned).message, /broken listener/);
  });

  test("a silent child keeps its session", async () => {
    const idle = await startServer({ settings: { streams: { idle_timeout: "400ms" } } });
    const client = new Portcullis({ address: idle.grpc });
    const result = await client.attach(start("setTimeout(() => {}, 1500)"), {}, { heartbeatMs: 50 }).done;
    assert.deepEqual([result.error, result.exitCode], [undefined, 0]);
    assert.ok(result.summary!.chunks > 5);
    client.close();
    await idle.stop();
  });
});

describe("a service that is lost", () => {
  const lives = `console.log("begin"); setInterval(() => console.log("still here"), 20);`;

  /** A watched child whose service is killed once it has answered. */
  async function lose(options: object) {
    const short = await startServer();
    const client = new Portcullis({ address: short.grpc });
    const child = start(lives);
    let losses = 0;
    const monitor = client.attach(child, {}, { onLost: () => (losses += 1), ...options });
    while (monitor.sessionId === "") await new Promise((next) => setTimeout(next, 5));
    await short.stop("SIGKILL");
    return { client, child, monitor, losses: () => losses };
  }

  test("has its child killed by default", async () => {
    const { client, monitor, losses } = await lose({});
    const result = await monitor.done;
    assert.deepEqual([result.killed, result.signal, result.summary], [true, "SIGKILL", undefined]);
    assert.equal(result.error?.name, "UnavailableError");
    assert.deepEqual([losses(), client.stats.monitorsLost, client.stats.killed], [1, 1, 1]);
    client.close();
  });

  test("that hangs is noticed by its keepalive", { skip: !isLinux }, async () => {
    const hung = await startServer();
    const client = new Portcullis({ address: hung.grpc, keepaliveMs: 200 });
    const monitor = client.attach(start("setTimeout(() => {}, 60000)"));
    while (monitor.sessionId === "") await new Promise((next) => setTimeout(next, 5));
    hung.signal("SIGSTOP");
    const result = await monitor.done;
    assert.deepEqual([result.killed, result.error?.name], [true, "UnavailableError"]);
    client.close();
    await hung.stop("SIGKILL");
  });

  test("lets it go on by choice, counted", async () => {
    const { client, child, monitor } = await lose({ onDisconnect: "continue" });
    while (client.stats.unwatchedBytes < 100) await new Promise((next) => setTimeout(next, 5));
    assert.equal(child.exitCode, null);
    child.kill("SIGTERM");
    const result = await monitor.done;
    assert.deepEqual([result.killed, result.signal, client.stats.monitorsLost], [false, "SIGTERM", 1]);
    assert.ok(result.unwatchedBytes >= 100);
    client.close();
  });

  test("was never there: the child is killed", async () => {
    const client = new Portcullis({ address: "127.0.0.1:1" });
    const result = await client.attach(start(lives)).done;
    assert.deepEqual([result.killed, result.error?.name, result.sessionId], [true, "UnavailableError", ""]);
    client.close();
  });

  test("refuses the session: the child is killed", async () => {
    const result = await portcullis.attach(start(lives), {}, { policy: "nobody-wrote-it" }).done;
    assert.deepEqual([result.killed, result.error?.name], [true, "InvalidRequestError"]);
  });

  test("ends the session without a word: the child is killed", async () => {
    const fake = await startFake({ monitor: (stream) => stream.once("data", () => stream.end()) });
    const client = new Portcullis({ address: fake.address });
    const result = await client.attach(start(lives)).done;
    assert.equal(result.killed, true);
    assert.match(String(result.error), /without a word/);
    client.close();
  });

  test("ends the session at its deadline: the child is killed", async () => {
    const result = await portcullis.attach(start(lives), {}, { deadlineMs: 300 }).done;
    assert.deepEqual([result.killed, result.error?.name], [true, "DeadlineError"]);
  });
});

test("a program that ends takes the process along", { skip: !isLinux }, async () => {
  const program = (end: string) => `
    import { spawn } from "node:child_process";
    import { Portcullis } from "@portcullis/sdk";
    const child = spawn("sleep", ["600"], { detached: true, stdio: ["ignore", "pipe", "pipe"] });
    const monitor = new Portcullis().attach(child);
    while (monitor.sessionId === "") await new Promise((next) => setTimeout(next, 5));
    console.log(child.pid);
    ${end}
  `;
  for (const end of ["process.exit(0);", "setImmediate(() => { throw new Error('a bug'); });"]) {
    const env = { ...process.env, PORTCULLIS_ADDRESS: server.grpc };
    const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", program(end)], {
      env,
      encoding: "utf8",
      timeout: WAIT_MS,
    });
    await gone([Number(stdout)]);
  }
});

test("a verdict that is not known is a KILL", async () => {
  for (const verdict of [VerdictKind.UNSPECIFIED, 9 as VerdictKind]) {
    const fake = await startFake({
      monitor: (stream) =>
        stream.once("data", () =>
          stream.write({
            verdict: { incidentId: "1", verdict, reason: "", source: 0, final: true, kill: undefined, decisionId: "" },
          }),
        ),
    });
    const client = new Portcullis({ address: fake.address });
    const child = start("setTimeout(() => {}, 60000)");
    const monitor = client.attach(child, {}, { summaryMs: 100 });
    assert.equal((await monitor.done).killed, true);
    client.close();
  }
});
