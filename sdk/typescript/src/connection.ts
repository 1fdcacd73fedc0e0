/**
 * The connections of a client: one channel for each address, and which of them the next call takes.
 *
 * A channel of its own for each address has certificates checked against the name in that address. Within one channel,
 * gRPC itself takes turns over all machines that a name resolves to.
 */

import { setTimeout as pause } from "node:timers/promises";
import {
  Channel,
  type ChannelCredentials,
  type ChannelOptions,
  Client,
  connectivityState as State,
  credentials,
} from "@grpc/grpc-js";

import { ConfigurationError } from "./errors.js";
import { pemOf, type PortcullisOptions, type Target, targetsOf, type TlsOptions, tlsOf } from "./options.js";
import { VERSION } from "./version.js";

/** Answers hold redacted messages and findings beside what was sent, so they may be larger than a request. */
const RESPONSE_BYTES_MAX = 64 * 1024 * 1024;
const KEEPALIVE_MS = 30_000;
const KEEPALIVE_TIMEOUT_MS = 10_000;
/** A service that restarts is found again soon. */
const RECONNECT_MS = { first: 100, last: 5_000 };
/** How often connections that are being made are looked at. */
const LOOK_MS = 5;

/** One address and the channel to it. */
export interface Lane {
  readonly target: Target;
  readonly channel: Channel;
  readonly credentials: ChannelCredentials;
  /** Makes calls over the channel. */
  readonly client: Client;
}

/** All lanes of a client. */
export class Connection {
  readonly lanes: readonly Lane[];
  #next = 0;
  #isClosed = false;

  constructor(options: PortcullisOptions) {
    const targets = targetsOf(options.address);
    const tls = tlsOf(options.tls, targets);
    const away = targets.find((target) => !target.isLocal);
    if (
      options.token !== undefined &&
      tls === undefined &&
      away !== undefined &&
      options.allowPlainTextToken !== true
    ) {
      throw new ConfigurationError(
        `the token would go to ${away.name} in plain text; set \`tls\`, or \`allowPlainTextToken\` where something else encrypts.`,
      );
    }
    const channelCredentials = credentialsOf(tls);
    const channelOptions = channelOptionsOf(options, tls, away === undefined);
    this.lanes = targets.map((target) => {
      const channel = new Channel(target.uri, channelCredentials, channelOptions);
      const client = new Client(target.uri, channelCredentials, { channelOverride: channel });
      return { target, channel, credentials: channelCredentials, client };
    });
  }

  /** The lane of the next call: the next one in turn that is connected. Waits for a connection where none is. */
  pick(): Lane | Promise<Lane> {
    if (this.#isClosed) throw new ConfigurationError("the client is closed; make another one.");
    const [only] = this.lanes;
    if (this.lanes.length === 1) return only!;
    let ready: Lane | undefined;
    const first = this.#next;
    for (let step = 0; step < this.lanes.length; step++) {
      const at = (first + step) % this.lanes.length;
      const lane = this.lanes[at]!;
      // Asked of all, as one that is idle is to connect before its turn comes.
      if (lane.channel.getConnectivityState(true) === State.READY && ready === undefined) {
        ready = lane;
        this.#next = (at + 1) % this.lanes.length;
      }
    }
    return ready ?? this.#connect();
  }

  /** The lane of something that lasts longer than a call: the next one in turn, connected or not. */
  take(): Lane {
    this.#next = (this.#next + 1) % this.lanes.length;
    return this.lanes[this.#next]!;
  }

  close(): void {
    this.#isClosed = true;
    for (const { client } of this.lanes) client.close();
  }

  /** The first lane that connects, or any once all have failed: its call then says why. */
  async #connect(): Promise<Lane> {
    const failed = new Set<Lane>();
    while (!this.#isClosed && failed.size < this.lanes.length) {
      for (const lane of this.lanes) {
        const state = lane.channel.getConnectivityState(true);
        if (state === State.READY) return lane;
        if (state === State.TRANSIENT_FAILURE) failed.add(lane);
      }
      if (failed.size < this.lanes.length) await pause(LOOK_MS);
    }
    return this.take();
  }
}

function credentialsOf(tls: TlsOptions | undefined): ChannelCredentials {
  if (tls === undefined) return credentials.createInsecure();
  try {
    return credentials.createSsl(pemOf(tls.ca, "ca"), pemOf(tls.key, "key"), pemOf(tls.cert, "cert"));
  } catch (error) {
    if (error instanceof ConfigurationError) throw error;
    const why = (error as Error).message;
    throw new ConfigurationError(`the certificates of \`tls\` cannot be used: ${why}`, { cause: error });
  }
}

function channelOptionsOf(options: PortcullisOptions, tls: TlsOptions | undefined, isLocal: boolean): ChannelOptions {
  const keepaliveMs = options.keepaliveMs ?? KEEPALIVE_MS;
  if (!Number.isFinite(keepaliveMs) || keepaliveMs < 0) {
    throw new ConfigurationError(`\`keepaliveMs\` is ${keepaliveMs}; give milliseconds, or 0 for none.`);
  }
  return {
    "grpc.primary_user_agent": `portcullis-sdk-typescript/${VERSION}`,
    "grpc.service_config": JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
    // The settings above are ours: none are to be fetched from the DNS.
    "grpc.service_config_disable_resolution": 1,
    // Which calls are asked again is decided here, call by call.
    "grpc.enable_retries": 0,
    "grpc.initial_reconnect_backoff_ms": RECONNECT_MS.first,
    "grpc.max_reconnect_backoff_ms": RECONNECT_MS.last,
    "grpc.max_receive_message_length": RESPONSE_BYTES_MAX,
    ...(keepaliveMs === 0
      ? {}
      : {
          "grpc.keepalive_time_ms": keepaliveMs,
          "grpc.keepalive_timeout_ms": Math.min(keepaliveMs, KEEPALIVE_TIMEOUT_MS),
        }),
    // A proxy for the internet cannot reach this machine's own ports.
    ...(isLocal ? { "grpc.enable_http_proxy": 0 } : {}),
    ...(tls?.serverName === undefined
      ? {}
      : { "grpc.ssl_target_name_override": tls.serverName, "grpc.default_authority": tls.serverName }),
  };
}
