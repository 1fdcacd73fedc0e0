"""Secrets are planted in every request there is, and are found in nothing that a service leaves.

So are they in what a caller names itself and its things by (`agent_id`, `session_key`, `request_id`, ids), which people
fill with anything. Where every field gets one, the request is refused, and a refusal repeats nothing.
"""

import base64
import http.client
import json
import sqlite3
import urllib.request
import uuid

import canaries
import fill
import grpc
import pytest
from google.protobuf import message_factory
from plant import good
from servers import until

METHODS = fill.methods()
HTTP = {
    "/portcullis.v1.PolicyDecisionService/CheckMessages": lambda text: {"messages": [{"role": "user", "text": text}]},
    "/portcullis.v1.PolicyDecisionService/InterceptTool": lambda text: {
        "phase": "TOOL_PHASE_BEFORE", "toolName": "exec", "argsJson": json.dumps({"command": text})
    },
    "/hooks/claude-code": lambda text: {
        "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": f"rm -rf / # {text}"}
    },
    "/beta/litellm_basic_guardrail_api": lambda text: {"texts": [text], "request_data": {}, "input_type": "request"},
    "/agentgateway/request": lambda text: {"body": {"messages": [{"role": "user", "content": text}]}},
    "/agentgateway/response": lambda text: {"body": {"choices": [{"message": {"role": "assistant", "content": text}}]}},
    "/v1/evaluate": lambda text: {"input": text, "messages": [{"role": "user", "content": text}]},
    "/metrics": lambda text: {"text": text},
    "/nowhere": lambda text: {"text": text},
}  # fmt: skip


def call(server, name, messages, metadata):
    """Calls an RPC with these messages; answers what it said, or the error."""
    service, _, method = name.partition("/")
    descriptor = METHODS[name]
    kind = ("stream" if descriptor.client_streaming else "unary") + "_" + ("stream" if descriptor.server_streaming else "unary")
    answer_type = message_factory.GetMessageClass(descriptor.output_type)
    rpc = getattr(server.channel, kind)(
        f"/portcullis.v1.{service}/{method}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=answer_type.FromString,
    )
    request = iter(messages) if descriptor.client_streaming else messages[0]
    try:
        answer = rpc(request, metadata=metadata, timeout=20)
        return [answer] if not descriptor.server_streaming else list(answer)
    except grpc.RpcError as error:
        return error


def places_of(sink):
    """Everywhere where canaries are planted."""
    return (
        [f"{sink} {name} {way}" for name in METHODS for way in ("filled", "good")]
        + [f"{sink} {name} {way}" for name in HTTP for way in ("body", "malformed", "query", "header")]
        + [f"{sink} metadata"]
    )


def admin(server):
    return (("authorization", f"Bearer {server.admin_token}"),)


def test_the_server_judges(server):
    with urllib.request.urlopen(f"http://{server.http}/readyz", timeout=20) as answer:
        assert answer.status == 200


def test_the_methods_are_those_of_the_contract():
    assert set(METHODS) == fill.protos()
    assert set(good("", {})) == set(METHODS), "every RPC has good requests"


def test_planted_in_every_field_of_every_request(server):
    unjudged = []
    for name, method in METHODS.items():
        text = canaries.text(f"{server.sink} {name} filled")
        for request in fill.requests(method, text):
            for metadata in ((), admin(server)):
                said = call(server, name, [request], metadata)
                if isinstance(said, grpc.RpcError) and said.code() in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL):
                    unjudged.append(f"{name}: {said.code()} {said.details()}")
    assert not unjudged, "\n".join(unjudged)


def test_planted_in_good_requests(server):
    ids, failed = {}, {}
    for name in good("", {}):
        text = canaries.text(f"{server.sink} {name} good")
        for request in good(text, ids)[name]():
            said = call(server, name, request if isinstance(request, list) else [request], admin(server))
            if isinstance(said, grpc.RpcError):
                failed[name] = said.code()
                continue
            remember(ids, name, said)
    # What the state of a submission does not allow, and what was never there after a review that failed.
    allowed = {grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.DEADLINE_EXCEEDED}
    decisions = [name for name in failed if name.startswith("PolicyDecision")]
    assert not decisions and set(failed.values()) <= allowed, failed
    assert {"submission", "entity", "incident"} <= ids.keys()


def remember(ids, name, said):
    """Ids that later calls need."""
    if name.endswith("/ReviewBundle"):
        ids |= {"submission": said[0].submission_id, "entity": said[0].entity_id}
    if name.endswith("/StreamMonitor"):
        found = [one.incident.id for one in said if one.WhichOneof("kind") == "incident"]
        if found:
            ids["incident"] = found[0]


def test_planted_in_metadata(server):
    place = f"{server.sink} metadata"
    secret = {kind: canaries.canary(place, kind)[1] for kind in canaries.KINDS}
    for metadata in (
        (("authorization", f"Bearer {secret['api_key']}"),),
        (("authorization", f"Basic {secret['password_in_url']}"),),
        (("portcullis-submitter", secret["email"]),) + admin(server),
        (("x-api-key", secret["api_key"]), ("cookie", secret["private_key"]), ("baggage", f"card={secret['card']}")),
        (("traceparent", secret["api_key"]), ("tracestate", secret["private_key"])),
        # A trace that goes on here, whose state is exported with each span.
        (
            ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            ("tracestate", f"one={secret['api_key']},two={secret['card']}"),
        ),
        (("grpc-timeout-x", secret["card"]), ("user-agent", secret["email"])),
    ):
        for name in ("PolicyDecisionService/CheckMessages", "PolicyService/ReloadPolicy", "PolicyService/GetPolicy"):
            call(server, name, [good("hello", {})[name]()[0]], metadata)


@pytest.mark.parametrize("path", HTTP)
def test_planted_over_http(server, path):
    def post(body, path=path, **headers):
        connection = http.client.HTTPConnection(server.http, timeout=20)
        try:
            connection.request("POST", path, body=body, headers={"content-type": "application/json"} | headers)
            return connection.getresponse().read()
        finally:
            connection.close()

    def text(way):
        return canaries.text(f"{server.sink} {path} {way}")

    post(json.dumps(HTTP[path](text("body"))))
    # Not JSON, and JSON of another shape.
    post(text("malformed"))
    post(json.dumps({text("malformed"): [text("malformed")], "messages": text("malformed"), "texts": {}}))
    key, password = (canaries.canary(f"{server.sink} {path} query", kind)[1] for kind in ("api_key", "password_in_url"))
    post("{}", f"{path}?key={key}&password={password}")
    post("{}", f"{path}/{key}")
    key, mail = (canaries.canary(f"{server.sink} {path} header", kind)[1] for kind in ("api_key", "email"))
    post("{}", authorization=f"Bearer {key}", cookie=mail, origin=f"http://{mail}")
    post("{}", host=f"{mail}.corp-canary.net")


# Tables where text of callers is kept only masked.
MASKED_TABLES = ("incident", "audit_event")


def test_what_is_kept_in_tables_is_masked(server):
    """Incidents are written behind the answers; what the tables hold is searched like a log."""
    search = canaries.Search(places_of(server.sink))
    database = server.data / "portcullis.db"

    def rows():
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
            found = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in MASKED_TABLES}
        connection.close()
        return found

    held = until(lambda: rows()["incident"] and rows(), "the incidents are kept")
    leaks = [f"{name} in table {table}" for table, all_rows in held.items() for name in search.found(repr(all_rows).encode())]
    assert not leaks, "\n".join(sorted(leaks))


def test_the_metrics_hold_none(server):
    found = canaries.Search(places_of(server.sink)).found(server.metrics_text().encode())
    assert not found, found


def test_the_search_finds_what_is_there(tmp_path):
    """The search itself: each kind, as it is and as programs write it."""
    place = f"trial {uuid.uuid4()}"
    search = canaries.Search([place])
    assert len(search.found(canaries.text(place).encode())) == len(canaries.KINDS)
    for kind in canaries.KINDS:
        secret = canaries.canary(place, kind)[1]
        for written in (secret, secret.lower(), secret.encode().hex(), json.dumps({"a": secret})):
            assert f"{kind} of {place}" in search.found(f"x{written}y".encode()), (kind, written)
        for before in ("", "a", "ab"):
            encoded = base64.b64encode(f"{before}{secret} and more".encode())
            assert f"{kind} of {place}" in search.found(encoded), (kind, before)
    assert not search.found(b"nothing of the kind")
