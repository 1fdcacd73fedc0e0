/** What can go wrong, each as a class of its own whose text says what to do. */

import { status as GrpcStatus, type ServiceError } from "@grpc/grpc-js";

import {
  BadRequest,
  ErrorInfo,
  PreconditionFailure,
  QuotaFailure,
  RetryInfo,
} from "./generated/errors/google/rpc/error_details.js";
import { Decision, type Finding, type Unjudged } from "./generated/api/portcullis/v1/decision.js";
import { Status } from "./generated/api/google/rpc/status.js";

/** The base of every error of this package. */
export class PortcullisError extends Error {
  override name = "PortcullisError";
}

/** The client was set up in a way that cannot work, or that would be unsafe. Thrown before anything is sent. */
export class ConfigurationError extends PortcullisError {
  override name = "ConfigurationError";
}

/**
 * A value that the guard cannot see as it is, such as a lone surrogate, a BigInt, a cycle or a function. Nothing was run or
 * handed on.
 */
export class UnserializableError extends PortcullisError {
  override name = "UnserializableError";

  /** Where: `$` is the value itself, `$.files[2]` a member of it, `messages[0].text` a text of a conversation. */
  readonly path: string;

  constructor(path: string, message: string) {
    super(message);
    this.path = path;
  }
}

/** The caller's AbortSignal ended the call. */
export class AbortedError extends PortcullisError {
  override name = "AbortedError";
}

/** A folder or archive that cannot be read or packed. Nothing was sent. */
export class BundleError extends PortcullisError {
  override name = "BundleError";
}

/** A tool failed, and the guard changed what it says about that. Without a change, the tool's own error is thrown. */
export class ToolError extends PortcullisError {
  override name = "ToolError";

  /** The tool's error as the guard lets it through: `name`, `message` and whatever else it carried, as JSON. */
  readonly details: unknown;

  constructor(message: string, details: unknown) {
    super(message);
    this.details = details;
  }
}

/** One wrong field of a request. */
export interface FieldViolation {
  /** Its path in the request, spelled as in the contract: `messages[1].role`. */
  readonly field: string;
  /** What is wrong with it. */
  readonly description: string;
}

/** What the `google.rpc` details of an error say. */
export interface ErrorDetails {
  /** The cause as a constant in capitals, such as `REQUEST_TOO_LARGE`. Empty when the service gave none. */
  readonly reason: string;
  /** Figures and names beside it, such as `limit_bytes`. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Which fields were wrong. */
  readonly violations: readonly FieldViolation[];
  /** How long to wait before asking again, in milliseconds. Undefined when the service did not say. */
  readonly retryAfterMs: number | undefined;
}

/** The service answered a call with an error: it could not decide. Never a verdict. */
export class ServiceCallError extends PortcullisError {
  override name = "ServiceCallError";

  /** The code of gRPC, such as 3 for INVALID_ARGUMENT. */
  readonly grpcCode: number;
  /** Its name, such as `INVALID_ARGUMENT`. */
  readonly grpcCodeName: string;
  /** The details that came with it. */
  readonly details: ErrorDetails;

  constructor(message: string, grpcCode: number, details: ErrorDetails, cause?: unknown) {
    super(message, { cause });
    this.grpcCode = grpcCode;
    this.grpcCodeName = codeName(grpcCode);
    this.details = details;
  }
}

/** Nobody answered, or not in time. The one error that `onUnavailable: "open"` turns into a pass. */
export class UnavailableError extends ServiceCallError {
  override name = "UnavailableError";
}

/** No answer came before the deadline of the call. */
export class DeadlineError extends UnavailableError {
  override name = "DeadlineError";
}

/** The token, the certificate or the role of the caller was refused. */
export class AuthenticationError extends ServiceCallError {
  override name = "AuthenticationError";
}

/** The service refused the request as malformed; `details.violations` names the fields. */
export class InvalidRequestError extends ServiceCallError {
  override name = "InvalidRequestError";
}

/** The request is over a limit or a quota. */
export class LimitError extends ServiceCallError {
  override name = "LimitError";
}

/** What was asked for does not exist, or belongs to somebody else. */
export class NotFoundError extends ServiceCallError {
  override name = "NotFoundError";
}

/** The present state does not allow this, or somebody else changed it first. */
export class ConflictError extends ServiceCallError {
  override name = "ConflictError";
}

/**
 * Where something was stopped: `before` and `after` a tool, on the way into (`input`) or out of a model (`output`), in the
 * `description` of a tool, or in the `answer` of an MCP server to something else than a call of a tool.
 */
export type BlockedPhase = "before" | "after" | "input" | "output" | "description" | "answer";

/** What a refusal carries. */
export interface Refusal {
  /** BLOCK, or ASK that nobody approved. */
  readonly decision: Decision;
  /** Where it happened. */
  readonly phase: BlockedPhase;
  /** The tool, as the caller names it; with the phase `answer` the method, such as `readResource`. Empty where there is none. */
  readonly toolName: string;
  /** Why, fit to be shown. */
  readonly blockReason: string;
  /** What was found. Texts in it are masked. */
  readonly findings: readonly Finding[];
  /** What could not be judged. */
  readonly unjudged: readonly Unjudged[];
  /** Id of the decision, as in the audit record. */
  readonly decisionId: string;
  /** What to give the model in place of a result: the JSON text of `{"status":"blocked",…}`. */
  readonly blockedResultJson: string;
}

/** The policy said BLOCK, or ASK and nobody approved. */
export class BlockedError extends PortcullisError implements Refusal {
  override name = "BlockedError";

  readonly decision: Decision;
  readonly phase: BlockedPhase;
  readonly toolName: string;
  readonly blockReason: string;
  readonly findings: readonly Finding[];
  readonly unjudged: readonly Unjudged[];
  readonly decisionId: string;
  readonly blockedResultJson: string;

  constructor(refusal: Refusal) {
    super(refusalText(refusal));
    this.decision = refusal.decision;
    this.phase = refusal.phase;
    this.toolName = refusal.toolName;
    this.blockReason = refusal.blockReason;
    this.findings = refusal.findings;
    this.unjudged = refusal.unjudged;
    this.decisionId = refusal.decisionId;
    this.blockedResultJson = refusal.blockedResultJson;
  }
}

const SUBJECTS: Record<BlockedPhase, string> = {
  before: "the call",
  after: "the result",
  input: "the input",
  output: "the output",
  description: "the description",
  answer: "the answer",
};

function refusalText(refusal: Refusal): string {
  const subject = SUBJECTS[refusal.phase];
  const what = refusal.phase === "answer" ? "" : "tool ";
  const of = refusal.toolName === "" ? "" : ` of ${what}\`${refusal.toolName}\``;
  const why = refusal.blockReason === "" ? "the policy gave no reason" : refusal.blockReason;
  const asked =
    refusal.decision === Decision.ASK ? " A person must approve, and nobody did; `onAsk` is how to ask." : "";
  return `Portcullis refused ${subject}${of}: ${why}${asked} (decision ${refusal.decisionId || "unknown"})`;
}

/** The name of a code of gRPC. */
export function codeName(code: number): string {
  return GrpcStatus[code] ?? `code ${code}`;
}

/** Whether this is an error of @grpc/grpc-js. */
export function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && typeof (error as Partial<ServiceError>).code === "number" && "metadata" in error;
}

/** The `google.rpc` details of an error; nothing where they are missing or not readable. */
export function detailsOf(error: ServiceError): ErrorDetails {
  let reason = "";
  let metadata: Record<string, string> = {};
  let retryAfterMs: number | undefined;
  const violations: FieldViolation[] = [];
  const binary = error.metadata?.get("grpc-status-details-bin")[0];
  if (binary instanceof Uint8Array) {
    try {
      for (const { typeUrl, value } of Status.decode(binary).details) {
        switch (typeUrl.slice(typeUrl.lastIndexOf("/") + 1)) {
          case "google.rpc.ErrorInfo":
            ({ reason, metadata } = ErrorInfo.decode(value));
            break;
          case "google.rpc.RetryInfo": {
            const delay = RetryInfo.decode(value).retryDelay;
            if (delay !== undefined) retryAfterMs = Math.max(0, delay.seconds * 1000 + delay.nanos / 1e6);
            break;
          }
          case "google.rpc.BadRequest":
            violations.push(...BadRequest.decode(value).fieldViolations);
            break;
          case "google.rpc.QuotaFailure":
            for (const one of QuotaFailure.decode(value).violations) {
              violations.push({ field: one.subject, description: one.description });
            }
            break;
          case "google.rpc.PreconditionFailure":
            for (const one of PreconditionFailure.decode(value).violations) {
              reason ||= one.type;
              violations.push({ field: one.subject, description: one.description });
            }
            break;
          default:
        }
      }
    } catch {
      // Details only help; the code and the message of the error stand without them.
    }
  }
  return { reason, metadata, violations, retryAfterMs };
}

/** What gRPC says, without the names of the layers that it came through. */
function plainDetails(details: string): string {
  return details
    .replace(/^round_robin: /, "")
    .replace(/(?:No connection established\. Last error: )+/, "no connection: ")
    .replace(/\s*Resolution note: ?\.?\s*$/, "")
    .replace(/\.$/, "");
}

/** The error of a call as one of the classes above. `target` is the address, `what` the call, for a person. */
export function callError(error: unknown, what: string, target: string): PortcullisError {
  if (error instanceof PortcullisError) return error;
  if (!isServiceError(error)) {
    return new PortcullisError(`${what}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
  const details = detailsOf(error);
  const why = plainDetails(error.details);
  const said = why === "" ? codeName(error.code) : `${codeName(error.code)}: ${why}`;
  const fields = details.violations.map((one) => `${one.field}: ${one.description}`).join("; ");
  const make = <T>(
    of: new (message: string, code: number, details: ErrorDetails, cause: unknown) => T,
    advice: string,
  ): T => new of(`${what} at ${target}: ${said}. ${advice}`, error.code, details, error);
  switch (error.code) {
    case GrpcStatus.UNAVAILABLE:
      return make(
        UnavailableError,
        "Check that `portcullis serve` runs there, that this is its gRPC port and not that of HTTP, and the TLS settings.",
      );
    case GrpcStatus.DEADLINE_EXCEEDED:
      return make(DeadlineError, "Raise the deadline of the call, or find out why the service is slow or cut off.");
    case GrpcStatus.UNAUTHENTICATED:
    case GrpcStatus.PERMISSION_DENIED:
      return make(
        AuthenticationError,
        "Check the token or certificate, and which roles, tenant and policy it may use.",
      );
    case GrpcStatus.INVALID_ARGUMENT:
    case GrpcStatus.OUT_OF_RANGE:
      return make(InvalidRequestError, fields === "" ? "Correct the request." : `Correct ${fields}.`);
    case GrpcStatus.RESOURCE_EXHAUSTED:
      return make(LimitError, fields === "" ? "Send less, or later." : `${fields}.`);
    case GrpcStatus.NOT_FOUND:
      return make(NotFoundError, "Check the id, and as whom the client speaks.");
    case GrpcStatus.FAILED_PRECONDITION:
    case GrpcStatus.ABORTED:
    case GrpcStatus.ALREADY_EXISTS:
      return make(ConflictError, fields === "" ? "Look at the present state first." : `${fields}.`);
    case GrpcStatus.CANCELLED:
      return make(ServiceCallError, "The call was cancelled.");
    case GrpcStatus.UNIMPLEMENTED:
      return make(ServiceCallError, "The service is older than this client, or is no Portcullis.");
    default:
      return make(ServiceCallError, "The log of the service says more.");
  }
}
