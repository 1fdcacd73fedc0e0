"""A collector of OpenTelemetry: takes spans and log records over OTLP/gRPC and keeps them, decoded by the published stubs."""

import concurrent.futures
import contextlib
import os
import pathlib
import tempfile
import threading

import grpc
from google.protobuf import text_format
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


class Collector(logs_service_pb2_grpc.LogsServiceServicer, trace_service_pb2_grpc.TraceServiceServicer):
    """What it got: `requests` of logs, and `spans`. `answer` may be set to refuse, delay or reject."""

    def __init__(self):
        self.requests, self.spans, self.calls = [], [], 0
        self.answer = lambda request, context: logs_service_pb2.ExportLogsServiceResponse()
        self._lock = threading.Lock()
        self.endpoint = ""

    def Export(self, request, context):
        if isinstance(request, trace_service_pb2.ExportTraceServiceRequest):
            with self._lock:
                self.spans.append(request)
            return trace_service_pb2.ExportTraceServiceResponse()
        with self._lock:
            self.calls += 1
        response = self.answer(request, context)
        with self._lock:
            self.requests.append(request)
        return response

    def records(self):
        """Every log record taken so far, with its resource and scope."""
        with self._lock:
            requests = list(self.requests)
        return [
            (resource.resource, scope.scope, record)
            for request in requests
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def text(self):
        """Everything as text."""
        with self._lock:
            return "\n".join(text_format.MessageToString(each, as_utf8=True) for each in self.requests + self.spans)


@contextlib.contextmanager
def collecting(address="127.0.0.1:0"):
    """A collector that listens; what it got is kept below PORTCULLIS_TEST_LOGS at the end."""
    collector = Collector()
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=8), options=[("grpc.so_reuseport", 0)])
    logs_service_pb2_grpc.add_LogsServiceServicer_to_server(collector, server)
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)
    port = server.add_insecure_port(address)
    assert port, f"{address} is taken"
    collector.endpoint = f"http://127.0.0.1:{port}"
    server.start()
    try:
        yield collector
    finally:
        server.stop(None).wait(10)
        if where := os.environ.get("PORTCULLIS_TEST_LOGS"):
            kept = pathlib.Path(tempfile.mkdtemp(prefix="collector-", dir=where))
            (kept / "otlp.txt").write_text(collector.text())
