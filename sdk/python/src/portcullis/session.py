"""A session of a watched process: what was said, what it means, and how it ended. Reads and kills nothing itself."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Mapping
from typing import IO, Any, Literal, Union

from typing_extensions import TypedDict

from portcullis.errors import ConfigurationError, PortcullisError
from portcullis.options import ContextLike
from portcullis.v1 import context_pb2, monitor_pb2
from portcullis.v1 import policy_decision_service_pb2 as pdp

_LOG = logging.getLogger("portcullis")

#: What the process was asked to do: a message of the contract, its fields, or just the goal as text.
WorkLike = Union[context_pb2.WorkContext, Mapping[str, object], str]

#: Where output is passed on to: a function that takes bytes, or a file. A text file gets its bytes underneath.
Sink = Union[Callable[[bytes], object], IO[Any]]

#: Bytes read at once.
READ_BYTES = 32 * 1024
#: Chunks on their way at once; past that the process waits.
CHUNKS_MAX = 64
#: Seconds of silence after which an empty chunk tells the server that we are still there.
SILENCE_S = 60.0
#: Seconds that output may still take to end once the process was killed; a stranger may hold on to its pipe.
DRAIN_S = 5.0

_STRENGTH = {
    monitor_pb2.VERDICT_KIND_UNSPECIFIED: 0,
    monitor_pb2.VERDICT_KIND_SAFE: 1,
    monitor_pb2.VERDICT_KIND_WARN: 2,
    monitor_pb2.VERDICT_KIND_KILL: 3,
}


class WatchSettings(TypedDict, total=False):
    """The settings of `attach`; see `WatchOptions`."""

    session_id: str
    policy: str | None
    context: ContextLike | None
    stdout: Sink | None
    stderr: Sink | None
    on_disconnect: Literal["kill", "continue"]
    on_incident: Callable[[monitor_pb2.Incident], object] | None
    on_verdict: Callable[[monitor_pb2.Verdict], object] | None
    timeout: float | None


@dataclasses.dataclass(frozen=True)
class WatchOptions:
    """How a process is watched."""

    #: Id of the session, kept with every incident. Empty: the server makes one.
    session_id: str = ""
    #: Another policy than the client's.
    policy: str | None = None
    #: Said on top of the client's context.
    context: ContextLike | None = None
    #: Where standard output is passed on to. None: it is watched and dropped.
    stdout: Sink | None = None
    #: Where standard error is passed on to.
    stderr: Sink | None = None
    #: What becomes of the process when the session is cut off, refused or never begins: `kill`, or `continue`
    #: unwatched. Either is counted in `stats` and logged.
    on_disconnect: Literal["kill", "continue"] = "kill"
    #: Told of each incident. What it raises is logged and stops nothing.
    on_incident: Callable[[monitor_pb2.Incident], object] | None = None
    #: Told of each verdict, after it was carried out.
    on_verdict: Callable[[monitor_pb2.Verdict], object] | None = None
    #: Seconds the session may last. None: `timeouts.session_s`.
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.on_disconnect not in ("kill", "continue"):
            raise ConfigurationError(f"`on_disconnect` is {self.on_disconnect!r}; it is 'kill' or 'continue'")


@dataclasses.dataclass(frozen=True)
class WatchResult:
    """How a watched process ended."""

    #: Exit code as Python gives it: negative is the signal. None while it still runs, after `detach`.
    exit_code: int | None
    #: Whether we killed it, and why: `verdict`, or `disconnect` when nobody could watch it any longer.
    killed_by: Literal["verdict", "disconnect"] | None
    #: The verdict that killed it.
    verdict: monitor_pb2.Verdict | None
    #: What happened, as the server sums it up. None when the session was cut off.
    summary: pdp.Summary | None
    #: Every incident, oldest first.
    incidents: list[monitor_pb2.Incident]
    #: Why the session was cut off. None when it was not.
    error: PortcullisError | None
    #: Output streams that are no pipe of ours, so nobody watched them.
    unwatched: tuple[str, ...]

    @property
    def killed(self) -> bool:
        """Whether we killed it."""
        return self.killed_by is not None


def work_context(work: WorkLike | None) -> context_pb2.WorkContext | None:
    """A work context as a message of the contract."""
    if work is None or isinstance(work, context_pb2.WorkContext):
        return work
    fields: dict[str, Any] = {"goal": work} if isinstance(work, str) else dict(work)
    known = context_pb2.WorkContext.DESCRIPTOR.fields_by_name
    for name in fields:
        if name not in known:
            raise ConfigurationError(f"`work_context` has no field {name!r}; it has {', '.join(known)}")
    try:
        return context_pb2.WorkContext(**fields)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"`work_context`: {error}") from error


def sink(given: Sink | None) -> Callable[[bytes], object]:
    """What takes the bytes. One that fails is dropped with a log line: watching goes on."""
    if given is None:
        return lambda data: None
    if callable(given):
        write: Callable[[bytes], object] = given
        flush: Callable[[], object] | None = None
    else:
        file = getattr(given, "buffer", given)
        write, flush = file.write, getattr(file, "flush", None)
    broken = False

    def put(data: bytes) -> None:
        nonlocal broken
        if broken:
            return
        try:
            write(data)
            if flush is not None:
                flush()
        except Exception:
            broken = True
            _LOG.exception("output of a watched process cannot be passed on any longer; it is still watched")

    return put


def heard(callback: Callable[[Any], object] | None, told: object) -> None:
    """Calls a callback of the program, whose failure must stop no watching."""
    if callback is None:
        return
    try:
        callback(told)
    except Exception:
        _LOG.exception("a callback of a watched process failed")


def exit_number(code: int | None) -> int | None:
    """An exit code as shells and the contract write it: 128 + N when signal N ended the process."""
    return None if code is None else code if code >= 0 else 128 - code


def merged(message: pdp.StreamMonitorRequest, following: pdp.StreamMonitorRequest) -> bool:
    """Takes the output of the message that follows into this one, where that changes nothing but the number of messages.

    A process that writes byte by byte would else cost a message for each.
    """
    one, two = message.chunk, following.chunk
    joins = (
        message.HasField("chunk")
        and following.HasField("chunk")
        and one.stream == two.stream
        and len(one.data) + len(two.data) <= READ_BYTES
    )
    if joins:
        one.data += two.data
    return joins


class Session:
    """What the server has said so far. Safe to read from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._incidents: dict[str, monitor_pb2.Incident] = {}
        #: The last message, if it came.
        self.summary: pdp.Summary | None = None
        #: The first verdict that says KILL.
        self.kill: monitor_pb2.Verdict | None = None

    def hear(self, message: pdp.StreamMonitorResponse) -> bool:
        """Takes a message in; True when the process must be killed now."""
        kind = message.WhichOneof("kind")
        with self._lock:
            if kind == "incident":
                self._incidents[message.incident.id] = message.incident
            elif kind == "summary":
                self.summary = message.summary
                for incident in message.summary.incidents:
                    self._incidents[incident.id] = incident
            elif kind == "verdict":
                return self._verdict(message.verdict)
        return False

    def _verdict(self, verdict: monitor_pb2.Verdict) -> bool:
        # A verdict that is not understood is taken for the strongest.
        must_kill = verdict.verdict not in (monitor_pb2.VERDICT_KIND_SAFE, monitor_pb2.VERDICT_KIND_WARN)
        incident = self._incidents.get(verdict.incident_id)
        if incident is not None and _STRENGTH.get(verdict.verdict, 3) >= _STRENGTH.get(incident.verdict, 3):
            incident.verdict = verdict.verdict
            incident.reason = verdict.reason
            incident.source = verdict.source
        if must_kill and self.kill is None:
            self.kill = verdict
        return must_kill

    def incidents(self) -> list[monitor_pb2.Incident]:
        """Copies of all incidents so far, oldest first, with the verdicts they have now."""
        with self._lock:
            copies = []
            for incident in self._incidents.values():
                copied = monitor_pb2.Incident()
                copied.CopyFrom(incident)
                copies.append(copied)
        # Ids are UUIDv7, so they sort by time.
        return sorted(copies, key=lambda incident: incident.id)
