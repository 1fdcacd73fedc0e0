"""One server with everything on that writes or sends, and what it calls."""

import http.server
import os
import pathlib
import threading

import grpc
import pytest
from collector import collecting
from servers import running

ADAPTERS = ("json", "claude_code", "litellm", "agentgateway", "openguardrails")
# One interceptor takes a note, one lives elsewhere and is answered with an echo of what it sent.
POLICY = """name: default
interceptors:
  - {id: t:note, hook: tool.before, tools: "^note$", allow_unknown_tools: true, when: "has(args.text)", do: [{audit: "a note was taken"}]}
  - {id: t:webhook, hook: tool.before, tools: "^send$", allow_unknown_tools: true, webhook: {url: "%s/webhook"}, fail: closed}
"""


class Echo(http.server.BaseHTTPRequestHandler):
    """A model and a webhook that fail, and say back what they were sent."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(400, "Bad")
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *_):
        """Nothing: what this says is not the service's."""


@pytest.fixture(scope="session")
def echo():
    """Its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.fixture(scope="session")
def logs():
    """The folder of everything that servers leave."""
    return pathlib.Path(os.environ["PORTCULLIS_TEST_LOGS"])


def settings(echo, collector):
    return {
        # Everything that our own code says, however chatty.
        "log": {"level": "trace,h2=debug,hyper=debug,rustls=debug"},
        "tracing": {"otlp_endpoint": collector.endpoint},
        "policy": {"path": "policies"},
        "http": {"adapters": dict.fromkeys(ADAPTERS, True)},
        "server": {"adapters": {"ext_mcp": True}},
        "llm": {"backend": "ollama", "model": "m", "base_url": echo, "attempts_max": 1},
        "extensions": {"private_hosts": ["127.0.0.0/8"], "breaker_failures": 1000},
    }


@pytest.fixture(scope="module", params=["file", "stdout", "otlp"])
def server(request, echo, tmp_path_factory):
    """The server, with each sink of records in turn, and a channel to it."""
    folder = tmp_path_factory.mktemp(f"canary-{request.param}")
    (folder / "policies").mkdir()
    (folder / "policies" / "default.yaml").write_text(POLICY % echo)
    with collecting() as collector:
        audit = {"sink": request.param} | ({"otlp_endpoint": collector.endpoint} if request.param == "otlp" else {})
        with running(folder, settings(echo, collector) | {"audit": audit}) as server:
            server.sink, server.collector = request.param, collector
            with grpc.insecure_channel(server.grpc) as server.channel:
                yield server
