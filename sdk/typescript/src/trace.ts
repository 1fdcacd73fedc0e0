/** Context propagation: where @opentelemetry/api is installed, each call carries the span that is active around it. */

import type { Metadata } from "@grpc/grpc-js";
import type { Context, ContextAPI, PropagationAPI, TextMapSetter } from "@opentelemetry/api";

interface Api {
  readonly context: ContextAPI;
  readonly propagation: PropagationAPI;
}

let api: Api | undefined;
let isKnown = false;

/** Settles once it is known whether @opentelemetry/api is there. */
export const traceReady: Promise<void> = import("@opentelemetry/api").then(
  (loaded) => {
    api = loaded;
    isKnown = true;
  },
  () => {
    // An optional peer dependency: without it there is nothing to propagate.
    isKnown = true;
  },
);

/** Whether {@link traceReady} has settled; calls need not wait then. */
export function isTraceKnown(): boolean {
  return isKnown;
}

/** The context that is active now. Undefined without @opentelemetry/api. */
export function activeContext(): Context | undefined {
  return api?.context.active();
}

const setter: TextMapSetter<Metadata> = {
  set(metadata, key, value) {
    metadata.set(key, value);
  },
};

/** Writes `traceparent`, and whatever else the application's propagator writes, into the metadata of a call. */
export function inject(context: Context | undefined, metadata: Metadata): void {
  if (context === undefined) return;
  try {
    api?.propagation.inject(context, metadata, setter);
  } catch {
    // A propagator that writes what no header carries must not keep a decision from being made.
  }
}
