"""The client for programs with threads."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, overload

import grpc
from typing_extensions import Unpack

from portcullis import bundle, monitor, session, tool
from portcullis import function as function_guard
from portcullis.core import UTF32, Core, deadline_of
from portcullis.decision import Phase
from portcullis.errors import ConfigurationError, ServiceError
from portcullis.messages import MessagesLike
from portcullis.options import ContextLike
from portcullis.telemetry import trace_metadata
from portcullis.v1 import context_pb2, interceptors_pb2, messages_pb2, submission_service_pb2
from portcullis.v1 import policy_decision_service_pb2 as pdp
from portcullis.v1 import policy_decision_service_pb2_grpc as pdp_grpc
from portcullis.v1 import submission_service_pb2_grpc as submissions_grpc

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Client(Core):
    """Asks Portcullis from threads. One client serves all threads of a process; close it, or use it with `with`.

    `target` is one address (`host:port`, `https://host:port`, `dns:///name:port`) or a list of them. Calls go to all
    addresses in turn, those that are down left out. Names in a list are looked up once; `dns:///` names again and
    again.

    `tls`: `True`, or a `Tls` with files. Without it calls go in plain text, and a token only to this machine.

    `token`: a bearer token as text, a path whose file is read again when it changes, or a function that gives it for
    each call. `submitter` says who uploads where callers are not authenticated.

    `policy` and `context` (`agent_id`, `session_key`, `tenant`, `request_id`, `labels`) are what calls say that say
    nothing else.

    `on_unavailable`: what becomes of a question when the service is away or late. `"closed"`, the default, raises
    `Unavailable`; `"open"` answers ALLOW with one `unjudged` entry, counts `stats.failed_open`, logs a warning and
    calls `on_fail_open`. Errors that are somebody's mistake (a wrong token, a wrong field, too large) always raise.
    """

    def _connect(self) -> None:
        where = self._endpoint
        self._channel = (
            grpc.insecure_channel(where.target, where.arguments)
            if where.credentials is None
            else grpc.secure_channel(where.target, where.credentials, where.arguments)
        )
        self._pdp = pdp_grpc.PolicyDecisionServiceStub(self._channel)
        self._submissions = submissions_grpc.SubmissionServiceStub(self._channel)

    def close(self) -> None:
        """Ends all calls under way. Processes that are still watched are treated as when the connection is lost."""
        self._closed = True
        self._channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def channel(self) -> grpc.Channel:
        """The channel, for the stubs in `portcullis.v1` that have no method here. Calls on it are made as they are."""
        return self._channel

    def check_messages(
        self,
        messages: MessagesLike,
        *,
        policy: str | None = None,
        context: ContextLike | None = None,
        redact: bool = False,
        reveal_matches: bool = False,
        plugins: Sequence[str] = (),
        direction: messages_pb2.Direction.ValueType = messages_pb2.DIRECTION_UNSPECIFIED,
        allow_list: Sequence[str] = (),
        countries: Sequence[str] = (),
        timeout: float | None = None,
    ) -> pdp.CheckMessagesResponse:
        """Judges a conversation: text of a user, one turn, or turns with `role` and `content`.

        A refusal is an answer (`decision`), not an error. Spans count code points:
        `text[f.span.start:f.span.end]` is what was found. `allow_list` excuses personal data and `countries` narrows
        whose is looked for, where the policy lets callers do so.
        """
        request = self._check_request(
            messages, policy, context, redact, reveal_matches, plugins, direction, allow_list, countries
        )
        try:
            return self._unary(self._pdp.CheckMessages, "CheckMessages", request, timeout, self._timeouts.check_s)
        except ServiceError as failure:
            return self._unchecked(request, failure)

    def intercept_tool(
        self,
        tool_name: str,
        args_json: str = "{}",
        *,
        phase: Phase = Phase.BEFORE,
        result_json: str = "",
        is_error: bool = False,
        tool_call_id: str = "",
        metadata_json: str = "",
        policy: str | None = None,
        context: ContextLike | None = None,
        environment: context_pb2.ExecutionContext | None = None,
        verbose: bool = False,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> pdp.InterceptToolResponse:
        """Judges one side of a tool call. `guard_tool` does both and minds the answers."""
        request = self._tool_request(
            tool_name, phase, args_json, result_json, is_error, tool_call_id, metadata_json, policy, context, environment,
            verbose, dry_run,
        )  # fmt: skip
        try:
            return self._unary(self._pdp.InterceptTool, "InterceptTool", request, timeout, self._timeouts.intercept_s)
        except ServiceError as failure:
            return self._unjudged_tool(request, failure)

    def intercept_message(
        self,
        message: str,
        *,
        provider: str = "",
        model: str = "",
        metadata_json: str = "",
        policy: str | None = None,
        context: ContextLike | None = None,
        verbose: bool = False,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> pdp.InterceptMessageResponse:
        """Judges, and may change, a message before the agent sees it. Hand `metadata_json` on to the next call."""
        request = pdp.InterceptMessageRequest(
            context=self._merged(context),
            policy=self._policy if policy is None else policy,
            provider=provider,
            model=model,
            message=message,
            metadata_json=metadata_json,
            verbose=verbose,
            dry_run=dry_run,
            offset_encoding=UTF32,
        )
        try:
            return self._unary(
                self._pdp.InterceptMessage, "InterceptMessage", request, timeout, self._timeouts.intercept_s
            )
        except ServiceError as failure:
            return self._unjudged_message(request, failure)

    def intercept_params(
        self,
        params: interceptors_pb2.Params | None = None,
        *,
        message: str = "",
        metadata_json: str = "",
        policy: str | None = None,
        context: ContextLike | None = None,
        verbose: bool = False,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> pdp.InterceptParamsResponse:
        """Judges, and may change, which model is called and how."""
        request = pdp.InterceptParamsRequest(
            context=self._merged(context),
            policy=self._policy if policy is None else policy,
            message=message,
            metadata_json=metadata_json,
            params=params,
            verbose=verbose,
            dry_run=dry_run,
            offset_encoding=UTF32,
        )
        try:
            return self._unary(
                self._pdp.InterceptParams, "InterceptParams", request, timeout, self._timeouts.intercept_s
            )
        except ServiceError as failure:
            return self._unjudged_params(request, failure)

    @overload
    def guard_tool(self, function: _Function, /, **settings: Unpack[tool.GuardSettings]) -> _Function: ...

    @overload
    def guard_tool(
        self, function: None = None, /, **settings: Unpack[tool.GuardSettings]
    ) -> Callable[[_Function], _Function]: ...

    def guard_tool(self, function: Any = None, /, **settings: Unpack[tool.GuardSettings]) -> Any:
        """Puts the hooks before and after a tool around a function; see `portcullis.tool.Guard` for the settings.

        Use it as a decorator, with or without settings, or as a call. The answer has the signature of the function and
        is async where that is.
        """
        guard = tool.Guard(**settings)
        if function is None:
            return lambda given: function_guard.guarded(given, guard, self)
        return function_guard.guarded(function, guard, self)

    def attach(
        self,
        process: subprocess.Popen[Any],
        work_context: session.WorkLike | None = None,
        **settings: Unpack[session.WatchSettings],
    ) -> monitor.Watch:
        """Watches a `subprocess.Popen`; see `portcullis.session.WatchOptions` for the settings."""
        self._check_open()
        return monitor.Watch(self, process, work_context, session.WatchOptions(**settings))

    def review_bundle(
        self,
        path: str | os.PathLike[str],
        *,
        kind: bundle.KindLike | None = None,
        name: str = "",
        entity_id: str = "",
        submitter: str | None = None,
        dry_run: bool = False,
        policy: str | None = None,
        context: ContextLike | None = None,
        progress: Callable[[int, int], object] | None = None,
        timeout: float | None = None,
    ) -> pdp.ReviewBundleResponse:
        """Uploads a ZIP archive, a folder or one Markdown document and answers what the inline checks say.

        `progress` is called with the bytes sent and the bytes in all, from another thread. A blocked bundle is an
        answer. An upload is never sent twice: after `Unavailable` look at what arrived before sending it again.
        """
        self._check_open()
        deadline = deadline_of(timeout, self._timeouts.upload_s)
        with bundle.Upload(path, kind) as upload:
            header = upload.header(
                name,
                entity_id,
                self._submitter if submitter is None else submitter,
                dry_run,
                self._policy if policy is None else policy,
                self._merged(context),
            )
            try:
                return self._pdp.ReviewBundle(
                    upload.requests(header, progress),
                    timeout=max(deadline - time.monotonic(), 0.001),
                    metadata=self._metadata(),
                )
            except grpc.RpcError as error:
                # What the program's own callback raised comes before what the broken call says about it.
                if upload.raised is not None:
                    raise upload.raised from None
                raise self._failed(error, "ReviewBundle") from error

    def get_submission(self, submission_id: str, *, timeout: float | None = None) -> submission_service_pb2.Submission:
        """One submission with everything known about it."""
        request = submission_service_pb2.GetSubmissionRequest(submission_id=submission_id)
        rpc = self._submissions.GetSubmission
        return self._unary(rpc, "GetSubmission", request, timeout, self._timeouts.read_s).submission

    def watch_submission(
        self, submission_id: str, *, timeout: float | None = None
    ) -> Iterator[submission_service_pb2.WatchSubmissionResponse]:
        """How a submission stands, at once and after each change, until nothing more happens by itself (`final`).

        A stream that breaks is taken up again, and what is told twice then is left out.
        """
        deadline = deadline_of(timeout, self._timeouts.watch_s)
        request = submission_service_pb2.WatchSubmissionRequest(submission_id=submission_id)
        return self._watched(request, deadline)

    def _watched(
        self, request: submission_service_pb2.WatchSubmissionRequest, deadline: float
    ) -> Iterator[submission_service_pb2.WatchSubmissionResponse]:
        last: submission_service_pb2.WatchSubmissionResponse | None = None
        attempt = 1
        while True:
            self._check_open()
            call = self._submissions.WatchSubmission(
                request, timeout=max(deadline - time.monotonic(), 0.001), metadata=self._metadata()
            )
            try:
                for told in call:
                    attempt = 1
                    if told != last:
                        last = told
                        yield told
                    if told.final:
                        return
                raise bundle.cut_off()
            except grpc.RpcError as error:
                failure = self._failed(error, "WatchSubmission")
            except ServiceError as error:
                failure = error
            finally:
                call.cancel()
            pause = self._retry.pause(failure, attempt, deadline - time.monotonic())
            if pause is None:
                raise failure
            self.stats.count("retries")
            time.sleep(pause)
            attempt += 1

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        if self._token is None:
            trace = trace_metadata()
            return self._fixed + trace if trace else self._fixed
        token = self._token()
        if not isinstance(token, str):
            close = getattr(token, "close", None)
            if close is not None:
                close()
            raise ConfigurationError("`token` gives no text; an async function needs AsyncClient")
        return self._metadata_with(token)

    def _unary(
        self,
        rpc: Callable[..., _Response],
        name: str,
        request: _Request,
        timeout: float | None,
        default: float,
    ) -> _Response:
        if self._closed:
            self._check_open()
        deadline = time.monotonic() + default if timeout is None else deadline_of(timeout, default)
        # The first try gets the round figure: the same one each time makes a header that is sent once and then named.
        left = default if timeout is None else timeout
        attempt = 1
        while True:
            try:
                return rpc(request, timeout=left, metadata=self._metadata())
            except grpc.RpcError as error:
                failure = self._failed(error, name)
                failure.__cause__ = error
            except ValueError:
                # Another thread closed the client meanwhile; grpc has no exception of its own for that.
                self._check_open()
                raise
            pause = self._retry.pause(failure, attempt, deadline - time.monotonic())
            if pause is None:
                raise failure
            self.stats.count("retries")
            time.sleep(pause)
            left = max(deadline - time.monotonic(), 0.001)
            attempt += 1
