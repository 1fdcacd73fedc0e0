"""What both clients have in common: settings, metadata, requests, and what stands in for a missing answer."""

from __future__ import annotations

import inspect
import logging
import os
import platform
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import grpc

from portcullis import options
from portcullis.decision import Phase
from portcullis.errors import ConfigurationError, ServiceError, Unavailable, from_rpc
from portcullis.messages import MessagesLike, conversation
from portcullis.options import ContextLike, Endpoint, FailOpen, OnUnavailable, Retry, Timeouts, Tls, Token
from portcullis.stats import Stats
from portcullis.telemetry import Pairs, trace_metadata
from portcullis.v1 import context_pb2, decision_pb2, interceptors_pb2, messages_pb2
from portcullis.v1 import policy_decision_service_pb2 as pdp

_LOG = logging.getLogger("portcullis")

# Python strings are counted in code points, so `text[span.start:span.end]` is what was found.
UTF32 = decision_pb2.OFFSET_ENCODING_UTF32


def local_environment() -> context_pb2.ExecutionContext:
    """Where a tool runs that runs in this process: its working directory, home and operating system."""
    system = platform.system()
    return context_pb2.ExecutionContext(
        cwd=os.getcwd(),
        home=str(Path.home()),
        os={"Darwin": "macos", "Windows": "windows"}.get(system, "linux"),
    )


def call_context(context: ContextLike | None) -> context_pb2.CallContext | None:
    """A context as a message of the contract."""
    if context is None or isinstance(context, context_pb2.CallContext):
        return context
    known = context_pb2.CallContext.DESCRIPTOR.fields_by_name
    for name in context:
        if name not in known:
            raise ConfigurationError(f"`context` has no field {name!r}; it has {', '.join(known)}")
    fields: dict[str, Any] = {name: value for name, value in context.items() if value is not None}
    try:
        return context_pb2.CallContext(**fields)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"`context`: {error}") from error


class Core:
    """The settings of a client and everything that needs no connection. Use `Client` or `AsyncClient`."""

    def __init__(
        self,
        target: str | Sequence[str] = options.DEFAULT_TARGET,
        *,
        tls: Tls | bool | None = None,
        token: Token | None = None,
        submitter: str = "",
        policy: str = "",
        context: ContextLike | None = None,
        timeouts: Timeouts | None = None,
        retry: Retry | None = None,
        on_unavailable: OnUnavailable = "closed",
        on_fail_open: Callable[[FailOpen], object] | None = None,
        keepalive_s: float = 30.0,
        message_bytes_max: int = 64 * 1024 * 1024,
    ) -> None:
        if on_unavailable not in ("closed", "open"):
            raise ConfigurationError(f"`on_unavailable` is {on_unavailable!r}; it is 'closed' or 'open'")
        if keepalive_s < 1:
            raise ConfigurationError(f"`keepalive_s` is {keepalive_s}; servers hang up on pings below 1 s")
        self._endpoint: Endpoint = options.endpoint(target, tls, token is not None, keepalive_s, message_bytes_max)
        self._timeouts = timeouts or Timeouts()
        self._retry = retry or Retry()
        self._on_unavailable = on_unavailable
        self._on_fail_open = on_fail_open
        self._policy = policy
        self._context = call_context(context)
        self._fixed: Pairs = (("portcullis-submitter", _header("submitter", submitter)),) if submitter else ()
        self._submitter = submitter
        self._token = _token_source(token)
        if isinstance(token, str):
            # One that never changes is checked and written once.
            self._fixed += (("authorization", _bearer(token)),)
            self._token = None
        self._closed = False
        #: What happened so far; see `Stats`.
        self.stats = Stats()
        self._connect()

    def _connect(self) -> None:
        """Makes the channel. gRPC connects when the first call is made."""
        raise NotImplementedError

    def __repr__(self) -> str:
        # Without the token.
        return f"{type(self).__name__}({self._endpoint.target!r})"

    def _metadata_with(self, token: str) -> Pairs:
        return (*self._fixed, *trace_metadata(), ("authorization", _bearer(token)))

    def _merged(self, context: ContextLike | None) -> context_pb2.CallContext | None:
        """The context of the client with what the call says on top."""
        if context is None:
            return self._context
        stated = call_context(context)
        if self._context is None or stated is None:
            return stated
        merged = context_pb2.CallContext()
        merged.CopyFrom(self._context)
        merged.MergeFrom(stated)
        return merged

    def _check_request(
        self,
        messages: MessagesLike,
        policy: str | None,
        context: ContextLike | None,
        redact: bool,
        reveal_matches: bool,
        plugins: Sequence[str],
        direction: messages_pb2.Direction.ValueType,
        allow_list: Sequence[str],
        countries: Sequence[str],
    ) -> pdp.CheckMessagesRequest:
        try:
            return pdp.CheckMessagesRequest(
                messages=conversation(messages),
                policy=self._policy if policy is None else policy,
                context=self._merged(context),
                offset_encoding=UTF32,
                redact=redact,
                reveal_matches=reveal_matches,
                plugins=plugins,
                direction=direction,
                allow_list=allow_list,
                countries=countries,
            )
        except UnicodeEncodeError as error:
            raise _no_text("messages", error) from error

    def _tool_request(
        self,
        tool_name: str,
        phase: Phase,
        args_json: str,
        result_json: str,
        is_error: bool,
        tool_call_id: str,
        metadata_json: str,
        policy: str | None,
        context: ContextLike | None,
        environment: context_pb2.ExecutionContext | None,
        verbose: bool,
        dry_run: bool,
    ) -> pdp.InterceptToolRequest:
        before, after = interceptors_pb2.TOOL_PHASE_BEFORE, interceptors_pb2.TOOL_PHASE_AFTER
        try:
            return pdp.InterceptToolRequest(
                phase=after if phase == Phase.AFTER else before,
                tool_name=tool_name,
                tool_call_id=tool_call_id,
                context=self._merged(context),
                policy=self._policy if policy is None else policy,
                args_json=args_json,
                result_json=result_json,
                is_error=is_error,
                metadata_json=metadata_json,
                environment=environment,
                verbose=verbose,
                dry_run=dry_run,
                offset_encoding=UTF32,
            )
        except UnicodeEncodeError as error:
            raise _no_text("tool call", error) from error

    def _failed(self, error: grpc.RpcError, rpc: str) -> ServiceError:
        return from_rpc(error, rpc, self._endpoint.target)

    def _lets_pass(self, failure: ServiceError, rpc: str) -> bool:
        """Whether a question without an answer is let pass; counts and reports it either way."""
        if not isinstance(failure, Unavailable) or self._on_unavailable != "open":
            self.stats.count("failed_closed")
            return False
        self.stats.count("failed_open")
        _LOG.warning("%s was not judged and is let pass (on_unavailable='open'): %s", rpc, failure)
        if self._on_fail_open is not None:
            self._on_fail_open(FailOpen(rpc, failure))
        return True

    def _unchecked(self, request: pdp.CheckMessagesRequest, failure: ServiceError) -> pdp.CheckMessagesResponse:
        if request.redact:
            # Text that was to be redacted and was not is never handed out as if it had been.
            self.stats.count("failed_closed")
            raise failure
        if not self._lets_pass(failure, "CheckMessages"):
            raise failure
        return pdp.CheckMessagesResponse(decision=decision_pb2.DECISION_ALLOW, unjudged=[_unjudged(failure)])

    def _unjudged_tool(self, request: pdp.InterceptToolRequest, failure: ServiceError) -> pdp.InterceptToolResponse:
        before = request.phase == interceptors_pb2.TOOL_PHASE_BEFORE
        failure.phase = Phase.BEFORE if before else Phase.AFTER
        if not self._lets_pass(failure, "InterceptTool"):
            if not before:
                failure.args = (f"{failure}; the tool has run, and its result is withheld",)
            raise failure
        return pdp.InterceptToolResponse(
            decision=decision_pb2.DECISION_ALLOW,
            tool_name=request.tool_name,
            args_json=(request.args_json or "{}") if before else "",
            result_json="" if before else request.result_json,
            metadata_json=request.metadata_json or "{}",
            unjudged=[_unjudged(failure)],
        )

    def _unjudged_message(
        self, request: pdp.InterceptMessageRequest, failure: ServiceError
    ) -> pdp.InterceptMessageResponse:
        if not self._lets_pass(failure, "InterceptMessage"):
            raise failure
        return pdp.InterceptMessageResponse(
            decision=decision_pb2.DECISION_ALLOW,
            message=request.message,
            metadata_json=request.metadata_json or "{}",
            unjudged=[_unjudged(failure)],
        )

    def _unjudged_params(
        self, request: pdp.InterceptParamsRequest, failure: ServiceError
    ) -> pdp.InterceptParamsResponse:
        if not self._lets_pass(failure, "InterceptParams"):
            raise failure
        return pdp.InterceptParamsResponse(
            decision=decision_pb2.DECISION_ALLOW,
            params=request.params,
            metadata_json=request.metadata_json or "{}",
            unjudged=[_unjudged(failure)],
        )

    def _check_open(self) -> None:
        if self._closed:
            raise ConfigurationError("the client is closed; make a new one")


def deadline_of(timeout: float | None, default: float) -> float:
    """The moment, by the monotonic clock, by which a call must have ended."""
    seconds = default if timeout is None else timeout
    if not 0 < seconds < float("inf"):
        raise ConfigurationError(f"`timeout` is {seconds}; every call has a deadline, so it must be above 0 and finite")
    return time.monotonic() + seconds


def _unjudged(failure: ServiceError) -> decision_pb2.Unjudged:
    late = failure.code is grpc.StatusCode.DEADLINE_EXCEEDED
    return decision_pb2.Unjudged(
        plugin="portcullis-sdk", reason="timeout" if late else "unavailable", detail=str(failure), failed_open=True
    )


def _no_text(what: str, error: UnicodeEncodeError) -> ConfigurationError:
    return ConfigurationError(
        f"the {what} cannot be sent, and so not judged: it holds a lone surrogate ({error.reason})"
    )


def _token_source(token: Token | None) -> Callable[[], str | Awaitable[str]] | None:
    if token is None or isinstance(token, str):
        return None
    if callable(token):
        return token
    return TokenFile(token).read


class TokenFile:
    """A token in a file, read again whenever the file is another: tokens of Kubernetes are exchanged in place."""

    def __init__(self, path: os.PathLike[str]) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._token = ""

    def read(self) -> str:
        """The token as the file holds it now."""
        try:
            stat = os.stat(self._path)
            seen = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
            if seen != self._seen:
                with open(self._path, encoding="ascii") as file:
                    self._token = file.read().strip()
                self._seen = seen
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"`token`: {os.fspath(self._path)} cannot be read: {error}") from error
        return self._token


def _bearer(token: str) -> str:
    return f"Bearer {_header('token', token)}"


def _header(field: str, value: str) -> str:
    """A value that may stand in metadata. The value itself is never shown."""
    if not isinstance(value, str) or inspect.isawaitable(value):
        raise ConfigurationError(f"`{field}` is {type(value).__name__} where text is needed")
    stripped = value.strip()
    if not stripped or not stripped.isascii() or not stripped.isprintable():
        raise ConfigurationError(f"`{field}` must be printable ASCII text and not empty")
    return stripped
