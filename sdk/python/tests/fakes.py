"""A gRPC server of the contract whose answers a test decides: for what a real one cannot be brought to say at will."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2

from portcullis.v1 import policy_decision_service_pb2 as pdp
from portcullis.v1 import policy_decision_service_pb2_grpc as pdp_grpc


class Fake(pdp_grpc.PolicyDecisionServiceServicer):
    """Keeps each request with its metadata, and does what `act` does."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, dict[str, Any]]] = []
        self.remaining: list[float] = []
        self.act: Callable[[int, grpc.ServicerContext], None] = lambda number, context: None
        self.address = ""
        # What StreamMonitor does.
        self.session: Callable[[Any], Iterator[pdp.StreamMonitorResponse]] = lambda requests: iter(())
        # Answers to InterceptTool, one after the other.
        self.tool_answers: Iterator[dict[str, Any]] = iter(())

    def _heard(self, request: Any, context: grpc.ServicerContext) -> None:
        self.calls.append((request, {key: value for key, value in context.invocation_metadata()}))
        self.remaining.append(context.time_remaining())
        self.act(len(self.calls), context)

    def CheckMessages(self, request: Any, context: grpc.ServicerContext) -> pdp.CheckMessagesResponse:
        self._heard(request, context)
        return pdp.CheckMessagesResponse(decision=1)

    def InterceptTool(self, request: Any, context: grpc.ServicerContext) -> pdp.InterceptToolResponse:
        self._heard(request, context)
        return pdp.InterceptToolResponse(**next(self.tool_answers))

    def StreamMonitor(self, requests: Any, context: grpc.ServicerContext) -> Iterator[pdp.StreamMonitorResponse]:
        yield from self.session(requests)

    def ReviewBundle(self, requests: Any, context: grpc.ServicerContext) -> pdp.ReviewBundleResponse:
        self._heard(list(requests), context)
        return pdp.ReviewBundleResponse()


@contextlib.contextmanager
def fake_server() -> Iterator[Fake]:
    fake = Fake()
    server = grpc.server(futures.ThreadPoolExecutor(8))
    pdp_grpc.add_PolicyDecisionServiceServicer_to_server(fake, server)
    fake.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield fake
    finally:
        server.stop(None).wait()


def refuse(context: grpc.ServicerContext, code: grpc.StatusCode, text: str, retry_s: float | None = None) -> None:
    """Ends a call with a status and, where `retry_s` is given, a RetryInfo."""
    details = []
    if retry_s is not None:
        packed = any_pb2.Any()
        delay = duration_pb2.Duration(seconds=int(retry_s), nanos=int(retry_s % 1 * 1e9))
        packed.Pack(error_details_pb2.RetryInfo(retry_delay=delay))
        details.append(packed)
    status = status_pb2.Status(code=getattr(code_pb2, code.name), message=text, details=details)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(code, text)
