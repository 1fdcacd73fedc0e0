/** The errors that users of the package see. */

export {
  AbortedError,
  AuthenticationError,
  BlockedError,
  type BlockedPhase,
  BundleError,
  ConfigurationError,
  ConflictError,
  DeadlineError,
  type ErrorDetails,
  type FieldViolation,
  InvalidRequestError,
  LimitError,
  NotFoundError,
  PortcullisError,
  type Refusal,
  ServiceCallError,
  ToolError,
  UnavailableError,
  UnserializableError,
} from "./errors.js";
