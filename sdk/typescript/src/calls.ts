/** Calls of the service: deadline, metadata, retries, errors. */

import {
  type CallOptions as GrpcCallOptions,
  InterceptingCall,
  type Interceptor,
  Metadata,
  type MethodDefinition,
  type ServiceError,
  status as GrpcStatus,
} from "@grpc/grpc-js";

import { Connection, type Lane } from "./connection.js";
import {
  AbortedError,
  callError,
  codeName,
  ConfigurationError,
  DeadlineError,
  detailsOf,
  isServiceError,
} from "./errors.js";
import { type CallOptions, type Deadlines, millis, type PortcullisOptions } from "./options.js";
import { type Token, tokenOf } from "./token.js";
import { activeContext, inject, isTraceKnown, traceReady } from "./trace.js";

const ATTEMPTS = 3;
const PAUSE_MS = { first: 50, longest: 2_000 };
const DEADLINES_MS: Required<Deadlines> = {
  call: 5_000,
  upload: 5 * 60_000,
  watch: 15 * 60_000,
  session: 24 * 60 * 60_000,
};

const TIMER_MS_MAX = 2 ** 31 - 1;

/** When a call has to have ended, and what may end it earlier. */
export interface Limit {
  /** Milliseconds since the epoch. */
  readonly deadline: number;
  readonly signal: AbortSignal | undefined;
}

/** What a call of the service may do. */
export interface Asked<Q, A> {
  readonly method: MethodDefinition<Q, A>;
  readonly request: Q;
  /** The call, for messages. */
  readonly what: string;
  /** Whether it changes nothing, so that it may be asked again. */
  readonly isIdempotent: boolean;
}

/** A lane with the metadata of one call over it. */
export interface Opened {
  readonly lane: Lane;
  readonly metadata: Metadata;
  readonly options: GrpcCallOptions;
}

/** Makes calls the way one client was told to. */
export class Caller {
  readonly connection: Connection;
  readonly deadlinesMs: Required<Deadlines>;
  retries = 0;
  calls = 0;
  readonly #token: Token | undefined;
  readonly #submitter: string | undefined;
  readonly #attempts: number;
  readonly #pauseMs: number;

  constructor(options: PortcullisOptions) {
    this.#token = tokenOf(options.token);
    this.#submitter = checkedSubmitter(options.submitter);
    this.#attempts = options.retry?.attempts ?? ATTEMPTS;
    if (!Number.isInteger(this.#attempts) || this.#attempts < 1) {
      throw new ConfigurationError(`\`retry.attempts\` is ${this.#attempts}; give a whole number of at least 1.`);
    }
    this.#pauseMs = millis(options.retry?.pauseMs, PAUSE_MS.first, "retry.pauseMs");
    const given = options.deadlines ?? {};
    const names = Object.keys(DEADLINES_MS) as (keyof Deadlines)[];
    const read = names.map((name) => [name, millis(given[name], DEADLINES_MS[name], `deadlines.${name}`)]);
    this.deadlinesMs = Object.fromEntries(read) as unknown as Required<Deadlines>;
    this.connection = new Connection(options);
  }

  /** The limit of a call that begins now. */
  limit(options: Pick<CallOptions, "deadlineMs" | "signal">, kind: keyof Deadlines): Limit {
    const deadline = Date.now() + millis(options.deadlineMs, this.deadlinesMs[kind], "deadlineMs");
    return { deadline, signal: options.signal };
  }

  /** A call with one request and one answer. Throws an error of this package. */
  async unary<Q, A>(asked: Asked<Q, A>, limit: Limit): Promise<A> {
    this.calls += 1;
    let isTokenRead = false;
    for (let attempt = 1; ; attempt++) {
      let name = this.connection.lanes[0]!.target.name;
      try {
        const opening = this.open(limit);
        const opened = opening instanceof Promise ? await opening : opening;
        name = opened.lane.target.name;
        return await once(asked, opened, limit.signal);
      } catch (error) {
        if (limit.signal?.aborted) throw aborted(asked.what, limit.signal);
        if (!isServiceError(error) || !asked.isIdempotent) throw callError(error, asked.what, name);
        if (error.code === GrpcStatus.UNAUTHENTICATED && !isTokenRead && this.#token?.refused() === true) {
          // It may have been renewed since it was read.
          isTokenRead = true;
          this.retries += 1;
          continue;
        }
        const pauseMs = this.pauseAfter(error, attempt);
        if (pauseMs === undefined || Date.now() + pauseMs >= limit.deadline) throw callError(error, asked.what, name);
        this.retries += 1;
        await sleep(pauseMs, limit.signal).catch(() => undefined);
        if (limit.signal?.aborted) throw aborted(asked.what, limit.signal);
      }
    }
  }

  /** How long to wait before asking again, in milliseconds; undefined when the error is not to be asked again. */
  pauseAfter(error: ServiceError, attempt: number): number | undefined {
    if (error.code !== GrpcStatus.UNAVAILABLE || attempt >= this.#attempts) return undefined;
    const { retryAfterMs } = detailsOf(error);
    if (retryAfterMs !== undefined) return retryAfterMs;
    const longest = Math.min(this.#pauseMs * 2 ** (attempt - 1), PAUSE_MS.longest);
    return longest * (0.5 + Math.random() / 2);
  }

  /** What a call needs, at once where all of it is at hand: a lane, metadata, options. */
  open(limit: Limit): Opened | Promise<Opened> {
    // Read before anything is waited for, as it belongs to the caller's place in the program.
    if (!isTraceKnown())
      return within(
        traceReady.then(() => this.open(limit)),
        limit,
        "reading @opentelemetry/api",
      );
    const context = activeContext();
    const made = (lane: Lane, token: string | undefined): Opened => {
      const metadata = new Metadata();
      if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
      if (this.#submitter !== undefined) metadata.set("portcullis-submitter", this.#submitter);
      inject(context, metadata);
      return { lane, metadata, options: { deadline: limit.deadline } };
    };
    const lane = this.connection.pick();
    const token = this.#token?.current();
    if (!(lane instanceof Promise) && !(token instanceof Promise)) return made(lane, token);
    const both = Promise.all([lane, token]).then(([picked, read]) => made(picked, read));
    return within(both, limit, "connecting");
  }

  /** Adds metadata and a deadline to the calls of a generated stub. */
  readonly interceptor: Interceptor = (options, nextCall) => {
    const { requestStream, responseStream } = options.method_definition;
    const kind = requestStream || responseStream ? "session" : "call";
    const deadline = options.deadline ?? Date.now() + this.deadlinesMs[kind];
    this.calls += 1;
    const call = new InterceptingCall(nextCall({ ...options, deadline }), {
      start: (metadata, listener, next) => {
        const limit = { deadline: Number(deadline), signal: undefined };
        Promise.resolve()
          .then(() => this.open(limit))
          .then(
            ({ metadata: own }) => {
              // What the caller has set itself stands.
              for (const [key, value] of Object.entries(own.getMap())) {
                if (metadata.get(key).length === 0) metadata.set(key, value);
              }
              next(metadata, listener);
            },
            (error: Error) => call.cancelWithStatus(GrpcStatus.UNAVAILABLE, error.message),
          );
      },
    });
    return call;
  };
}

function once<Q, A>(
  { method, request, what }: Asked<Q, A>,
  opened: Opened,
  signal: AbortSignal | undefined,
): Promise<A> {
  if (signal?.aborted) return Promise.reject(aborted(what, signal));
  const { path, requestSerialize, responseDeserialize } = method;
  return new Promise<A>((resolve, reject) => {
    const { client } = opened.lane;
    const told = (error: ServiceError | null, answer?: A) => {
      if (signal !== undefined) signal.removeEventListener("abort", cancel);
      if (error === null) resolve(answer as A);
      else reject(error);
    };
    const call = client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      opened.metadata,
      opened.options,
      told,
    );
    const cancel = () => call.cancel();
    signal?.addEventListener("abort", cancel, { once: true });
  });
}

/** The error of a call that its caller ended. */
export function aborted(what: string, signal: AbortSignal): AbortedError {
  return new AbortedError(`${what} was ended by the caller's signal`, { cause: signal.reason });
}

/** Waits, but not past the limit. Leaves no timer behind. */
async function within<T>(promise: Promise<T>, limit: Limit, what: string): Promise<T> {
  const left = new AbortController();
  const { signal } = limit;
  const isOver = sleep(Math.max(0, limit.deadline - Date.now()), signal, left.signal).then(() => {
    const details = { reason: "", metadata: {}, violations: [], retryAfterMs: undefined };
    const code = GrpcStatus.DEADLINE_EXCEEDED;
    throw new DeadlineError(`${codeName(code)}: no time was left while ${what}. Raise the deadline.`, code, details);
  });
  try {
    return await Promise.race([promise, isOver]);
  } finally {
    left.abort();
    isOver.catch(() => undefined);
  }
}

/** Resolves later. Rejects as soon as one of the signals is aborted. */
export function sleep(milliseconds: number, ...signals: (AbortSignal | undefined)[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = (error?: unknown) => {
      clearTimeout(timer);
      for (const signal of signals) signal?.removeEventListener("abort", abort);
      if (error === undefined) resolve();
      else reject(error as Error);
    };
    const abort = () => done(new AbortedError("the wait was ended by a signal"));
    // A longer timer would fire at once.
    const timer = setTimeout(done, Math.min(milliseconds, TIMER_MS_MAX));
    for (const signal of signals) {
      if (signal?.aborted) return abort();
      signal?.addEventListener("abort", abort, { once: true });
    }
  });
}

function checkedSubmitter(submitter: string | undefined): string | undefined {
  if (submitter === undefined) return undefined;
  if (typeof submitter !== "string" || !/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(submitter)) {
    throw new ConfigurationError("`submitter` travels in a header: give one or more printable ASCII characters.");
  }
  return submitter;
}
