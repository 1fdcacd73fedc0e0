// A real child process under StreamMonitor, attached from TypeScript and killed when the verdict says so.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import * as grpc from "@grpc/grpc-js";

import { IncidentServiceClient, type GetIncidentResponse } from "../gen/portcullis/v1/incident_service.js";
import { IncidentAction, type Incident, OutputStream, VerdictKind } from "../gen/portcullis/v1/monitor.js";
import {
  PolicyDecisionServiceClient,
  StreamMonitorRequest,
  type StreamMonitorResponse,
  type Summary,
} from "../gen/portcullis/v1/policy_decision_service.js";
import { type Server, startServer } from "./server.js";

const CERTAIN = resolve("../../cases/stream_monitor/output/certain.txt");
const WAIT_MS = 30_000;

// Prints a file, then lives on with a child of its own; tells both process ids on standard error.
const LIVES_ON = `
const { spawn } = require("node:child_process");
const child = spawn(process.execPath, ["-e", "setTimeout(() => {}, 60000)"], { stdio: "inherit" });
process.stderr.write("pids " + process.pid + " " + child.pid + "\\n", () => {
  process.stdout.write(require("node:fs").readFileSync(process.argv[1]));
  setTimeout(() => {}, 60000);
});
`;

let server: Server;
let client: PolicyDecisionServiceClient;

before(async () => {
  server = await startServer();
  client = new PolicyDecisionServiceClient(server.grpc, grpc.credentials.createInsecure());
});

after(async () => {
  client?.close();
  assert.equal(await server?.stop(), 0, "SIGTERM ends the server in good order");
});

interface Watched {
  code: number | null;
  signal: NodeJS.Signals | null;
  wasKilled: boolean;
  incidents: Incident[];
  summary: Summary | undefined;
  output: { stdout: string; stderr: string };
}

/** Continues and kills every process of the group that the child leads. */
function killGroup(child: ChildProcess): void {
  for (const signal of ["SIGCONT", "SIGKILL"] as const) {
    try {
      process.kill(-child.pid!, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

/** Runs a command in a process group of its own, streams its output to the monitor, and obeys the verdicts. */
function watch(command: string, args: string[], sessionId: string): Promise<Watched> {
  return new Promise((done, fail) => {
    const call = client.streamMonitor({ deadline: Date.now() + WAIT_MS } as grpc.CallOptions);
    const say = (request: Parameters<typeof StreamMonitorRequest.fromPartial>[0]) =>
      call.write(StreamMonitorRequest.fromPartial(request));
    say({ attach: { sessionId } });
    const child = spawn(command, args, { detached: true, stdio: ["ignore", "pipe", "pipe"] });
    const seen: Watched = {
      code: null,
      signal: null,
      wasKilled: false,
      incidents: [],
      summary: undefined,
      output: { stdout: "", stderr: "" },
    };
    let seq = 0;
    for (const [name, stream] of [
      ["stdout", OutputStream.OUTPUT_STREAM_STDOUT],
      ["stderr", OutputStream.OUTPUT_STREAM_STDERR],
    ] as const) {
      child[name]!.on("data", (data: Buffer) => {
        seen.output[name] += data.toString();
        seq += 1;
        const goesOn = say({ chunk: { stream, data, seq } });
        // The monitor sets the pace: while it cannot take more, the child waits.
        if (!goesOn) {
          child[name]!.pause();
          call.once("drain", () => child[name]!.resume());
        }
      });
    }
    child.once("close", (code, signal) => {
      seen.code = code;
      seen.signal = signal;
      say({ detach: code === null ? {} : { exitCode: code } });
      call.end();
    });
    call.on("data", (answer: StreamMonitorResponse) => {
      if (answer.incident) seen.incidents.push(answer.incident);
      if (answer.summary) seen.summary = answer.summary;
      const verdict = answer.verdict?.verdict;
      const isMild = verdict === VerdictKind.VERDICT_KIND_SAFE || verdict === VerdictKind.VERDICT_KIND_WARN;
      if (verdict !== undefined && !isMild) {
        seen.wasKilled = true;
        killGroup(child);
      }
    });
    call.once("error", (error) => {
      killGroup(child);
      fail(error);
    });
    call.once("end", () => done(seen));
  });
}

/** Whether a process runs; one that only waits to be looked after does not. */
function isAlive(pid: string): boolean {
  if (!existsSync(`/proc/${pid}/stat`)) return false;
  try {
    const state = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)![0]!;
    return !"ZX".includes(state);
  } catch {
    return false;
  }
}

describe("StreamMonitor", () => {
  test("a dangerous child is killed with its group", { skip: !existsSync("/proc/self") }, async () => {
    const watched = await watch(process.execPath, ["-e", LIVES_ON, CERTAIN], "typescript");
    assert.equal(watched.wasKilled, true, JSON.stringify(watched));
    assert.equal(watched.signal, "SIGKILL");
    const pids = /^pids (\d+) (\d+)$/m.exec(watched.output.stderr)!.slice(1);
    const until = Date.now() + WAIT_MS;
    while (pids.some(isAlive)) {
      assert.ok(Date.now() < until, "the group lives on");
      await new Promise((next) => setTimeout(next, 10));
    }
    const summary = watched.summary!;
    assert.equal(summary.worst, VerdictKind.VERDICT_KIND_KILL);
    const [incident] = watched.incidents;
    assert.equal(incident!.sessionId, "typescript");
    assert.equal(incident!.category, "dangerous_command");
    assert.equal(summary.incidents[0]!.id, incident!.id);
    // The service has kept it.
    const incidents = new IncidentServiceClient(server.grpc, grpc.credentials.createInsecure());
    const kept = await new Promise<GetIncidentResponse>((found, fail) => {
      incidents.getIncident({ incidentId: incident!.id }, (error, answer) => (error ? fail(error) : found(answer)));
    });
    incidents.close();
    assert.equal(kept.incident!.action, IncidentAction.INCIDENT_ACTION_KILL_ADVISED);
  });

  test("a harmless child ends as it likes", async () => {
    const program = 'console.log("Compiling 12 crates"); console.error("warning: unused"); process.exitCode = 7;';
    const watched = await watch(process.execPath, ["-e", program], "");
    assert.deepEqual([watched.code, watched.wasKilled], [7, false]);
    assert.equal(watched.summary!.incidentsTotal, 0);
    assert.equal(watched.summary!.worst, VerdictKind.VERDICT_KIND_SAFE);
    const length = watched.output.stdout.length + watched.output.stderr.length;
    assert.equal(watched.summary!.bytes, length);
  });
});
