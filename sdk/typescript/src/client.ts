/** The client: every question an agent asks before it acts, as a method. */

import type { ChildProcess } from "node:child_process";
import type { ChannelCredentials, Client, ClientOptions } from "@grpc/grpc-js";

import { Decision, OffsetEncoding, RiskLevel } from "./generated/api/portcullis/v1/decision.js";
import { Direction } from "./generated/api/portcullis/v1/messages.js";
import {
  CheckMessagesRequest,
  type CheckMessagesResponse,
  InterceptMessageRequest,
  type InterceptMessageResponse,
  InterceptParamsRequest,
  type InterceptParamsResponse,
  InterceptToolRequest,
  type InterceptToolResponse,
  PolicyDecisionServiceService as Service,
  type ReviewBundleResponse,
} from "./generated/api/portcullis/v1/policy_decision_service.js";
import { ConfigurationError } from "./errors.js";
import { type BundleProgress, reviewBundle, type ReviewBundleOptions } from "./bundle.js";
import { type BlockedResult, guardTool, type GuardToolOptions } from "./guard.js";
import { wellFormed } from "./json.js";
import { type MessageInput, messagesOf } from "./messages.js";
import { type AttachOptions, Monitor, type Work } from "./monitor.js";
import { CALL_NAMES, type CallOptions, checkNames, type Names, type PortcullisOptions } from "./options.js";
import { Shared, type Stats } from "./shared.js";
import { type SubmissionUpdate, watchSubmission, type WatchSubmissionOptions } from "./submissions.js";

/** How a conversation is judged. */
export interface CheckOptions extends CallOptions {
  /** Answers with the messages redacted. Without a service it throws, also with `onUnavailable: "open"`. */
  readonly redact?: boolean;
  /** Shows what was matched, where the policy allows it. */
  readonly revealMatches?: boolean;
  /** Plugins to run beside those the policy requires. */
  readonly plugins?: readonly string[];
  /** `input`, the default: into the model. `output`: out of it. */
  readonly direction?: "input" | "output";
  /** Personal data to excuse, where the policy lets callers do so. */
  readonly allowList?: readonly string[];
  /** Countries whose personal data is looked for, by their ISO codes, where the policy lets callers narrow them. */
  readonly countries?: readonly string[];
}

/** The verdict about a conversation. Spans count in UTF-16 units, as JavaScript strings do. */
export interface CheckResult extends CheckMessagesResponse {
  /** True for ALLOW and WARN alone. */
  readonly allowed: boolean;
  /** True when nobody judged it and the client is set to go on; `unjudged` then says why, and there is no decision id. */
  readonly failedOpen: boolean;
}

/** A request without what the client fills in. */
type Request<T> = Partial<Omit<T, "policy" | "context" | "offsetEncoding">>;

/** A constructor of generated stubs, such as `PolicyServiceClient` of `@portcullis/sdk/v1`. */
export interface StubConstructor<T extends Client> {
  new (address: string, credentials: ChannelCredentials, options?: Partial<ClientOptions>): T;
}

const CHECK_NAMES: Names<CheckOptions> = {
  ...CALL_NAMES,
  redact: true,
  revealMatches: true,
  plugins: true,
  direction: true,
  allowList: true,
  countries: true,
};

type AnyFunction = (...args: never[]) => unknown;

/** A guarded function: the same arguments, the same result, always as a promise. */
export type Guarded<F extends AnyFunction> = (...args: Parameters<F>) => Promise<Awaited<ReturnType<F>>>;

/** A guarded function that answers a refusal with a value. */
export type GuardedOrBlocked<F extends AnyFunction> = (
  ...args: Parameters<F>
) => Promise<Awaited<ReturnType<F>> | BlockedResult>;

/**
 * One for both formats of the package, so that an adapter takes a client of either.
 *
 * @internal
 */
export const SHARED: unique symbol = Symbol.for("@portcullis/sdk shared");

/** A client of Portcullis. Make one for the whole program; it connects with its first call. */
export class Portcullis {
  readonly #shared: Shared;

  /** @throws {ConfigurationError} for options that cannot work */
  constructor(options: PortcullisOptions = {}) {
    this.#shared = new Shared(options);
  }

  /**
   * Judges the messages of a conversation. A string is one message of a user.
   *
   * A verdict is an answer, also BLOCK: look at `allowed`. Errors mean that there is no verdict.
   */
  async checkMessages(messages: string | readonly MessageInput[], options: CheckOptions = {}): Promise<CheckResult> {
    const shared = this.#shared;
    checkNames(options, CHECK_NAMES, "the options of checkMessages");
    const { redact = false, revealMatches = false, plugins = [], direction, allowList = [], countries = [] } = options;
    const request: CheckMessagesRequest = {
      messages: messagesOf(messages),
      policy: shared.policy(options),
      context: shared.context(options),
      offsetEncoding: OffsetEncoding.UTF16,
      redact,
      revealMatches,
      plugins: [...plugins],
      direction: direction === "output" ? Direction.OUTPUT : Direction.INPUT,
      allowList: [...allowList],
      countries: [...countries],
    };
    const asked = { method: Service.checkMessages, request, what: "CheckMessages", isIdempotent: true };
    try {
      const answer = await shared.caller.unary(asked, shared.caller.limit(options, "call"));
      const allowed = answer.decision === Decision.ALLOW || answer.decision === Decision.WARN;
      return Object.assign(answer, { allowed, failedOpen: false });
    } catch (error) {
      // Text that was to be redacted and was not is never handed out as if it had been.
      if (redact) throw shared.refused(error);
      shared.mayGoOn(error, { call: "checkMessages" });
      return unjudged((error as Error).message);
    }
  }

  /** Judges, and may change, a message before the agent sees it. Hand `metadataJson` of the answer on. */
  async interceptMessage(
    request: Request<InterceptMessageRequest>,
    options: CallOptions = {},
  ): Promise<InterceptMessageResponse> {
    const full = InterceptMessageRequest.create();
    this.#fill(full, request, options, "interceptMessage");
    const asked = { method: Service.interceptMessage, request: full, what: "InterceptMessage", isIdempotent: true };
    return this.#shared.caller.unary(asked, this.#shared.caller.limit(options, "call"));
  }

  /** Judges, and may change, which model is called and how. */
  async interceptParams(
    request: Request<InterceptParamsRequest>,
    options: CallOptions = {},
  ): Promise<InterceptParamsResponse> {
    const full = InterceptParamsRequest.create();
    this.#fill(full, request, options, "interceptParams");
    const asked = { method: Service.interceptParams, request: full, what: "InterceptParams", isIdempotent: true };
    return this.#shared.caller.unary(asked, this.#shared.caller.limit(options, "call"));
  }

  /** One check of a tool call, for callers that run the tool themselves; {@link guardTool} does both around it. */
  async interceptTool(
    request: Request<InterceptToolRequest>,
    options: CallOptions = {},
  ): Promise<InterceptToolResponse> {
    const full = InterceptToolRequest.create();
    this.#fill(full, request, options, "interceptTool");
    const asked = { method: Service.interceptTool, request: full, what: "InterceptTool", isIdempotent: true };
    return this.#shared.caller.unary(asked, this.#shared.caller.limit(options, "call"));
  }

  /**
   * A function that asks before it runs `tool`, and about the result before it answers it.
   *
   * The tool gets the arguments, and the caller the result, as the policy leaves them, made anew from the JSON that was
   * judged. What JSON does not carry is refused with UnserializableError. BLOCK, and ASK without approval, throw
   * BlockedError. An error of the tool is judged like a result, and thrown.
   */
  guardTool<F extends AnyFunction>(
    tool: F,
    options: GuardToolOptions & { readonly onBlocked: "return" },
  ): GuardedOrBlocked<F>;
  guardTool<F extends AnyFunction>(tool: F, options?: GuardToolOptions): Guarded<F>;
  guardTool<F extends AnyFunction>(tool: F, options: GuardToolOptions = {}): GuardedOrBlocked<F> {
    return guardTool(this.#shared, tool, options) as GuardedOrBlocked<F>;
  }

  /**
   * Watches the output of a child process, and kills its process group when a verdict says KILL.
   *
   * Call it right after `spawn`, with `detached: true`, so that the child leads a group of its own, and with pipes as
   * stdout and stderr.
   *
   * @throws {ConfigurationError} when its output cannot be read in full
   */
  attach(child: ChildProcess, work: Work = {}, options: AttachOptions = {}): Monitor {
    return new Monitor(this.#shared, child, work, options);
  }

  /**
   * Uploads a ZIP archive or a folder for review, and answers with what the inline checks say; follow the rest with
   * {@link watchSubmission}. Never asked again by itself, and never open.
   *
   * @throws {BundleError} when it cannot be read
   */
  reviewBundle(path: string, options: ReviewBundleOptions = {}): Promise<ReviewBundleResponse> {
    return reviewBundle(this.#shared, path, options);
  }

  /** How a submission stands, at once and after each change, until nothing more happens by itself. */
  watchSubmission(submissionId: string, options: WatchSubmissionOptions = {}): AsyncIterableIterator<SubmissionUpdate> {
    return watchSubmission(this.#shared, submissionId, options);
  }

  /**
   * A generated stub of `@portcullis/sdk/v1` over the connection of this client, with its token, deadlines and trace
   * context. The stub asks once; closing it closes this client's connection.
   */
  stub<T extends Client>(constructor: StubConstructor<T>): T {
    const { connection, interceptor } = this.#shared.caller;
    const { channel, target, credentials } = connection.take();
    return new constructor(target.uri, credentials, { channelOverride: channel, interceptors: [interceptor] });
  }

  /** What has happened since the client was made. */
  get stats(): Stats {
    const { calls, retries } = this.#shared.caller;
    return { calls, retries, ...this.#shared.counts };
  }

  /** Closes the connections. Calls under way fail. A program may also end without it. */
  close(): void {
    this.#shared.caller.connection.close();
  }

  /** @internal For the adapters. */
  get [SHARED](): Shared {
    return this.#shared;
  }

  /** Makes a request of what the caller gives and what the client knows. */
  #fill(full: object, request: object, options: CallOptions, call: string): void {
    checkNames(options, CALL_NAMES, `the options of ${call}`);
    checkNames(request, full as Names<object>, `the request of ${call}`);
    const elsewhere = ["policy", "context", "offsetEncoding"].find((name) => Object.hasOwn(request, name));
    if (elsewhere !== undefined) {
      throw new ConfigurationError(
        `the request of ${call} has \`${elsewhere}\`, which belongs into the options of the call or client.`,
      );
    }
    // What is judged stands at the top of each of these requests, as a text or as JSON text.
    for (const [name, value] of Object.entries(request)) if (typeof value === "string") wellFormed(value, name);
    const { policy, context } = { policy: this.#shared.policy(options), context: this.#shared.context(options) };
    Object.assign(full, request, { policy, context, offsetEncoding: OffsetEncoding.UTF16 });
  }
}

/** The answer that nobody gave. Never ALLOW, as nothing was judged. */
function unjudged(detail: string): CheckResult {
  return {
    decision: Decision.WARN,
    riskLevel: RiskLevel.UNSPECIFIED,
    riskScore: 0,
    findings: [],
    redactedMessages: [],
    unjudged: [{ plugin: "portcullis", reason: "unavailable", detail, failedOpen: true }],
    decisionId: "",
    policyRevision: "",
    error: undefined,
    allowed: true,
    failedOpen: true,
  };
}

export type { BundleProgress };
