"""How calls are made: deadlines, retries, metadata, and what happens when nobody answers."""

from __future__ import annotations

import asyncio
import logging
import os
import time

import grpc
import pytest

from conftest import WAIT_S, running_server
from fakes import fake_server, refuse
from portcullis import (
    AsyncClient,
    Blocked,
    Client,
    ConfigurationError,
    DeadlineExceeded,
    Decision,
    Retry,
    ServiceError,
    Timeouts,
    Unauthenticated,
    Unavailable,
)

FAST = Retry(attempts_max=4, pause_s=0.001, pause_max_s=0.002)


@pytest.fixture
def fake():
    with fake_server() as fake:
        yield fake


def unavailable_until(number, retry_s=None):
    def act(call, context):
        if call < number:
            refuse(context, grpc.StatusCode.UNAVAILABLE, "busy", retry_s)

    return act


def ask(address, kind, **settings):
    """One question from either client: its stats and its answer, or what it raised."""
    if kind == "threads":
        with Client(address, **settings) as client:
            try:
                return client.stats, client.check_messages("hello")
            except ServiceError as error:
                return client.stats, error

    async def run():
        async with AsyncClient(address, **settings) as client:
            try:
                return client.stats, await client.check_messages("hello")
            except ServiceError as error:
                return client.stats, error

    return asyncio.run(run())


both = pytest.mark.parametrize("kind", ["threads", "asyncio"])


@both
def test_a_question_is_asked_again_when_the_service_was_away(fake, kind):
    fake.act = unavailable_until(3)
    stats, answer = ask(fake.address, kind, retry=FAST)
    assert answer.decision == Decision.ALLOW
    assert (len(fake.calls), stats.retries) == (3, 2)


@both
def test_tries_end(fake, kind):
    fake.act = unavailable_until(99)
    stats, error = ask(fake.address, kind, retry=FAST)
    assert isinstance(error, Unavailable)
    assert (len(fake.calls), stats.retries, stats.failed_closed) == (4, 3, 1)


@both
def test_the_servers_pause_is_kept(fake, kind):
    fake.act = unavailable_until(2, retry_s=0.3)
    started = time.monotonic()
    _, answer = ask(fake.address, kind, retry=FAST)
    assert answer.decision == Decision.ALLOW
    assert time.monotonic() - started >= 0.3


@both
def test_a_pause_beyond_the_deadline_is_not_waited_for(fake, kind):
    fake.act = unavailable_until(99, retry_s=60)
    started = time.monotonic()
    _, error = ask(fake.address, kind, retry=FAST)
    assert isinstance(error, Unavailable)
    assert error.retry_after_s == 60
    assert (len(fake.calls), time.monotonic() - started < 5) == (1, True)


@both
@pytest.mark.parametrize(
    "code",
    [
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.UNIMPLEMENTED,
    ],
)
def test_what_is_no_absence_is_neither_retried_nor_let_pass(fake, kind, code):
    fake.act = lambda call, context: refuse(context, code, "no")
    stats, error = ask(fake.address, kind, retry=FAST, on_unavailable="open")
    assert isinstance(error, ServiceError) and not isinstance(error, Unavailable)
    assert error.code is code
    assert (len(fake.calls), stats.failed_open, stats.failed_closed) == (1, 0, 1)


def test_errors_say_what_to_do(fake, nobody):
    fake.act = lambda call, context: refuse(context, grpc.StatusCode.UNAUTHENTICATED, "who are you")
    with Client(fake.address, token="t") as client, pytest.raises(Unauthenticated, match="token"):
        client.check_messages("hello")
    with Client(nobody, retry=FAST) as client, pytest.raises(Unavailable, match="check that the service runs") as error:
        client.check_messages("hello")
    assert nobody in str(error.value)
    assert error.value.rpc == "CheckMessages"
    assert isinstance(error.value.__cause__, grpc.RpcError)


def test_every_call_has_a_deadline(fake):
    with Client(fake.address) as client:
        client.check_messages("hello")
        client.check_messages("hello", timeout=100)
        with pytest.raises(ConfigurationError, match="deadline"):
            client.check_messages("hello", timeout=float("inf"))
        with pytest.raises(ConfigurationError, match="deadline"):
            client.check_messages("hello", timeout=0)
    # gRPC rounds up when it writes a deadline down.
    assert fake.remaining[0] < 6
    assert 50 < fake.remaining[1] < 101
    for wrong in (float("inf"), float("nan"), 0, -1, None, "5", True):
        with pytest.raises(ConfigurationError, match="check_s"):
            Timeouts(check_s=wrong)


@both
def test_a_late_answer_is_no_answer(fake, kind):
    fake.act = lambda call, context: time.sleep(1)
    _, error = ask(fake.address, kind, timeouts=Timeouts(check_s=0.2))
    assert isinstance(error, DeadlineExceeded)
    assert len(fake.calls) == 1


@both
def test_away_and_open_passes_counted_and_reported(nobody, kind, caplog):
    heard = []
    with caplog.at_level(logging.WARNING, "portcullis"):
        stats, answer = ask(nobody, kind, retry=FAST, on_unavailable="open", on_fail_open=heard.append)
    assert answer.decision == Decision.ALLOW
    assert [(one.plugin, one.reason, one.failed_open) for one in answer.unjudged] == [
        ("portcullis-sdk", "unavailable", True)
    ]
    assert (stats.failed_open, stats.failed_closed) == (1, 0)
    assert [(one.rpc, type(one.error)) for one in heard] == [("CheckMessages", Unavailable)]
    assert "not judged" in caplog.text


def test_open_runs_tools_and_hands_messages_on(nobody):
    with Client(nobody, retry=FAST, on_unavailable="open") as client:

        @client.guard_tool
        def bash(command: str) -> str:
            return f"ran {command}"

        assert bash("ls") == "ran ls"
        assert client.stats.failed_open == 2
        assert client.intercept_message("hello").message == "hello"
        assert client.intercept_params().decision == Decision.ALLOW


def test_a_redaction_is_never_faked(nobody):
    with Client(nobody, retry=FAST, on_unavailable="open") as client, pytest.raises(Unavailable):
        client.check_messages("jane.roe@corp-mail.net", redact=True)


@pytest.mark.parametrize("number", [0, 5, 77])
def test_a_decision_nobody_knows_blocks(fake, number):
    fake.tool_answers = iter([{"decision": number, "args_json": "{}"}])
    with Client(fake.address) as client, pytest.raises(Blocked):
        client.guard_tool(lambda x: x, name="tool")("x")


def test_uploads_are_not_sent_twice(fake, tmp_path):
    (tmp_path / "SKILL.md").write_text("x")
    fake.act = unavailable_until(99)
    with Client(fake.address, retry=FAST) as client:
        with pytest.raises(Unavailable):
            client.review_bundle(tmp_path)
        assert (len(fake.calls), client.stats.retries) == (1, 0)


def test_metadata_and_defaults(fake):
    defaults = {"agent_id": "a", "session_key": "s", "tenant": "t", "labels": {"k": "v", "l": "w"}}
    with Client(fake.address, token="secret", submitter="ada", policy="strict", context=defaults) as client:
        client.check_messages("hello")
        client.check_messages("hello", policy="", context={"agent_id": "b", "labels": {"k": "x"}})
        assert "secret" not in repr(client)
    (first, metadata), (second, _) = fake.calls
    assert metadata["authorization"] == "Bearer secret"
    assert metadata["portcullis-submitter"] == "ada"
    assert first.policy == "strict"
    assert (first.context.agent_id, first.context.tenant, dict(first.context.labels)) == ("a", "t", defaults["labels"])
    assert second.policy == ""
    assert (second.context.agent_id, second.context.session_key) == ("b", "s")
    assert dict(second.context.labels) == {"k": "x", "l": "w"}


def test_a_token_file_is_read_again_when_it_changes(fake, tmp_path):
    file = tmp_path / "token"
    file.write_text("one\n")
    with Client(fake.address, token=file) as client:
        client.check_messages("hello")
        client.check_messages("hello")
        # As Kubernetes does it: another file in its place.
        (tmp_path / "next").write_text("two!\n")
        os.replace(tmp_path / "next", file)
        client.check_messages("hello")
        file.unlink()
        with pytest.raises(ConfigurationError, match="cannot be read"):
            client.check_messages("hello")
    assert [metadata["authorization"] for _, metadata in fake.calls] == ["Bearer one", "Bearer one", "Bearer two!"]


def test_a_token_function_is_asked_for_each_call(fake):
    tokens = iter(["one", "two"])
    with Client(fake.address, token=lambda: next(tokens)) as client:
        client.check_messages("hello")
        client.check_messages("hello")

    async def later():
        return "three"

    async def run():
        async with AsyncClient(fake.address, token=later) as client:
            await client.check_messages("hello")

    asyncio.run(run())
    assert [metadata["authorization"][7:] for _, metadata in fake.calls] == ["one", "two", "three"]
    with Client(fake.address, token=later) as client, pytest.raises(ConfigurationError, match="AsyncClient"):
        client.check_messages("hello")


@pytest.mark.parametrize("token", ["", "  ", "two\r\nlines", "ü"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_shown(fake, token):
    with pytest.raises(ConfigurationError, match="token") as refused:
        Client(fake.address, token=token)
    assert token.strip() == "" or token not in str(refused.value)


def test_a_token_does_not_cross_the_network_in_plain_text():
    for address in ("10.0.0.1:50051", "portcullis:50051", "dns:///portcullis:50051", ["127.0.0.1:1", "10.0.0.1:1"]):
        with pytest.raises(ConfigurationError, match="plain text"):
            Client(address, token="secret")
    Client("10.0.0.1:50051", token="secret", tls=False).close()
    for address in ("127.0.0.1:50051", "localhost:1", "[::1]:1", "dns:///localhost:1", "ipv4:127.0.0.1:1", "unix:/x"):
        Client(address, token="secret").close()


@pytest.mark.parametrize(
    "target",
    ["", "localhost", "127.0.0.1:", "127.0.0.1:99999", "ftp://x:1", "http://x", [], ["dns:///a:1", "b:1"],
     ["http://a:1", "https://b:1"]],
    ids=str,
)  # fmt: skip
def test_an_address_that_cannot_be_meant_is_refused(target):
    with pytest.raises(ConfigurationError, match="target"):
        Client(target)


@pytest.mark.parametrize(
    "settings", [{"on_unavailable": "maybe"}, {"keepalive_s": 0}, {"target": "http://a:1", "tls": True}], ids=str
)
def test_settings_that_cannot_be_meant_are_refused(settings):
    with pytest.raises(ConfigurationError):
        Client(**settings)


def test_the_trace_of_the_caller_is_handed_on(fake):
    from opentelemetry.sdk.trace import TracerProvider

    tracer = TracerProvider().get_tracer("test")
    with Client(fake.address) as client:
        client.check_messages("outside of a span")
        with tracer.start_as_current_span("agent") as span:
            client.check_messages("inside")
    assert "traceparent" not in fake.calls[0][1]
    trace_id = f"{span.get_span_context().trace_id:032x}"
    assert fake.calls[1][1]["traceparent"].split("-")[1] == trace_id

    async def run():
        async with AsyncClient(fake.address) as client:
            with tracer.start_as_current_span("agent") as span:
                await client.check_messages("inside")
                return f"{span.get_span_context().trace_id:032x}"

    trace_id = asyncio.run(run())
    assert fake.calls[2][1]["traceparent"].split("-")[1] == trace_id


def test_a_closed_client_says_so(server):
    client = Client(server.grpc)
    client.close()
    with pytest.raises(ConfigurationError, match="closed"):
        client.check_messages("hello")


def test_the_http_listener_is_no_grpc_service(server):
    with Client(server.http, retry=FAST) as client, pytest.raises(ServiceError):
        client.check_messages("hello")


@both
def test_a_wrong_token_is_refused_by_a_real_server(server, kind):
    stats, error = ask(server.grpc, kind, token="wrong", on_unavailable="open")
    assert isinstance(error, Unauthenticated)
    assert "token" in str(error)
    assert stats.failed_open == 0
    _, answer = ask(server.grpc, kind, token=server.admin_token)
    assert answer.decision == Decision.ALLOW


def requests_of(server):
    """How many CheckMessages a server has answered, by its own count."""
    import urllib.request

    with urllib.request.urlopen(f"http://{server.http}/metrics", timeout=WAIT_S) as answer:
        lines = answer.read().decode().splitlines()
    counted = [
        line for line in lines if line.startswith("portcullis_requests_total{") and 'rpc="CheckMessages"' in line
    ]
    return sum(float(line.rsplit(" ", 1)[1]) for line in counted)


@both
def test_calls_go_to_all_addresses_in_turn_and_around_one_that_is_down(tmp_path, kind, nobody):
    with running_server(tmp_path / "a") as one, running_server(tmp_path / "b") as two:
        target = [nobody, one.grpc, f"localhost:{two.grpc.rsplit(':')[-1]}"]

        def many(count):
            if kind == "threads":
                with Client(target) as client:
                    ask_until_both(client.check_messages)
                    for _ in range(count):
                        client.check_messages("hello")
                    return

            async def run():
                async with AsyncClient(target) as client:
                    deadline = time.monotonic() + WAIT_S
                    while min(requests_of(one), requests_of(two)) < 1:
                        assert time.monotonic() < deadline
                        await client.check_messages("hello")
                    for _ in range(count):
                        await client.check_messages("hello")

            asyncio.run(run())

        def ask_until_both(check):
            deadline = time.monotonic() + WAIT_S
            while min(requests_of(one), requests_of(two)) < 1:
                assert time.monotonic() < deadline, "one of two addresses is never asked"
                check("hello")

        many(20)
        # In turn: of the twenty after both were connected, each got its half.
        assert min(requests_of(one), requests_of(two)) >= 10


def test_a_name_is_looked_up_by_grpc(server):
    port = server.grpc.rsplit(":", 1)[1]
    with Client(f"dns:///localhost:{port}") as client:
        assert client.check_messages("hello").decision == Decision.ALLOW


def test_names_nobody_knows_are_unavailable_not_a_crash():
    with Client(["nobody.invalid:1", "noone.invalid:2"], retry=Retry(attempts_max=1)) as client:
        with pytest.raises(Unavailable):
            client.check_messages("hello", timeout=WAIT_S)


def test_a_server_that_comes_back_is_found_again(tmp_path):
    with running_server(tmp_path / "a") as first:
        address = first.grpc
        client = Client(address, retry=Retry(attempts_max=1))
        assert client.check_messages("hello").decision == Decision.ALLOW
    with pytest.raises(Unavailable):
        client.check_messages("hello")
    with running_server(tmp_path / "b", listen=address):
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                assert client.check_messages("hello").decision == Decision.ALLOW
                break
            except Unavailable:
                assert time.monotonic() < deadline, "it is not found again"
                time.sleep(0.02)
    client.close()
