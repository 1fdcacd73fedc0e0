"""What can go wrong, as exceptions that say what happened and what to do.

Everything the package raises on purpose is a `PortcullisError`. A `ServiceError` means that nothing was judged; a
`Blocked` means that something was judged and must not go on. `CouldNotJudge` errors of a guarded tool stop the call
as well: "could not judge" is never "safe".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2

from portcullis.decision import Decision, Phase

if TYPE_CHECKING:
    from portcullis.v1 import decision_pb2, policy_decision_service_pb2

# Where a gRPC server puts the google.rpc.Status of a failed call.
_STATUS_KEY = "grpc-status-details-bin"

_DETAILS: tuple[type[Message], ...] = (
    error_details_pb2.ErrorInfo,
    error_details_pb2.RetryInfo,
    error_details_pb2.BadRequest,
    error_details_pb2.PreconditionFailure,
    error_details_pb2.QuotaFailure,
    error_details_pb2.ResourceInfo,
)


class PortcullisError(Exception):
    """Anything this package raises on purpose."""


class ConfigurationError(PortcullisError, ValueError):
    """The client was told something that cannot work; the text says what to change. Nothing was sent."""


class ServiceError(PortcullisError):
    """A call ended without an answer, so nothing was judged."""

    def __init__(
        self,
        text: str,
        *,
        rpc: str = "",
        code: grpc.StatusCode = grpc.StatusCode.UNKNOWN,
        details: Sequence[Message] = (),
    ) -> None:
        super().__init__(text)
        #: Name of the call, such as `CheckMessages`.
        self.rpc = rpc
        #: The status the call ended with.
        self.code = code
        #: The google.rpc details the server sent, those of a known type. May be empty.
        self.details = tuple(details)
        #: Set by a guarded tool: the side of the call on which the service failed. In phase AFTER the tool has run.
        self.phase: Phase | None = None

    @property
    def reason(self) -> str:
        """The server's word for what happened, such as `OVERLOADED`. Empty when it sent none."""
        return next((one.reason for one in self.details if isinstance(one, error_details_pb2.ErrorInfo)), "")

    @property
    def retry_after_s(self) -> float | None:
        """Seconds after which the server wants to be asked again. None when it did not say."""
        for one in self.details:
            if isinstance(one, error_details_pb2.RetryInfo):
                pause: Duration = one.retry_delay
                return pause.seconds + pause.nanos / 1e9
        return None

    @property
    def fields(self) -> dict[str, str]:
        """The fields of the request that were refused, each with why. Empty when none was named."""
        return {
            violation.field: violation.description
            for one in self.details
            if isinstance(one, error_details_pb2.BadRequest)
            for violation in one.field_violations
        }


class Unavailable(ServiceError):
    """The service is away, overloaded or shutting down."""


class DeadlineExceeded(Unavailable):
    """No answer came in the time allowed."""


class Unauthenticated(ServiceError):
    """The service does not accept the token or certificate."""


class PermissionDenied(ServiceError):
    """The caller is known and may not do this."""


class InvalidRequest(ServiceError):
    """The request is wrong; `fields` says where."""


class NotFound(ServiceError):
    """There is no such thing, or the caller may not see it."""


class FailedPrecondition(ServiceError):
    """The present state does not allow it."""


class ResourceExhausted(ServiceError):
    """Too large, or over a quota."""


class Blocked(PortcullisError):
    """The policy does not let a tool run, or does not let its result be seen."""

    def __init__(self, text: str, response: policy_decision_service_pb2.InterceptToolResponse, phase: Phase) -> None:
        super().__init__(text)
        #: The whole answer.
        self.response = response
        #: Which side of the call was stopped. In phase AFTER the tool has run.
        self.phase = phase

    @property
    def decision(self) -> Decision:
        """BLOCK, or ASK when nobody approved."""
        return Decision.of(self.response.decision)

    @property
    def findings(self) -> Sequence[decision_pb2.Finding]:
        """Every finding; spans count code points in the JSON text that was sent."""
        return self.response.findings

    @property
    def block_reason(self) -> str:
        """Why, fit to be shown."""
        return self.response.block_reason

    @property
    def decision_id(self) -> str:
        """Id of the decision; the audit record carries the same."""
        return self.response.decision_id

    @property
    def policy_revision(self) -> str:
        """Revision of the policy it was made under."""
        return self.response.policy_revision

    @property
    def tool_name(self) -> str:
        """The normalised name of the tool."""
        return self.response.tool_name


class ApprovalRefused(Blocked):
    """A person had to approve, and nobody did."""


class MessagesBlocked(PortcullisError):
    """The policy does not let a conversation reach the model. Raised by adapters; `check_messages` answers."""

    def __init__(self, text: str, response: policy_decision_service_pb2.CheckMessagesResponse) -> None:
        super().__init__(text)
        #: The whole answer.
        self.response = response


class CouldNotJudge(PortcullisError):
    """What was handed to a guarded tool, or came from it, cannot be shown to the service, so it was stopped."""


class ToolFailed(PortcullisError):
    """A guarded tool raised, and the policy changed the text of its error; this is the changed text."""


_KINDS: dict[grpc.StatusCode, type[ServiceError]] = {
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPrecondition,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhausted,
}

_ADVICE: dict[grpc.StatusCode, str] = {
    grpc.StatusCode.UNAVAILABLE: "check that the service runs at this address and that both sides agree on TLS",
    grpc.StatusCode.DEADLINE_EXCEEDED: "check that the address can be reached, or allow more time (`timeouts`)",
    grpc.StatusCode.UNAUTHENTICATED: "check `token` or the client certificate in `tls`",
    grpc.StatusCode.PERMISSION_DENIED: "ask for a role that may do this, or leave tenant and submitter to the server",
    grpc.StatusCode.UNIMPLEMENTED: "check that the address is that of Portcullis's gRPC listener",
}


def from_rpc(error: grpc.RpcError, rpc: str, target: str) -> ServiceError:
    """The exception for a call that failed. `target` is only shown."""
    # Both flavours of grpcio raise objects with these methods; the base class has none.
    status: grpc.StatusCode = getattr(error, "code", lambda: grpc.StatusCode.UNKNOWN)()
    told: str = getattr(error, "details", lambda: "")() or ""
    metadata = getattr(error, "trailing_metadata", lambda: ())() or ()
    details = _details(metadata)
    text = f"{rpc}: {status.name} from {target}: {told or 'no details'}"
    kind = _KINDS.get(status, ServiceError)
    failure = kind(text, rpc=rpc, code=status, details=details)
    wrong = "; ".join(f"{field}: {why}" for field, why in failure.fields.items() if why not in told)
    if wrong:
        text = f"{text} ({wrong})"
    # Who answers with details is a Portcullis, which has said what is wrong.
    if not details and status in _ADVICE:
        text = f"{text}; {_ADVICE[status]}"
    failure.args = (text,)
    return failure


def _details(metadata: object) -> list[Message]:
    found: list[Message] = []
    pairs = metadata if isinstance(metadata, (tuple, list)) else tuple(metadata)  # type: ignore[arg-type]
    for pair in pairs:
        key, value = pair[0], pair[1]
        if key != _STATUS_KEY or not isinstance(value, bytes):
            continue
        try:
            status = status_pb2.Status.FromString(value)
            for packed in status.details:
                for kind in _DETAILS:
                    if packed.Is(kind.DESCRIPTOR):
                        detail = kind()
                        packed.Unpack(detail)
                        found.append(detail)
        except DecodeError:
            # What cannot be read tells nothing; the status itself still stands.
            continue
    return found
