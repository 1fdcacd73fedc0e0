"""An interceptor, and a plugin of CheckMessages, as an ExtensionService over gRPC.

    python3 grpc_guard.py --listen 127.0.0.1:9001 [--token-file FILE]

Needs grpcio, and the stubs made of the contract; README.md says how. An error, or an answer without a decision, counts
as not judged, and the fail mode of the interceptor or plugin decides.
"""

import argparse
import hmac
import pathlib
from concurrent.futures import ThreadPoolExecutor

import grpc
from google.protobuf.json_format import ParseDict
from portcullis.v1 import decision_pb2 as decision
from portcullis.v1 import extension_service_pb2 as pb
from portcullis.v1 import extension_service_pb2_grpc as service
from portcullis.v1 import interceptors_pb2 as interceptors

from rule import CATEGORY, judge, names_in


class Guard(service.ExtensionServiceServicer):
    """What is left out here, the base class answers with UNIMPLEMENTED."""

    def __init__(self, token: str):
        self.token = token

    def Describe(self, request, context):
        self.authenticate(context)
        # Portcullis asks this first; it refuses to use the extension on any other hook, and findings of any other
        # category.
        return pb.DescribeResponse(
            name="Web guard",
            version="1.0.0",
            categories=[CATEGORY],
            hooks=[interceptors.HOOK_TOOL_BEFORE],
        )

    def Check(self, request, context):
        self.authenticate(context)
        # Python counts characters.
        answer = pb.CheckResponse(offset_encoding=decision.OFFSET_ENCODING_UTF32)
        for index, message in enumerate(request.messages):
            for path, text in texts_of(message):
                for start, end in names_in(text):
                    answer.findings.add(
                        rule_id="project-name",
                        category=CATEGORY,
                        severity=decision.SEVERITY_HIGH,
                        description="Names a project that is not public.",
                        span=decision.Span(message_index=index, path=path, start=start, end=end),
                    )
        return answer

    def Intercept(self, request, context):
        self.authenticate(context)
        verdict = judge(interceptors.Hook.Name(request.hook), request.tool_name, request.args_json)
        return ParseDict(verdict, pb.InterceptResponse())

    def authenticate(self, context):
        if not self.token:
            return
        given = dict(context.invocation_metadata()).get("authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token is wrong")


def texts_of(message):
    """Every text of a message with its place."""
    if message.WhichOneof("content") == "text":
        yield "/text", message.text
    for index, part in enumerate(message.parts.parts):
        kind = part.WhichOneof("part")
        if kind in ("text", "json"):
            yield f"/parts/{index}/{kind}", getattr(part, kind)
    for index, call in enumerate(message.tool_calls):
        yield f"/tool_calls/{index}/args_json", call.args_json


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--listen", default="127.0.0.1:9001", help="HOST:PORT; port 0 takes a free one")
    parser.add_argument("--token-file", type=pathlib.Path, help="callers must send the token in this file")
    options = parser.parse_args()
    token = options.token_file.read_text().strip() if options.token_file else ""
    # Without this a second server on the same port would silently share the calls.
    server = grpc.server(ThreadPoolExecutor(max_workers=8), options=[("grpc.so_reuseport", 0)])
    service.add_ExtensionServiceServicer_to_server(Guard(token), server)
    # Plain text: put TLS before it, or use add_secure_port, when calls leave the machine.
    port = server.add_insecure_port(options.listen)
    server.start()
    print(f"listening on http://{options.listen.rpartition(':')[0]}:{port}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
