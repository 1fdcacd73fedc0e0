/** Follows a submission until nothing more happens by itself. */

import type { ClientReadableStream } from "@grpc/grpc-js";

import {
  SubmissionServiceService as Service,
  SubmissionView,
  WatchSubmissionRequest,
  type Submission,
  type WatchSubmissionResponse,
} from "./generated/api/portcullis/v1/submission_service.js";
import { aborted, sleep, type Limit } from "./calls.js";
import { callError, isServiceError, PortcullisError } from "./errors.js";
import { type CallOptions, checkNames, type Names } from "./options.js";
import type { Shared } from "./shared.js";

/** How a submission stands. */
export interface SubmissionUpdate {
  readonly submission: Submission;
  /** True in the last one: nothing more will happen by itself. */
  readonly final: boolean;
}

/** How a submission is followed. */
export interface WatchSubmissionOptions extends Omit<CallOptions, "policy" | "context"> {
  /** `full`, the default: with checks, coverage, attempts and timeline. `basic`: without. */
  readonly view?: "basic" | "full";
}

const NAMES: Names<WatchSubmissionOptions> = { deadlineMs: true, signal: true, view: true };
const WHAT = "WatchSubmission";

/**
 * See `Portcullis.watchSubmission`. When the service goes away, it is asked again from where things stand then.
 */
export async function* watchSubmission(
  shared: Shared,
  submissionId: string,
  options: WatchSubmissionOptions,
): AsyncGenerator<SubmissionUpdate, void, undefined> {
  checkNames(options, NAMES, "the options of watchSubmission");
  const limit = shared.caller.limit(options, "watch");
  const view = options.view === "basic" ? SubmissionView.BASIC : SubmissionView.FULL;
  const request = WatchSubmissionRequest.create({ submissionId, view });
  for (let attempt = 1; ; attempt++) {
    try {
      for await (const answer of messages(shared, request, limit)) {
        attempt = 1;
        if (answer.submission === undefined) continue;
        yield { submission: answer.submission, final: answer.final };
        if (answer.final) return;
      }
      throw new PortcullisError(
        `${WHAT}: the service ended the stream before the submission had settled; watch it again.`,
      );
    } catch (error) {
      if (limit.signal?.aborted) throw aborted(WHAT, limit.signal);
      const cause = error instanceof PortcullisError ? error.cause : error;
      const pauseMs = isServiceError(cause) ? shared.caller.pauseAfter(cause, attempt) : undefined;
      if (pauseMs === undefined || Date.now() + pauseMs >= limit.deadline) throw error;
      shared.caller.retries += 1;
      await sleep(pauseMs, limit.signal).catch(() => undefined);
    }
  }
}

async function* messages(
  shared: Shared,
  request: WatchSubmissionRequest,
  limit: Limit,
): AsyncGenerator<WatchSubmissionResponse> {
  if (limit.signal?.aborted) throw aborted(WHAT, limit.signal);
  const { lane, metadata, options } = await shared.caller.open(limit);
  const { path, requestSerialize, responseDeserialize } = Service.watchSubmission;
  shared.caller.calls += 1;
  const call: ClientReadableStream<WatchSubmissionResponse> = lane.client.makeServerStreamRequest(
    path,
    requestSerialize,
    responseDeserialize,
    request,
    metadata,
    options,
  );
  const cancel = () => call.cancel();
  limit.signal?.addEventListener("abort", cancel, { once: true });
  try {
    for await (const message of call) yield message as WatchSubmissionResponse;
  } catch (error) {
    throw callError(error, WHAT, lane.target.name);
  } finally {
    limit.signal?.removeEventListener("abort", cancel);
    // Also when the caller leaves its loop early. Errors of a call that is over are nobody's.
    call.on("error", () => undefined);
    call.cancel();
  }
}
