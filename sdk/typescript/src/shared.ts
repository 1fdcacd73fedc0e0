/** What the parts of one client have in common. */

import { CallContext } from "./generated/api/portcullis/v1/context.js";
import { Caller } from "./calls.js";
import { type PortcullisError, ServiceCallError, UnavailableError } from "./errors.js";
import {
  type CallOptions,
  checkNames,
  checkOptions,
  CONTEXT_NAMES,
  type ContextOptions,
  type FailOpenEvent,
  type PortcullisOptions,
} from "./options.js";

/** What has happened in a client since it was made. */
export interface Stats {
  /** Calls of the service; attempts beyond the first are not counted here. */
  readonly calls: number;
  /** Attempts beyond the first. */
  readonly retries: number;
  /** Decisions that went on although nobody had judged, as `onUnavailable: "open"` says. */
  readonly failedOpen: number;
  /** Decisions that were refused because nobody had judged. */
  readonly failedClosed: number;
  /** Warnings of guarded tools. */
  readonly warned: number;
  /** Questions of guarded tools to a person, asked or refused for want of one. */
  readonly asked: number;
  /** Refusals: BLOCK, and ASK without approval. */
  readonly blocked: number;
  /** Monitors that lost the service. */
  readonly monitorsLost: number;
  /** Processes that were killed, by verdict or because nobody watched any longer. */
  readonly killed: number;
  /** Bytes of output that nobody looked at, after `onDisconnect: "continue"`. */
  readonly unwatchedBytes: number;
}

/** The counts that this package raises itself. */
export type Counts = { -readonly [name in Exclude<keyof Stats, "calls" | "retries">]: number };

const WARNING_EVERY_MS = 60_000;

/** Settings, connection and counts of one client. */
export class Shared {
  readonly options: PortcullisOptions;
  readonly caller: Caller;
  readonly counts: Counts = {
    failedOpen: 0,
    failedClosed: 0,
    warned: 0,
    asked: 0,
    blocked: 0,
    monitorsLost: 0,
    killed: 0,
    unwatchedBytes: 0,
  };
  #warnedAt = -Infinity;

  constructor(options: PortcullisOptions) {
    checkOptions(options);
    this.options = options;
    this.caller = new Caller(options);
  }

  /** The policy of a call. */
  policy(call: CallOptions): string {
    return call.policy ?? this.options.policy ?? "";
  }

  /** Who asks: what the call says, over what the client says. Undefined when neither says anything. */
  context(call: { readonly context?: ContextOptions }): CallContext | undefined {
    const [all, one] = [this.options.context, call.context];
    checkNames(one, CONTEXT_NAMES, "`context`");
    if (all === undefined && one === undefined) return undefined;
    const labels = { ...all?.labels, ...one?.labels };
    const { agentId = "", sessionKey = "", tenant = "", requestId = "" } = { ...all, ...one };
    return { agentId, sessionKey, tenant, requestId, labels };
  }

  /** Returns when a decision that nobody made may be taken for a pass; throws the error otherwise. */
  mayGoOn(error: unknown, call: Omit<FailOpenEvent, "error">): void {
    if (!(error instanceof UnavailableError) || this.options.onUnavailable !== "open") throw this.refused(error);
    this.counts.failedOpen += 1;
    const event: FailOpenEvent = { ...call, error };
    if (this.options.onFailOpen !== undefined) this.options.onFailOpen(event);
    else this.#warn(error);
  }

  /** The same error, counted where it means that nobody decided and nothing goes on. */
  refused(error: unknown): unknown {
    if (error instanceof ServiceCallError) this.counts.failedClosed += 1;
    return error;
  }

  #warn(error: PortcullisError): void {
    const now = performance.now();
    if (now - this.#warnedAt < WARNING_EVERY_MS) return;
    this.#warnedAt = now;
    const count = this.counts.failedOpen;
    process.emitWarning(
      `${count} decisions went on without a verdict (onUnavailable: "open"); the last: ${error.message}`,
      {
        type: "PortcullisFailOpen",
      },
    );
  }
}
