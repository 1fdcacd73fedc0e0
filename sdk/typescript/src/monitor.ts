/**
 * Watches the output of a child process and kills it when a verdict says so.
 *
 * Bytes go to the service as they come, and reading stops while the service, or whoever gets a copy, cannot take more: so
 * a flood is slowed down and never stored. Whatever is no clear SAFE or WARN is a KILL.
 */

import type { ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import type { ClientDuplexStream } from "@grpc/grpc-js";

import { type Incident, OutputStream, type Verdict, VerdictKind } from "./generated/api/portcullis/v1/monitor.js";
import {
  PolicyDecisionServiceService as Service,
  StreamMonitorRequest,
  type StreamMonitorResponse,
  type Summary,
} from "./generated/api/portcullis/v1/policy_decision_service.js";
import { WorkContext } from "./generated/api/portcullis/v1/context.js";
import type { Opened } from "./calls.js";
import { callError, ConfigurationError, PortcullisError } from "./errors.js";
import { type CallOptions, checkNames, millis, type Names } from "./options.js";
import { killChild, type KillReach } from "./process_group.js";
import type { Shared } from "./shared.js";

/** What a process was asked to do; the judge compares its doings with this. */
export interface Work {
  /** What the work is for. */
  readonly goal?: string;
  /** What must be true when it is done. */
  readonly acceptanceCriteria?: readonly string[];
  /** What is not part of it. */
  readonly nonGoals?: readonly string[];
  /** Where it may reach, in words. */
  readonly scope?: string;
  /** Free labels. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** How a process is watched. Errors of the functions are warnings of Node.js: they stop neither watching nor killing. */
export interface AttachOptions extends Omit<CallOptions, "signal"> {
  /** Id of the session, kept with each incident. Default: the service makes one. */
  readonly sessionId?: string;
  /**
   * What becomes of the process when the service is lost, or was never reached: `kill`, the default, or `continue`,
   * unwatched, which is counted in `stats.monitorsLost` and `stats.unwatchedBytes`.
   */
  readonly onDisconnect?: "kill" | "continue";
  /** Where the output goes besides: `true` for this process's own, or streams. Unset: nowhere. */
  readonly passThrough?: boolean | { readonly stdout?: Writable; readonly stderr?: Writable };
  /** Milliseconds without output after which the service is told that the process is still there. Default 30,000. */
  readonly heartbeatMs?: number;
  /** How long to wait for the last verdicts once the process has ended, in milliseconds. Default 30,000. */
  readonly summaryMs?: number;
  /** Told of each incident at once. */
  readonly onIncident?: (incident: Incident) => void;
  /** Told of each verdict, before a KILL is carried out. */
  readonly onVerdict?: (verdict: Verdict) => void;
  /** Told when the service is lost. */
  readonly onLost?: (error: PortcullisError) => void;
}

/** How a session ended. */
export interface MonitorResult {
  /** Id of the session; empty when the service never answered. */
  readonly sessionId: string;
  /** Everything that was found, with the strongest verdict each has got. */
  readonly incidents: readonly Incident[];
  /** What the service sums up. Undefined when the session was cut off: then what happened is not known in full. */
  readonly summary: Summary | undefined;
  /** Whether the process was killed from here, by a verdict or because nobody watched any longer. */
  readonly killed: boolean;
  /** What the kill reached. */
  readonly killReach: KillReach;
  /** The verdict that killed it. */
  readonly verdict: Verdict | undefined;
  /** Why the service was lost. Undefined when it was not. */
  readonly error: PortcullisError | undefined;
  /** Bytes of output that nobody looked at. */
  readonly unwatchedBytes: number;
  /** Exit code of the process. Null when a signal ended it, or it still runs. */
  readonly exitCode: number | null;
  /** The signal that ended it. */
  readonly signal: NodeJS.Signals | null;
}

const HEARTBEAT_MS = 30_000;
const SUMMARY_MS = 30_000;
/** How long the output of a killed process is read that does not end with it. */
const AFTER_KILL_MS = 5_000;
/** Largest chunk that is sent; well below the limit of a message. */
const CHUNK_BYTES_MAX = 256 * 1024;
/** Incidents kept for `getIncidents`: as many as the service reports of one session by default. */
const INCIDENTS_MAX = 10_000;

const WORK_NAMES: Names<Work> = { goal: true, acceptanceCriteria: true, nonGoals: true, scope: true, labels: true };
const ATTACH_NAMES: Names<AttachOptions> = {
  deadlineMs: true,
  policy: true,
  context: true,
  sessionId: true,
  onDisconnect: true,
  passThrough: true,
  heartbeatMs: true,
  summaryMs: true,
  onIncident: true,
  onVerdict: true,
  onLost: true,
};

/** Sessions that are open: a program that ends with them takes their processes along. */
const watched = new Set<() => void>();

function endWatched(): void {
  for (const end of watched) end();
}

type Call = ClientDuplexStream<StreamMonitorRequest, StreamMonitorResponse>;

/** One output of the process. */
interface Source {
  readonly stream: OutputStream;
  readonly from: Readable;
  readonly to: Writable | undefined;
  readonly listen: (data: Buffer | string) => void;
}

/** A process under watch. */
export class Monitor {
  /** Resolves when watching has ended, and never rejects: a lost service is told in the result. */
  readonly done: Promise<MonitorResult>;

  readonly #shared: Shared;
  readonly #child: ChildProcess;
  readonly #options: AttachOptions;
  readonly #sources: Source[] = [];
  readonly #incidents = new Map<string, Incident>();
  /** What reading waits for. Read on when empty. */
  readonly #waits = new Set<unknown>();
  /** Output that came before the call was open: at most what a pipe holds. */
  #early: { source: Source; bytes: Buffer }[] = [];
  #call: Call | undefined;
  #target = "";
  #seq = 0;
  #sessionId = "";
  #summary: Summary | undefined;
  #killReach: KillReach | undefined;
  #verdict: Verdict | undefined;
  #error: PortcullisError | undefined;
  #unwatchedBytes = 0;
  #isDetached = false;
  #isOver = false;
  #heartbeat: NodeJS.Timeout | undefined;
  #summaryTimer: NodeJS.Timeout | undefined;
  #killTimer: NodeJS.Timeout | undefined;
  #finish!: (result: MonitorResult) => void;

  /** @internal See `Portcullis.attach`. */
  constructor(shared: Shared, child: ChildProcess, work: Work, options: AttachOptions) {
    this.#shared = shared;
    this.#child = child;
    this.#options = options;
    checkNames(work, WORK_NAMES, "the work of attach");
    checkNames(options, ATTACH_NAMES, "the options of attach");
    check(child, options);
    const heartbeatMs = millis(options.heartbeatMs, HEARTBEAT_MS, "heartbeatMs");
    millis(options.summaryMs, SUMMARY_MS, "summaryMs");
    const limit = shared.caller.limit(options, "session");
    const attach = StreamMonitorRequest.fromPartial({
      attach: {
        sessionId: options.sessionId ?? "",
        work: WorkContext.fromPartial(work as Partial<WorkContext>),
        context: shared.context(options),
        policy: shared.policy(options),
      },
    });
    this.done = new Promise((resolve) => (this.#finish = resolve));
    this.#read("stdout", OutputStream.STDOUT);
    this.#read("stderr", OutputStream.STDERR);
    if (watched.size === 0) process.once("exit", endWatched);
    watched.add(this.#onProgramEnd);
    child.once("close", this.#onClose);
    child.once("exit", this.#onExit);
    child.on("error", this.#onError);
    // One that is over already will not say so again.
    if (hasEnded(child) && this.#sources.every(({ from }) => from.destroyed)) queueMicrotask(this.#onClose);
    // Nothing is read before the call is open.
    this.#wait(this);
    Promise.resolve()
      .then(() => shared.caller.open(limit))
      .then(
        (opened) => this.#begin(opened, attach, heartbeatMs),
        (error: unknown) => this.#lose(callError(error, "StreamMonitor", this.#target)),
      );
  }

  /** Id of the session; empty until the service has answered. */
  get sessionId(): string {
    return this.#sessionId;
  }

  /** Everything found so far, oldest first, with the strongest verdict each has got. */
  getIncidents(): Incident[] {
    return [...this.#incidents.values()].map((incident) => ({ ...incident }));
  }

  /**
   * Stops watching a process that goes on. Its output still goes where `passThrough` says, or nowhere. The result comes
   * with the last verdicts; one that says KILL still kills.
   */
  detach(): Promise<MonitorResult> {
    this.#detach();
    return this.done;
  }

  /** Kills the process and its group as a verdict would. */
  kill(): KillReach {
    return this.#kill(true);
  }

  #read(name: "stdout" | "stderr", stream: OutputStream): void {
    const from = this.#child[name]!;
    const given = this.#options.passThrough;
    const to = given === true ? process[name] : typeof given === "object" ? given[name] : undefined;
    const listen = (data: Buffer | string) => this.#onData(source, data);
    const source: Source = { stream, from, to, listen };
    this.#sources.push(source);
    from.on("data", listen);
    from.pause();
    // A pipe that breaks ends like any other; `close` of the process follows.
    from.on("error", ignore);
  }

  #begin(opened: Opened, attach: StreamMonitorRequest, heartbeatMs: number): void {
    if (this.#isOver) return;
    this.#target = opened.lane.target.name;
    const { path, requestSerialize, responseDeserialize } = Service.streamMonitor;
    const { lane, metadata, options } = opened;
    this.#shared.caller.calls += 1;
    const call: Call = lane.client.makeBidiStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      metadata,
      options,
    );
    this.#call = call;
    call.on("data", (answer: StreamMonitorResponse) => this.#onAnswer(answer));
    call.on("error", (error) => this.#onEnd(callError(error, "StreamMonitor", this.#target)));
    call.on("end", () => this.#onEnd(undefined));
    this.#send(attach);
    this.#heartbeat = setInterval(() => this.#beat(), heartbeatMs);
    this.#heartbeat.unref();
    for (const { source, bytes } of this.#early.splice(0)) this.#sendBytes(source, bytes);
    if (this.#isDetached) this.#sendDetach();
    this.#goOn(this);
  }

  #onData(source: Source, data: Buffer | string): void {
    // `setEncoding` after `attach`: the bytes are lost already.
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    this.#pass(source, bytes);
    if (this.#error !== undefined) this.#miss(bytes.length);
    else if (!this.#isDetached && this.#call === undefined) this.#early.push({ source, bytes });
    else if (!this.#isDetached) this.#sendBytes(source, bytes);
    // Node.js sets the pipes of a process that has ended flowing, whoever had paused them.
    if (this.#waits.size > 0) source.from.pause();
  }

  #sendBytes({ stream }: Source, bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES_MAX) {
      this.#sendChunk(stream, bytes.subarray(at, at + CHUNK_BYTES_MAX));
    }
    this.#heartbeat?.refresh();
  }

  #sendChunk(stream: OutputStream, data: Uint8Array): void {
    this.#seq += 1;
    this.#send(StreamMonitorRequest.create({ chunk: { stream, data: data as Buffer, seq: this.#seq } }));
  }

  #send(request: StreamMonitorRequest): void {
    const call = this.#call!;
    if (call.write(request) || this.#waits.has(call)) return;
    this.#wait(call);
    call.once("drain", () => this.#goOn(call));
  }

  #pass({ to }: Source, bytes: Buffer): void {
    if (to === undefined || to.destroyed || to.writableEnded || to.write(bytes) || this.#waits.has(to)) return;
    this.#wait(to);
    const goOn = () => {
      for (const event of ["drain", "close", "error"]) to.off(event, goOn);
      this.#goOn(to);
    };
    for (const event of ["drain", "close", "error"]) to.on(event, goOn);
  }

  #wait(what: unknown): void {
    this.#waits.add(what);
    for (const { from } of this.#sources) from.pause();
  }

  #goOn(what: unknown): void {
    this.#waits.delete(what);
    if (this.#waits.size === 0) for (const { from } of this.#sources) from.resume();
  }

  /** Tells the service that the process is there and silent. */
  #beat(): void {
    if (!this.#isDetached && this.#call !== undefined && this.#waits.size === 0) {
      this.#sendChunk(OutputStream.STDOUT, new Uint8Array());
    }
  }

  #onAnswer(answer: StreamMonitorResponse): void {
    const { attached, incident, verdict, summary } = answer;
    if (attached !== undefined) this.#sessionId = attached.sessionId;
    if (summary !== undefined) this.#summary = summary;
    if (incident !== undefined) {
      if (this.#incidents.size < INCIDENTS_MAX) this.#incidents.set(incident.id, incident);
      this.#tell(this.#options.onIncident, incident);
    }
    if (verdict !== undefined) this.#obey(verdict);
  }

  #obey(verdict: Verdict): void {
    const { SAFE, WARN } = VerdictKind;
    const isKill = verdict.verdict !== SAFE && verdict.verdict !== WARN;
    const incident = this.#incidents.get(verdict.incidentId);
    // A later verdict never withdraws a stronger one.
    if (incident !== undefined && (isKill || verdict.verdict > incident.verdict)) {
      incident.verdict = isKill ? VerdictKind.KILL : verdict.verdict;
      incident.reason = verdict.reason;
      incident.source = verdict.source;
    }
    if (isKill) {
      this.#verdict ??= verdict;
      this.#kill(verdict.kill?.killGroup ?? true);
    }
    this.#tell(this.#options.onVerdict, verdict);
  }

  #kill(wantsGroup: boolean): KillReach {
    const reach = killChild(this.#child, wantsGroup);
    if (this.#killReach === undefined || this.#killReach === "none") {
      this.#killReach = reach;
      if (reach !== "none") this.#shared.counts.killed += 1;
    }
    if (hasEnded(this.#child)) this.#onExit();
    return reach;
  }

  readonly #onClose = () => {
    if (this.#error !== undefined || this.#isOver) return this.#end();
    this.#detach();
  };

  /** Nobody would watch the process any longer. */
  readonly #onProgramEnd = () => {
    if (!this.#isDetached && (this.#options.onDisconnect ?? "kill") === "kill") this.#kill(true);
  };

  /** What has left the group of a killed process may hold its pipes open; it is not waited for without end. */
  readonly #onExit = () => {
    if (this.#killReach === undefined || this.#killTimer !== undefined || this.#isOver) return;
    this.#killTimer = setTimeout(() => (this.#error === undefined ? this.#detach() : this.#end()), AFTER_KILL_MS);
  };

  /** The process could not be started or signalled. */
  readonly #onError = (error: Error) => {
    if (this.#child.pid !== undefined) return;
    this.#error ??= new PortcullisError(`the process could not be started: ${error.message}`, { cause: error });
    this.#call?.cancel();
    this.#end();
  };

  #detach(): void {
    if (this.#isDetached) return;
    this.#isDetached = true;
    clearInterval(this.#heartbeat);
    if (this.#call !== undefined && !this.#isOver) this.#sendDetach();
  }

  #sendDetach(): void {
    const { exitCode, signalCode } = this.#child;
    const number = signalCode === null ? undefined : constants.signals[signalCode];
    const code = exitCode ?? (number === undefined ? undefined : 128 + number);
    this.#call!.write(StreamMonitorRequest.fromPartial({ detach: code === undefined ? {} : { exitCode: code } }));
    this.#call!.end();
    const summaryMs = this.#options.summaryMs ?? SUMMARY_MS;
    // The call ends with CANCELLED, which counts as cut off.
    this.#summaryTimer = setTimeout(() => this.#call?.cancel(), summaryMs);
    // The output still has to go somewhere.
    this.#goOn(this.#call);
  }

  /** The stream has ended, with a summary or without. */
  #onEnd(error: PortcullisError | undefined): void {
    if (this.#isOver) return;
    if (this.#summary !== undefined && this.#isDetached) return this.#end();
    const cutOff = new PortcullisError(
      `StreamMonitor at ${this.#target}: the service ended the session without a word.`,
    );
    this.#lose(error ?? cutOff);
  }

  /** Nobody watches any longer. */
  #lose(error: PortcullisError): void {
    if (this.#isOver || this.#error !== undefined) return;
    this.#error = error;
    clearInterval(this.#heartbeat);
    this.#shared.counts.monitorsLost += 1;
    const wasDetached = this.#isDetached;
    if (!wasDetached && (this.#options.onDisconnect ?? "kill") !== "continue") this.#kill(true);
    this.#tell(this.#options.onLost, error);
    this.#call = undefined;
    // The process must be able to write on, or to end.
    this.#waits.clear();
    for (const { bytes } of this.#early.splice(0)) this.#miss(bytes.length);
    for (const { from } of this.#sources) from.resume();
    if (wasDetached) this.#end();
  }

  #miss(bytes: number): void {
    this.#unwatchedBytes += bytes;
    this.#shared.counts.unwatchedBytes += bytes;
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#isDetached = true;
    clearInterval(this.#heartbeat);
    clearTimeout(this.#summaryTimer);
    clearTimeout(this.#killTimer);
    watched.delete(this.#onProgramEnd);
    if (watched.size === 0) process.off("exit", endWatched);
    this.#child.off("close", this.#onClose);
    this.#child.off("exit", this.#onExit);
    this.#child.off("error", this.#onError);
    // One that was detached from still writes: it goes on being read, and passed through.
    for (const { from, to, listen } of this.#sources) {
      if (to === undefined) from.off("data", listen);
      from.resume();
      // What has left the group of a killed process may hold the pipe; it is no reason for this program to go on.
      if (this.#killReach !== undefined && "unref" in from) (from as Socket).unref();
    }
    this.#finish({
      sessionId: this.#sessionId,
      incidents: this.getIncidents(),
      summary: this.#summary,
      killed: this.#killReach !== undefined && this.#killReach !== "none",
      killReach: this.#killReach ?? "none",
      verdict: this.#verdict,
      error: this.#error,
      unwatchedBytes: this.#unwatchedBytes,
      exitCode: this.#child.exitCode,
      signal: this.#child.signalCode,
    });
  }

  /** Calls a function of the application, which must not be able to stop the watching. */
  #tell<T>(listener: ((value: T) => void) | undefined, value: T): void {
    try {
      const answer: unknown = listener?.(value);
      if (answer instanceof Promise) answer.catch(warn);
    } catch (error) {
      warn(error);
    }
  }
}

function warn(error: unknown): void {
  const text = error instanceof Error ? error.message : String(error);
  process.emitWarning(`a function given to attach failed: ${text}`, { type: "PortcullisListener" });
}

function ignore(): void {}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

function check(child: ChildProcess, options: AttachOptions): void {
  const mode: unknown = options.onDisconnect;
  if (mode !== undefined && mode !== "kill" && mode !== "continue") {
    throw new ConfigurationError(`\`onDisconnect\` is ${JSON.stringify(mode)}; give "kill" or "continue".`);
  }
  for (const name of ["stdout", "stderr"] as const) {
    const from = child?.[name];
    if (from === null || from === undefined) {
      throw new ConfigurationError(
        `the process has no ${name} to read; spawn it with stdio: ["ignore", "pipe", "pipe"] (or "inherit" for input only).`,
      );
    }
    if (from.readableEncoding !== null) {
      throw new ConfigurationError(`${name} of the process has an encoding set; the monitor needs the raw bytes.`);
    }
    if (from.readableDidRead) {
      throw new ConfigurationError(
        `${name} of the process was read before; attach right after spawn, so that no byte is missed.`,
      );
    }
  }
}
