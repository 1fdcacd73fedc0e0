"""The worked examples under a real server, called as an agent calls it; and a webhook that misbehaves."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
import pytest
from conftest import WAIT_S, running_server
from google.protobuf.duration_pb2 import Duration
from portcullis.v1 import (
    decision_pb2,
    interceptor_registry_service_pb2 as registry_pb2,
    interceptor_registry_service_pb2_grpc as registry_grpc,
    interceptors_pb2,
    policy_decision_service_pb2,
    policy_decision_service_pb2_grpc,
)

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples" / "extensions" / "python"
TOKEN = "an-example-token"
ALLOW, ASK, BLOCK = decision_pb2.DECISION_ALLOW, decision_pb2.DECISION_ASK, decision_pb2.DECISION_BLOCK


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server that may call this machine and knows a credential."""
    folder = tmp_path_factory.mktemp("extensions")
    (folder / "token").write_text(TOKEN + "\n")
    settings = {
        "extensions": {
            "private_hosts": ["127.0.0.0/8"],
            "credentials": {"guard": {"hosts": ["127.0.0.1"], "bearer_file": str(folder / "token")}},
        }
    }
    # JSON is YAML.
    with running_server(folder, json.dumps(settings)) as server:
        with grpc.insecure_channel(server.grpc) as channel:
            server.channel, server.token_file = channel, folder / "token"
            yield server


@contextlib.contextmanager
def example(script, *arguments):
    """Runs one of the examples on a free port: its address."""
    command = [sys.executable, str(EXAMPLES / script), "--listen", "127.0.0.1:0", *map(str, arguments)]
    process = subprocess.Popen(command, env=os.environ, stdout=subprocess.PIPE, text=True)
    try:
        said = process.stdout.readline()
        assert said.startswith("listening on "), f"{script} did not start: {said!r}"
        yield said.removeprefix("listening on ").strip()
    finally:
        process.kill()
        process.wait(WAIT_S)
        process.stdout.close()


@contextlib.contextmanager
def interceptor(server, **fields):
    """An interceptor that is in force within the block."""
    stub = registry_grpc.InterceptorRegistryServiceStub(server.channel)
    admin = [("authorization", f"Bearer {server.admin_token}")]
    wanted = registry_pb2.Interceptor(
        id=f"test:{uuid.uuid4()}", hook=interceptors_pb2.HOOK_TOOL_BEFORE, tool_matcher="^web_fetch$", **fields
    )
    added = stub.AddInterceptor(
        registry_pb2.AddInterceptorRequest(interceptor=wanted), metadata=admin, timeout=WAIT_S
    ).interceptor
    assert added.source == registry_pb2.INTERCEPTOR_SOURCE_API
    try:
        yield added
    finally:
        stub.RemoveInterceptor(
            registry_pb2.RemoveInterceptorRequest(interceptor_id=added.id), metadata=admin, timeout=WAIT_S
        )


def fetch(server, url, **args):
    stub = policy_decision_service_pb2_grpc.PolicyDecisionServiceStub(server.channel)
    request = policy_decision_service_pb2.InterceptToolRequest(
        phase=interceptors_pb2.TOOL_PHASE_BEFORE,
        tool_name="WebFetch",
        args_json=json.dumps({"url": url, **args}),
        verbose=True,
    )
    return stub.InterceptTool(request, timeout=WAIT_S)


def handlers():
    """Each example as the handler of an interceptor, without and with the token."""
    for script, field in [("grpc_guard.py", "extension"), ("webhook_guard.py", "webhook")]:
        for credential in ["", "guard"]:
            yield pytest.param(script, field, credential, id=f"{field}-{credential or 'open'}")


def handler(field, address, **fields):
    if field == "extension":
        return {"extension": registry_pb2.InterceptorExtension(endpoint=address, **fields)}
    return {"webhook": registry_pb2.InterceptorWebhook(url=address + "/", **fields)}


@pytest.mark.parametrize(("script", "field", "credential"), list(handlers()))
def test_an_example_decides_about_calls(guarded, script, field, credential):
    token = ["--token-file", guarded.token_file] if credential else []
    with example(script, *token) as address:
        with interceptor(guarded, **handler(field, address, credential=credential)):
            passed = fetch(guarded, "https://example.com/a")
            assert (passed.decision, passed.mutated, len(passed.unjudged)) == (ALLOW, False, 0)
            changed = fetch(guarded, "http://example.com/a", big=2**60)
            assert (changed.decision, changed.mutated) == (ALLOW, True)
            assert json.loads(changed.args_json) == {"url": "https://example.com/a", "big": 2**60}
            asked = fetch(guarded, "https://wiki.corp.example/")
            assert asked.decision == ASK
            blocked = fetch(guarded, "https://example.org/")
            assert blocked.decision == BLOCK
            assert "example.org" in blocked.block_reason
            assert json.loads(blocked.blocked_result_json)["status"] == "blocked"
        assert fetch(guarded, "https://example.org/").decision == ALLOW, "removed, it decides nothing any more"


@pytest.mark.parametrize(("script", "field"), [("grpc_guard.py", "extension"), ("webhook_guard.py", "webhook")])
def test_an_example_that_wants_a_token_gets_none_without_a_credential(guarded, script, field):
    with example(script, "--token-file", guarded.token_file) as address:
        with interceptor(guarded, **handler(field, address)):
            refused = fetch(guarded, "https://example.com/a")
            assert (refused.decision, refused.unjudged[0].reason) == (BLOCK, "error")


@pytest.mark.parametrize(("script", "field"), [("grpc_guard.py", "extension"), ("webhook_guard.py", "webhook")])
def test_an_example_that_is_gone_is_not_judged(guarded, script, field):
    with example(script) as address:
        pass
    with interceptor(guarded, **handler(field, address)):
        away = fetch(guarded, "https://example.com/a")
        assert (away.decision, away.unjudged[0].reason) == (BLOCK, "unavailable")


@pytest.mark.parametrize(("script", "kind", "place"), [("grpc_guard.py", "grpc", (8, 27)), ("http_plugin.py", "http", (0, 31))])
def test_an_example_judges_messages(tmp_path, script, kind, place):
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    with example(script, "--token-file", token) as address:
        endpoint = address if kind == "grpc" else address + "/"
        settings = {
            "extensions": {
                "private_hosts": ["127.0.0.0/8"],
                "credentials": {"names": {"hosts": ["127.0.0.1"], "bearer_file": str(token)}},
                "plugins": {"names": {"kind": kind, "endpoint": endpoint, "credential": "names"}},
            }
        }
        with running_server(tmp_path, json.dumps(settings)) as server, grpc.insecure_channel(server.grpc) as channel:
            stub = policy_decision_service_pb2_grpc.PolicyDecisionServiceStub(channel)

            def check(text):
                request = policy_decision_service_pb2.CheckMessagesRequest(plugins=["names"])
                request.messages.add(role="user", text=text)
                return stub.CheckMessages(request, timeout=WAIT_S)

            passed = check("Hello, how are you?")
            assert (passed.decision, len(passed.unjudged)) == (ALLOW, 0)
            blocked = check("é, what Project Nightingale is?")
            assert (blocked.decision, len(blocked.unjudged)) == (BLOCK, 0)
            (finding,) = [finding for finding in blocked.findings if finding.plugin == "names"]
            assert finding.category == "confidential"
            text = "é, what Project Nightingale is?"
            wanted = [len(text[:offset].encode()) for offset in place]
            assert [finding.span.start, finding.span.end] == wanted


class Misbehaving(BaseHTTPRequestHandler):
    """Answers as its path says."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        status, headers, body = 200, {}, b'{"decision":"DECISION_ALLOW"}'
        match self.path:
            case "/slow":
                time.sleep(1.5)
            case "/malformed":
                body = b'{"decision":"DECISION_ALLOW"'
            case "/unknown":
                body = b'{"decision":"DECISION_ALLOW","approved":true}'
            case "/silent":
                body = b"{}"
            case "/redirect":
                status, headers = 307, {"location": "/good"}
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        # Whoever gave up waiting is gone.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def misbehaving():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Misbehaving)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield "http://127.0.0.1:%d" % server.server_port
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/good", None),
        ("/slow", "timeout"),
        ("/malformed", "bad_answer"),
        ("/unknown", "bad_answer"),
        ("/silent", "bad_answer"),
        ("/redirect", "bad_answer"),
    ],
)
def test_a_webhook_that_misbehaves_is_not_judged_and_fails_closed(guarded, misbehaving, path, reason):
    webhook = registry_pb2.InterceptorWebhook(url=misbehaving + path)
    with interceptor(guarded, webhook=webhook, timeout=Duration(nanos=500_000_000)):
        answer = fetch(guarded, "https://example.com/a")
    if reason is None:
        assert (answer.decision, len(answer.unjudged)) == (ALLOW, 0)
    else:
        assert answer.decision == BLOCK
        assert [(one.reason, one.failed_open) for one in answer.unjudged] == [(reason, False)]


def test_a_private_address_is_refused_where_the_settings_do_not_allow_it(server, channel):
    stub = registry_grpc.InterceptorRegistryServiceStub(channel)
    for url in ["http://127.0.0.1:9/", "http://169.254.169.254/latest", "http://[::ffff:10.0.0.1]/"]:
        wanted = registry_pb2.Interceptor(
            id="test:private",
            hook=interceptors_pb2.HOOK_TOOL_BEFORE,
            webhook=registry_pb2.InterceptorWebhook(url=url),
        )
        with pytest.raises(grpc.RpcError) as refused:
            stub.AddInterceptor(
                registry_pb2.AddInterceptorRequest(interceptor=wanted),
                metadata=[("authorization", f"Bearer {server.admin_token}")],
                timeout=WAIT_S,
            )
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT, url
        assert "interceptor.webhook.url" in refused.value.details(), url
