/** What a client can be told, and the checks of it. */

import { readFileSync } from "node:fs";

import { ConfigurationError, type PortcullisError } from "./errors.js";

/** Where the service is when nobody says: what `portcullis serve` listens on by default. */
export const DEFAULT_ADDRESS = "127.0.0.1:50051";

/** The port of an address that names none. */
const DEFAULT_PORT = 50051;

/** Certificates for TLS. */
export interface TlsOptions {
  /** Certificates of the authorities to trust: PEM text or bytes, or the path of a PEM file. Unset: those of Node.js. */
  readonly ca?: string | Uint8Array;
  /** The client's own certificate for mutual TLS, with its chain; needs `key`. PEM text or bytes, or a path. */
  readonly cert?: string | Uint8Array;
  /** The key of `cert`. PEM text or bytes, or a path. */
  readonly key?: string | Uint8Array;
  /** The name that the server's certificate must carry, where that is not the name in the address. */
  readonly serverName?: string;
}

/** A bearer token, or how to get one. */
export type TokenSource =
  | string
  /** Asked before each call; keep what is slow to get. */
  | (() => string | Promise<string>)
  /** A file that holds the token, read again every `refreshMs` (5,000 by default) and after a refusal. */
  | { readonly file: string; readonly refreshMs?: number };

/** Who asks; sent with every call that takes a context. A call may override each member. */
export interface ContextOptions {
  /** Id of the agent. Matchers of interceptors look at it. */
  readonly agentId?: string;
  /** Key of the agent's session, for records. */
  readonly sessionKey?: string;
  /** Tenant; leave it unset where the service authenticates its callers. */
  readonly tenant?: string;
  /** The caller's own id of this one request. */
  readonly requestId?: string;
  /** Free labels for the audit record; those of a call are added to those of the client. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** Deadlines in milliseconds. Every call has one. */
export interface Deadlines {
  /** Decisions and look-ups, all attempts together. Default 5,000. */
  readonly call?: number;
  /** The upload and inline checks of a bundle. Default 300,000 (5 minutes). */
  readonly upload?: number;
  /** Following a submission. Default 900,000 (15 minutes). */
  readonly watch?: number;
  /** One monitor session. Default 86,400,000 (24 hours). */
  readonly session?: number;
}

/** How calls are asked again that change nothing and found nobody (UNAVAILABLE). */
export interface RetryOptions {
  /** Attempts in all. 1 never asks again. Default 3. */
  readonly attempts?: number;
  /** The first pause in milliseconds; each further one doubles, up to 2,000, and is drawn at random below that. Default 50. */
  readonly pauseMs?: number;
}

/** One decision that was not made, and went on because the client is set to `onUnavailable: "open"`. */
export interface FailOpenEvent {
  /** Which call. */
  readonly call: "checkMessages" | "guardTool";
  /** The tool, for `guardTool`. */
  readonly toolName?: string;
  /** Why nobody decided. */
  readonly error: PortcullisError;
}

/** How to reach the service, as whom, and what to do when it is away. */
export interface PortcullisOptions {
  /**
   * Where the service is: `host:port`, `http://host:port` (plain text), `https://host:port` (TLS), `dns:///name:port`, or
   * a list. Calls take turns over all addresses of a list and over all that a name resolves to. Default: the environment
   * variable `PORTCULLIS_ADDRESS` (separated by commas), else `127.0.0.1:50051`.
   */
  readonly address?: string | readonly string[];
  /** TLS: `true` for the authorities of Node.js, or certificates. Default: none, unless the address says `https`. */
  readonly tls?: boolean | TlsOptions;
  /** Sent as `authorization: Bearer …`. Refused without TLS to another machine, unless `allowPlainTextToken` is set. */
  readonly token?: TokenSource;
  /** Sends the token without TLS to another machine, as where a mesh encrypts. Default false. */
  readonly allowPlainTextToken?: boolean;
  /** Who uploads and looks at submissions, where callers are not authenticated (metadata `portcullis-submitter`). */
  readonly submitter?: string;
  /** Name of the policy to ask for. Default: the service's default policy. */
  readonly policy?: string;
  /** Who asks, in every call. */
  readonly context?: ContextOptions;
  /**
   * What becomes of `checkMessages` and guarded tools when nobody answers (UNAVAILABLE, DEADLINE_EXCEEDED). `closed`, the
   * default, throws UnavailableError. `open` lets them go on, unjudged: each time is counted in `stats.failedOpen` and
   * told to `onFailOpen`. Any other error always throws, and so do a redaction that was asked for, uploads, and monitors,
   * which have their own settings.
   */
  readonly onUnavailable?: "closed" | "open";
  /** Told of each fail-open. Default: a Node.js warning, at most one a minute. */
  readonly onFailOpen?: (event: FailOpenEvent) => void;
  /** Deadlines. */
  readonly deadlines?: Deadlines;
  /** Retries. */
  readonly retry?: RetryOptions;
  /**
   * Milliseconds between keepalive pings while a call is open; an answer is waited for as long, at most 10,000. Default
   * 30,000. 0 sends none.
   */
  readonly keepaliveMs?: number;
}

/** What any single call can be told. */
export interface CallOptions {
  /** Overrides the client's deadline for this call, in milliseconds. */
  readonly deadlineMs?: number;
  /** Ends the call early; it then throws AbortedError. */
  readonly signal?: AbortSignal;
  /** Overrides the client's policy. */
  readonly policy?: string;
  /** Added to the client's context. */
  readonly context?: ContextOptions;
}

/** One address, read. */
export interface Target {
  /** As gRPC reads it: `dns:///host:port`, `ipv4:…`, `unix:…`. */
  readonly uri: string;
  /** As it was given, for messages. */
  readonly name: string;
  /** Whether it says itself that TLS is to be used. */
  readonly isTls: boolean | undefined;
  /** Whether it does not leave this machine. */
  readonly isLocal: boolean;
}

/** The addresses a client is to use. At least one. */
export function targetsOf(address: PortcullisOptions["address"]): Target[] {
  const given = address ?? (process.env["PORTCULLIS_ADDRESS"] || DEFAULT_ADDRESS);
  const list = typeof given === "string" ? given.split(",") : [...given];
  const names = list.map((one) => (typeof one === "string" ? one.trim() : one));
  if (names.length === 0) throw new ConfigurationError("`address` is an empty list; name at least one `host:port`.");
  return names.map(readTarget);
}

function readTarget(name: string): Target {
  const wrong = (why: string) =>
    new ConfigurationError(
      `the address ${JSON.stringify(name)} ${why}; write \`host:port\`, such as \`${DEFAULT_ADDRESS}\`.`,
    );
  if (typeof name !== "string" || name === "") throw wrong("is empty");
  if (name.startsWith("unix:")) return { uri: name, name, isTls: undefined, isLocal: true };
  const [, scheme = "", rest = ""] = /^(?:(https?|dns|ipv4|ipv6):(?:\/{2,3})?)?(.*)$/.exec(name)!;
  const authority = rest.replace(/\/$/, "");
  if (/[/?#@\s]/.test(authority) || authority === "") throw wrong("is not one that can be called");
  const parts = /^(\[[0-9a-fA-F:.]+(?:%\w+)?\]|[^:[\]]+)(?::(\d+))?$/.exec(authority);
  if (parts === null) throw wrong("has no host and port that can be told apart (an IPv6 address stands in [brackets])");
  const host = parts[1]!;
  const port = Number(parts[2] ?? (scheme === "https" ? 443 : DEFAULT_PORT));
  if (!(port >= 1 && port <= 65535)) throw wrong("has no port from 1 to 65535");
  const isLocal = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i.test(host);
  const isTls = scheme === "https" ? true : scheme === "http" ? false : undefined;
  return { uri: `dns:///${host}:${port}`, name, isTls, isLocal };
}

/** TLS settings, or undefined for plain text. All addresses of one client speak alike. */
export function tlsOf(tls: PortcullisOptions["tls"], targets: readonly Target[]): TlsOptions | undefined {
  const said = new Set(targets.map((target) => target.isTls).filter((isTls) => isTls !== undefined));
  if (said.size > 1) throw new ConfigurationError("`address` mixes http:// and https://; give all addresses alike.");
  const [isTls] = said;
  if (tls !== undefined && tls !== false && isTls === false) {
    throw new ConfigurationError("`tls` is set, but `address` says http://; write https:// or the bare host:port.");
  }
  if (tls === false && isTls === true) {
    throw new ConfigurationError("`tls` is false, but `address` says https://; leave one of them out.");
  }
  const options = typeof tls === "object" ? tls : tls === true || isTls === true ? {} : undefined;
  if (options !== undefined && (options.cert === undefined) !== (options.key === undefined)) {
    throw new ConfigurationError("`tls.cert` and `tls.key` go together; give both, or neither.");
  }
  return options;
}

/** The bytes of a PEM that was given as text, bytes or path. */
export function pemOf(given: string | Uint8Array | undefined, what: string): Buffer | null {
  if (given === undefined) return null;
  if (typeof given !== "string") return Buffer.from(given);
  if (given.includes("-----BEGIN")) return Buffer.from(given);
  let bytes: Buffer;
  try {
    bytes = readFileSync(given);
  } catch (error) {
    throw new ConfigurationError(`\`tls.${what}\` cannot be read: ${(error as Error).message}`, { cause: error });
  }
  if (!bytes.includes("-----BEGIN")) throw new ConfigurationError(`\`tls.${what}\`: the file ${given} is no PEM.`);
  return bytes;
}

/** A deadline or pause, checked. */
export function millis(value: number | undefined, otherwise: number, what: string): number {
  const given = value ?? otherwise;
  if (!Number.isFinite(given) || given <= 0) {
    throw new ConfigurationError(`\`${what}\` is ${String(given)}; give milliseconds above 0.`);
  }
  return given;
}

/** The names that an object of options may have, each once, as the compiler checks. */
export type Names<T> = { readonly [name in keyof Required<T>]: true };

export const CALL_NAMES: Names<CallOptions> = { deadlineMs: true, signal: true, policy: true, context: true };
export const CONTEXT_NAMES: Names<ContextOptions> = {
  agentId: true,
  sessionKey: true,
  tenant: true,
  requestId: true,
  labels: true,
};
const DEADLINE_NAMES: Names<Deadlines> = { call: true, upload: true, watch: true, session: true };
const RETRY_NAMES: Names<RetryOptions> = { attempts: true, pauseMs: true };
const TLS_NAMES: Names<TlsOptions> = { ca: true, cert: true, key: true, serverName: true };
const CLIENT_NAMES: Names<PortcullisOptions> = {
  address: true,
  tls: true,
  token: true,
  allowPlainTextToken: true,
  submitter: true,
  policy: true,
  context: true,
  onUnavailable: true,
  onFailOpen: true,
  deadlines: true,
  retry: true,
  keepaliveMs: true,
};

/** Refuses misspelt names: one that is not read could leave a policy, a matcher or a check out. */
export function checkNames<T extends object>(given: T | undefined, names: Names<T>, what: string): void {
  if (given === undefined) return;
  if (typeof given !== "object" || given === null) throw new ConfigurationError(`${what} is no object.`);
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(names, name)) {
      throw new ConfigurationError(
        `${what} has \`${name}\`, which is not known; known are ${Object.keys(names).join(", ")}.`,
      );
    }
  }
}

/** Checks what the parts of a client do not check themselves. */
export function checkOptions(options: PortcullisOptions): void {
  checkNames(options, CLIENT_NAMES, "the options of the client");
  checkNames(options.context, CONTEXT_NAMES, "`context`");
  checkNames(options.deadlines, DEADLINE_NAMES, "`deadlines`");
  checkNames(options.retry, RETRY_NAMES, "`retry`");
  if (typeof options.tls === "object") checkNames(options.tls, TLS_NAMES, "`tls`");
  const mode: unknown = options.onUnavailable;
  if (mode !== undefined && mode !== "closed" && mode !== "open") {
    throw new ConfigurationError(`\`onUnavailable\` is ${JSON.stringify(mode)}; give "closed" or "open".`);
  }
}
