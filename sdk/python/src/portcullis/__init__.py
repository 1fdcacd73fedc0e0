"""Portcullis from Python: ask before an agent acts, guard its tools, watch its processes, review what it installs.

`Client` is for threads, `AsyncClient` for asyncio. Messages and stubs of the contract are in `portcullis.v1`; answers
are messages of it.
"""

from portcullis.aio import AsyncClient
from portcullis.aio_monitor import AsyncWatch
from portcullis.client import Client
from portcullis.core import local_environment
from portcullis.decision import Decision, Phase
from portcullis.errors import (
    ApprovalRefused,
    Blocked,
    ConfigurationError,
    CouldNotJudge,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidRequest,
    MessagesBlocked,
    NotFound,
    PermissionDenied,
    PortcullisError,
    ResourceExhausted,
    ServiceError,
    ToolFailed,
    Unauthenticated,
    Unavailable,
)
from portcullis.monitor import Watch
from portcullis.options import FailOpen, Retry, Timeouts, Tls
from portcullis.session import WatchResult
from portcullis.stats import Stats
from portcullis.tool import Interception
from portcullis.v1.context_pb2 import CallContext, ExecutionContext, WorkContext
from portcullis.v1.decision_pb2 import Finding, Span
from portcullis.v1.messages_pb2 import Message
from portcullis.v1.monitor_pb2 import Incident, Verdict

__all__ = [
    "ApprovalRefused",
    "AsyncClient",
    "AsyncWatch",
    "Blocked",
    "CallContext",
    "Client",
    "ConfigurationError",
    "CouldNotJudge",
    "DeadlineExceeded",
    "Decision",
    "ExecutionContext",
    "FailOpen",
    "FailedPrecondition",
    "Finding",
    "Incident",
    "Interception",
    "InvalidRequest",
    "Message",
    "MessagesBlocked",
    "NotFound",
    "PermissionDenied",
    "Phase",
    "PortcullisError",
    "ResourceExhausted",
    "Retry",
    "ServiceError",
    "Span",
    "Stats",
    "Timeouts",
    "Tls",
    "ToolFailed",
    "Unauthenticated",
    "Unavailable",
    "Verdict",
    "Watch",
    "WatchResult",
    "WorkContext",
    "local_environment",
]
