/** Client of Portcullis, the policy decision point for AI agents. */

export {
  type CheckOptions,
  type CheckResult,
  type Guarded,
  type GuardedOrBlocked,
  Portcullis,
  type StubConstructor,
} from "./client.js";
export type { BundleProgress, ReviewBundleOptions } from "./bundle.js";
export * from "./errors.public.js";
export type { AskRequest, BlockedResult, GuardOptions, GuardToolOptions, Notice } from "./guard.js";
export type { JsonValue } from "./json.js";
export type { MessageInput, PartInput, ToolCallInput } from "./messages.js";
export type { AttachOptions, Monitor, MonitorResult, Work } from "./monitor.js";
export type {
  CallOptions,
  ContextOptions,
  Deadlines,
  FailOpenEvent,
  PortcullisOptions,
  RetryOptions,
  TlsOptions,
  TokenSource,
} from "./options.js";
export type { KillReach } from "./process_group.js";
export type { Stats } from "./shared.js";
export type { SubmissionUpdate, WatchSubmissionOptions } from "./submissions.js";
export { VERSION } from "./version.js";

export {
  BundleKind,
  CheckStatus,
  HoldReason,
  SubmissionStatus,
  Visibility,
} from "./generated/api/portcullis/v1/bundles.js";
export {
  Decision,
  type Finding,
  RiskLevel,
  Severity,
  type Span,
  type Unjudged,
} from "./generated/api/portcullis/v1/decision.js";
export {
  type Incident,
  OutputStream,
  type Verdict,
  VerdictKind,
  VerdictSource,
} from "./generated/api/portcullis/v1/monitor.js";
export type { ReviewBundleResponse, Summary } from "./generated/api/portcullis/v1/policy_decision_service.js";
export type { Submission } from "./generated/api/portcullis/v1/submission_service.js";
