"""Real child processes under watch: what passes through, what is killed, and what happens when nobody watches."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

from conftest import WAIT_S, running_server
from fakes import fake_server
from portcullis import (
    AsyncClient,
    Client,
    ConfigurationError,
    InvalidRequest,
    Retry,
    ServiceError,
    Timeouts,
    Unavailable,
)
from portcullis.v1 import incident_service_pb2, incident_service_pb2_grpc, monitor_pb2
from portcullis.v1 import policy_decision_service_pb2 as pdp

DANGER = "rm -rf --no-preserve-root /"

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at processes by way of /proc")

# Prints what its argument says, then lives on with two children, one of them stopped; tells all ids first.
LIVES_ON = """
import os, signal, subprocess, sys, time
sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
children = [subprocess.Popen(sleeper) for _ in range(2)]
children[1].send_signal(signal.SIGSTOP)
print("pids", os.getpid(), *(child.pid for child in children), flush=True)
print(sys.argv[1], flush=True)
time.sleep(600)
"""


def is_alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def until(done, what):
    deadline = time.monotonic() + WAIT_S
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def python(program, *arguments):
    return [sys.executable, "-c", program, *map(str, arguments)]


class Watching:
    """Starts and watches a command in one of three ways."""

    def __init__(self, kind):
        self.kind = kind

    def run(self, address, command, work=None, settings=None, own_session=True, pipes=None, during=None, **client):
        """The result, the stats of the client, and what the command wrote to both streams."""
        out, err = io.BytesIO(), io.BytesIO()
        settings = {"stdout": out, "stderr": err} | (settings or {})
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | (pipes or {})
        pipes["start_new_session"] = own_session
        if self.kind == "threads":
            with Client(address, **client) as it:
                process = subprocess.Popen(command, **pipes)
                watch = it.attach(process, work, **settings)
                if during:
                    during(watch, process, out)
                result, stats = watch.wait(WAIT_S), it.stats
        else:
            result, stats = asyncio.run(self._async(address, command, work, settings, pipes, during, out, client))
        return result, stats, out.getvalue(), err.getvalue()

    async def _async(self, address, command, work, settings, pipes, during, out, client):
        async with AsyncClient(address, **client) as it:
            if self.kind == "asyncio":
                process = await asyncio.create_subprocess_exec(*command, **pipes)
            else:
                process = subprocess.Popen(command, **pipes)
            watch = await it.attach(process, work, **settings)
            if during:
                await asyncio.to_thread(during, watch, process, out)
            return await watch.wait(WAIT_S), it.stats


@pytest.fixture(params=["threads", "asyncio", "asyncio with Popen"])
def watching(request):
    return Watching(request.param)


def test_a_dangerous_child_is_killed_with_its_group(server, watching, caplog):
    work = {"goal": "Fix the login test", "non_goals": ["Deleting things"], "labels": {"run": "7"}}
    result, stats, out, _ = watching.run(server.grpc, python(LIVES_ON, DANGER), work, {"session_id": "s-1"})
    assert result.killed_by == "verdict"
    assert result.killed
    assert result.exit_code == -9
    assert result.error is None
    assert result.verdict.verdict == monitor_pb2.VERDICT_KIND_KILL
    pids = [int(pid) for pid in out.decode().splitlines()[0].split()[1:]]
    assert len(pids) == 3
    until(lambda: not any(map(is_alive, pids)), "the group lives on")
    assert (stats.killed, stats.disconnects) == (1, 0)
    [incident] = result.incidents
    assert (incident.category, incident.matched_text, incident.session_id) == ("dangerous_command", DANGER, "s-1")
    assert incident.work.labels["run"] == "7"
    # The service has kept the same.
    with Client(server.grpc) as client:
        stub = incident_service_pb2_grpc.IncidentServiceStub(client.channel)
        request = incident_service_pb2.GetIncidentRequest(incident_id=incident.id)
        assert stub.GetIncident(request, timeout=WAIT_S).incident.verdict == monitor_pb2.VERDICT_KIND_KILL


def test_a_harmless_child_ends_as_it_likes(server, watching):
    program = "import sys; print('Compiling 12 crates'); print('warning: x', file=sys.stderr); sys.exit(7)"
    result, stats, out, err = watching.run(server.grpc, python(program))
    assert (result.exit_code, result.killed_by, result.error, result.incidents) == (7, None, None, [])
    assert (out, err) == (b"Compiling 12 crates\n", b"warning: x\n")
    assert result.summary.bytes == len(out) + len(err)
    assert result.summary.worst == monitor_pb2.VERDICT_KIND_SAFE
    assert stats.snapshot()["killed"] == 0


def test_a_child_that_ends_at_once(server, watching):
    result, _, out, _ = watching.run(server.grpc, ["true"])
    assert (result.exit_code, result.error, out) == (0, None, b"")
    assert result.summary.bytes == 0


def test_a_child_that_ended_before_it_was_watched(server):
    process = subprocess.Popen(["echo", "hello"], stdout=-1, stderr=-1, start_new_session=True)
    process.wait()
    out = io.BytesIO()
    with Client(server.grpc) as client:
        result = client.attach(process, stdout=out).wait(WAIT_S)
    assert (result.exit_code, result.error, out.getvalue()) == (0, None, b"hello\n")


def test_a_flood_is_scanned_to_the_last_byte(server, watching):
    size = 2 << 20
    program = f"import sys; [sys.stdout.buffer.write((b'x' * 63 + b'\\n') * 64) for _ in range({size // 4096})]"
    result, _, out, _ = watching.run(server.grpc, python(program))
    assert result.exit_code == 0
    assert result.summary.bytes == len(out) == size


def test_bytes_that_are_no_text_pass_unchanged(server, watching):
    data = bytes(range(256)) * 40 + "🙂 e\u0301 漢字".encode()[:-1]
    program = f"import sys; sys.stdout.buffer.write({data!r})"
    result, _, out, _ = watching.run(server.grpc, python(program))
    assert out == data
    assert result.summary.bytes == len(data)


def test_danger_behind_any_cut_is_found(server, watching):
    program = f"import os, time\nfor byte in {DANGER!r}.encode() + b'\\n': os.write(2, bytes([byte]))\ntime.sleep(600)"
    result, *_ = watching.run(server.grpc, python(program))
    assert result.killed_by == "verdict"
    assert [incident.stream for incident in result.incidents] == [monitor_pb2.OUTPUT_STREAM_STDERR]


def lost(tmp_path, watching, **settings):
    """A child whose server dies when the child has begun."""
    go = tmp_path / "go"
    program = (
        "import pathlib, sys, time\nprint('begun', flush=True)\n"
        "while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.01)\nprint('ended')"
    )
    with running_server(tmp_path) as server:

        def during(watch, process, out):
            until(lambda: out.getvalue(), "it does not begin")
            server.process.kill()
            server.process.wait()
            until(lambda: watch._session_over.is_set(), "nobody notices that the server is gone")
            go.touch()

        return watching.run(server.grpc, python(program, go), settings=settings, during=during)


def test_a_lost_connection_kills(tmp_path, watching, caplog):
    with caplog.at_level(logging.WARNING, "portcullis"):
        result, stats, out, _ = lost(tmp_path, watching)
    assert (result.killed_by, result.exit_code, result.summary) == ("disconnect", -9, None)
    assert isinstance(result.error, ServiceError)
    assert (stats.disconnects, stats.killed_on_disconnect, stats.unwatched, stats.killed) == (1, 1, 0, 0)
    assert b"ended" not in out
    assert "was killed" in caplog.text


def test_a_lost_connection_may_leave_the_child_alone(tmp_path, watching, caplog):
    with caplog.at_level(logging.WARNING, "portcullis"):
        result, stats, out, _ = lost(tmp_path, watching, on_disconnect="continue")
    assert (result.killed_by, result.exit_code, out) == (None, 0, b"begun\nended\n")
    assert isinstance(result.error, ServiceError)
    assert (stats.disconnects, stats.killed_on_disconnect, stats.unwatched) == (1, 0, 1)
    assert "unwatched" in caplog.text


def test_a_service_that_is_away_kills(nobody, watching):
    result, stats, *_ = watching.run(nobody, ["sleep", "600"], retry=Retry(attempts_max=1))
    assert (result.killed_by, stats.killed_on_disconnect) == ("disconnect", 1)
    assert isinstance(result.error, Unavailable)


def test_a_session_that_is_refused_kills(server, watching):
    result, stats, *_ = watching.run(server.grpc, ["sleep", "600"], settings={"policy": "nobody-wrote-it"})
    assert result.killed_by == "disconnect"
    assert isinstance(result.error, InvalidRequest)


def test_a_deadline_that_passes_kills(server, watching):
    result, *_ = watching.run(server.grpc, ["sleep", "600"], settings={"timeout": 0.5})
    assert result.killed_by == "disconnect"


def test_a_silent_server_at_the_end_is_a_lost_connection(watching):
    with fake_server() as fake:
        over = threading.Event()

        def session(requests):
            for _ in requests:
                pass
            over.wait(WAIT_S)
            yield from ()

        fake.session = session
        result, stats, *_ = watching.run(fake.address, ["true"], timeouts=Timeouts(summary_s=0.2))
        over.set()
    assert result.error is not None
    # It had ended by itself: nobody is left to kill.
    assert (result.exit_code, result.killed_by, stats.disconnects, stats.killed_on_disconnect) == (0, None, 1, 0)


def test_a_stream_that_ends_early_is_a_lost_connection(watching):
    with fake_server() as fake:
        fake.session = lambda requests: iter([pdp.StreamMonitorResponse(attached=pdp.Attached(session_id="s"))])
        result, *_ = watching.run(fake.address, ["sleep", "600"])
    assert result.killed_by == "disconnect"
    assert isinstance(result.error, ServiceError)


@pytest.mark.parametrize("number", [0, 3, 42])
def test_a_verdict_nobody_knows_kills(watching, number):
    with fake_server() as fake:

        def session(requests):
            next(requests)
            yield pdp.StreamMonitorResponse(verdict=monitor_pb2.Verdict(incident_id="i", verdict=number))
            for _ in requests:
                pass
            yield pdp.StreamMonitorResponse(summary=pdp.Summary())

        fake.session = session
        result, *_ = watching.run(fake.address, ["sleep", "600"])
    assert (result.killed_by, result.exit_code, result.error) == ("verdict", -9, None)


def test_the_protocol_as_spoken(watching):
    heard = []
    with fake_server() as fake:

        def session(requests):
            heard.extend(requests)
            yield pdp.StreamMonitorResponse(summary=pdp.Summary())

        fake.session = session
        program = "import sys; print('a', flush=True); print('b', file=sys.stderr, flush=True); sys.exit(3)"
        settings = {"session_id": "s", "context": {"agent_id": "x"}}
        result, *_ = watching.run(fake.address, python(program), "goal", settings, policy="strict")
    assert result.exit_code == 3
    kinds = [message.WhichOneof("kind") for message in heard]
    assert (kinds[0], kinds[-1], set(kinds[1:-1])) == ("attach", "detach", {"chunk"})
    attach = heard[0].attach
    assert (attach.session_id, attach.work.goal, attach.context.agent_id, attach.policy) == ("s", "goal", "x", "strict")
    assert [message.chunk.seq for message in heard[1:-1]] == list(range(1, len(heard) - 1))
    for stream, written in ((1, b"a\n"), (2, b"b\n")):
        assert b"".join(message.chunk.data for message in heard if message.chunk.stream == stream) == written
    assert heard[-1].detach.exit_code.value == 3


def test_silence_is_told_so_that_the_session_stays(watching, monkeypatch):
    monkeypatch.setattr("portcullis.session.SILENCE_S", 0.05)
    heard = []
    with fake_server() as fake:
        go = threading.Event()

        def session(requests):
            for message in requests:
                heard.append(message)
                if len(heard) == 4:
                    go.set()
            yield pdp.StreamMonitorResponse(summary=pdp.Summary())

        fake.session = session
        read, write = os.pipe()

        def during(watch, process, out):
            assert go.wait(WAIT_S)
            os.close(write)

        result, *_ = watching.run(fake.address, ["cat"], pipes={"stdin": read}, during=during)
        os.close(read)
    assert (result.exit_code, result.error) == (0, None)
    chunks = [message.chunk for message in heard if message.HasField("chunk")]
    assert {chunk.data for chunk in chunks} == {b""}
    assert [chunk.seq for chunk in chunks] == list(range(1, len(chunks) + 1))


def test_a_slow_server_slows_the_child_down(watching):
    size = 64 << 20
    with fake_server() as fake:
        go = threading.Event()
        seen = 0

        def session(requests):
            nonlocal seen
            next(requests)
            assert go.wait(WAIT_S)
            for message in requests:
                seen += len(message.chunk.data)
            yield pdp.StreamMonitorResponse(summary=pdp.Summary())

        fake.session = session

        def is_full(watch):
            outbox = watch._outbox
            return outbox.full() if hasattr(outbox, "full") else len(outbox._waiting) == 64

        def during(watch, process, out):
            until(lambda: is_full(watch), "nothing piles up, and nothing holds it back")
            assert len(out.getvalue()) < size / 2
            assert is_alive(process.pid)
            go.set()

        program = f"import sys; [sys.stdout.buffer.write(b'x' * 65536) for _ in range({size >> 16})]"
        result, _, out, _ = watching.run(fake.address, python(program), during=during)
    assert (result.exit_code, len(out), seen) == (0, size, size)


def test_detach_leaves_the_child_alone(server):
    go_read, go_write = os.pipe()
    out = io.BytesIO()
    with Client(server.grpc) as client:
        process = subprocess.Popen(["cat"], stdin=go_read, stdout=-1, stderr=-1, start_new_session=True)
        watch = client.attach(process, stdout=out)
        os.write(go_write, b"watched\n")
        until(lambda: out.getvalue(), "nothing passes")
        result = watch.detach()
        assert (result.exit_code, result.killed_by, result.error) == (None, None, None)
        assert result.summary.bytes == 8
        assert process.poll() is None
        os.write(go_write, f"{DANGER}\n".encode())
        os.close(go_write)
        assert process.wait(WAIT_S) == 0
        until(lambda: DANGER.encode() in out.getvalue(), "its output no longer passes")
        assert watch.get_incidents() == []
        # Twice is no error.
        assert watch.detach().exit_code == 0
    os.close(go_read)


def test_detach_from_asyncio(server):
    async def run():
        async with AsyncClient(server.grpc) as client:
            process = await asyncio.create_subprocess_exec(
                "cat", stdin=-1, stdout=-1, stderr=-1, start_new_session=True
            )
            watch = await client.attach(process)
            result = await watch.detach()
            assert (result.exit_code, result.error) == (None, None)
            process.stdin.close()
            return await process.wait()

    assert asyncio.run(run()) == 0


def test_our_own_group_is_never_killed(server, watching, caplog):
    with caplog.at_level(logging.WARNING, "portcullis"):
        result, *_ = watching.run(server.grpc, ["sh", "-c", f"echo '{DANGER}'; exec sleep 600"], own_session=False)
    assert (result.killed_by, result.exit_code) == ("verdict", -9)
    assert "start_new_session=True" in caplog.text


def test_a_child_without_pipes_is_refused(server):
    process = subprocess.Popen(["true"])
    with Client(server.grpc) as client, pytest.raises(ConfigurationError, match="subprocess.PIPE"):
        client.attach(process)
    process.wait()


def test_a_stream_nobody_reads_is_told(server, watching, caplog):
    result, *_ = watching.run(server.grpc, ["sleep", "0.2"], pipes={"stderr": None})
    assert result.unwatched == ("stderr",)
    result, _, out, _ = watching.run(
        server.grpc, ["sh", "-c", "sleep 0.2; echo x >&2"], pipes={"stderr": subprocess.STDOUT}
    )
    assert (result.unwatched, out) == ((), b"x\n")
    result, *_ = watching.run(server.grpc, ["sleep", "0.2"], pipes={"stderr": subprocess.DEVNULL})
    assert result.unwatched == ()


def test_text_pipes_are_read_as_bytes(server):
    out = io.BytesIO()
    process = subprocess.Popen(["printf", "a\\r\\nb"], stdout=-1, stderr=-1, text=True, start_new_session=True)
    with Client(server.grpc) as client:
        client.attach(process, stdout=out).wait(WAIT_S)
    assert out.getvalue() == b"a\r\nb"


def test_callbacks_hear_and_cannot_break_anything(server, watching, caplog):
    heard = []

    def fails(told):
        heard.append(type(told).__name__)
        raise ValueError("mine")

    settings = {"on_incident": fails, "on_verdict": fails, "stdout": fails, "stderr": None}
    result, *_ = watching.run(server.grpc, ["sh", "-c", f"echo '{DANGER}'; exec sleep 600"], settings=settings)
    assert result.killed_by == "verdict"
    assert sorted(heard) == ["Incident", "Verdict", "bytes"]
    assert "watched" in caplog.text


def test_settings_that_cannot_be_meant_are_refused(server):
    process = subprocess.Popen(["true"], stdout=-1, stderr=-1)
    with Client(server.grpc) as client:
        for settings in ({"on_disconnect": "maybe"}, {"work_context": {"gaol": "x"}}, {"timeout": 0}):
            with pytest.raises(ConfigurationError):
                client.attach(process, **settings)
    process.communicate()


def test_leaving_by_an_exception_kills(server):
    process = subprocess.Popen(["sleep", "600"], stdout=-1, stderr=-1, start_new_session=True)
    with Client(server.grpc) as client, pytest.raises(ValueError), client.attach(process):
        raise ValueError
    assert process.wait(WAIT_S) == -9


def test_closing_the_client_is_a_lost_connection(server):
    client = Client(server.grpc)
    process = subprocess.Popen(["sleep", "600"], stdout=-1, stderr=-1, start_new_session=True)
    watch = client.attach(process)
    client.close()
    assert watch.wait(WAIT_S).killed_by == "disconnect"

    async def run():
        client = AsyncClient(server.grpc)
        process = await asyncio.create_subprocess_exec("sleep", "600", stdout=-1, stderr=-1, start_new_session=True)
        watch = await client.attach(process)
        await client.close()
        return await watch.wait(WAIT_S)

    assert asyncio.run(run()).killed_by == "disconnect"


def test_a_flood_of_danger_is_killed(server, watching):
    # Without the end it would go on; what is on its way when it is killed is scanned all the same.
    result, *_ = watching.run(server.grpc, ["sh", "-c", f"yes '{DANGER}' | head -n 4000; exec sleep 600"])
    assert (result.killed_by, result.exit_code) == ("verdict", -9)


def test_a_child_that_stops_itself_is_killed(server, watching):
    # Being continued before it is killed, it may take a step: that must not be its end.
    result, *_ = watching.run(server.grpc, ["sh", "-c", f"echo '{DANGER}'; kill -STOP $$; exec sleep 600"])
    assert (result.killed_by, result.exit_code) == ("verdict", -9)


def test_a_frozen_server_is_a_lost_connection(tmp_path, watching):
    """Its connection stays open, so only pings can tell; a child must not run on unwatched meanwhile."""
    frozen_at = []
    with running_server(tmp_path) as server:

        def is_watched():
            with urllib.request.urlopen(f"http://{server.http}/metrics", timeout=WAIT_S) as answer:
                return re.search(rb"^portcullis_monitor_streams 1$", answer.read(), re.M)

        def freeze(watch, process, out):
            # Earlier it would be a connection that is never made, which gRPC gives up after 20 s.
            until(is_watched, "the session does not begin")
            server.process.send_signal(signal.SIGSTOP)
            frozen_at.append(time.monotonic())

        try:
            command = ["sh", "-c", "echo started; exec sleep 600"]
            result, *_ = watching.run(server.grpc, command, during=freeze, keepalive_s=1)
        finally:
            server.process.send_signal(signal.SIGCONT)
    assert (result.killed_by, result.exit_code) == ("disconnect", -9)
    # A second until the ping and one for its answer, on a busy machine; gRPC's own limit would be a minute.
    assert time.monotonic() - frozen_at[0] < 20


PROGRAM_ENDS = """
import subprocess, sys
from portcullis import Client
process = subprocess.Popen(["sleep", "600"], stdout=-1, stderr=-1, start_new_session=True)
print(process.pid, flush=True)
client = Client(sys.argv[1])
watch = client.attach(process)
"""

ASYNC_PROGRAM_ENDS = """
import asyncio, sys
from portcullis import AsyncClient
async def main():
    process = await asyncio.create_subprocess_exec("sleep", "600", stdout=-1, stderr=-1, start_new_session=True)
    print(process.pid, flush=True)
    await AsyncClient(sys.argv[1]).attach(process)
    await asyncio.sleep(0.1)
asyncio.run(main())
"""


@pytest.mark.parametrize("program", [PROGRAM_ENDS, ASYNC_PROGRAM_ENDS], ids=["threads", "asyncio"])
def test_a_program_that_ends_leaves_nothing_unwatched(server, program):
    ran = subprocess.run(python(program, server.grpc), capture_output=True, text=True, timeout=WAIT_S)
    assert ran.returncode == 0, ran.stderr
    until(lambda: not is_alive(int(ran.stdout)), "the child lives on, and nobody watches it")


def test_waiting_has_an_end(server):
    process = subprocess.Popen(["sleep", "600"], stdout=-1, stderr=-1, start_new_session=True)
    with Client(server.grpc) as client:
        watch = client.attach(process)
        with pytest.raises(TimeoutError):
            watch.wait(0.05)
        watch.abandon()
        assert watch.wait(WAIT_S).killed_by == "disconnect"


def test_a_kill_leaves_the_exit_code_to_asyncio(monkeypatch):
    """Polling takes the exit code of a process that has just died away from asyncio, which then tells 255."""
    polled = []
    poll = subprocess.Popen.poll
    monkeypatch.setattr(subprocess.Popen, "poll", lambda process: polled.append(process.pid) or poll(process))

    async def run():
        with fake_server() as fake:

            def session(requests):
                next(requests)
                yield pdp.StreamMonitorResponse(verdict=monitor_pb2.Verdict(incident_id="i", verdict=3))
                for _ in requests:
                    pass
                yield pdp.StreamMonitorResponse(summary=pdp.Summary())

            fake.session = session
            async with AsyncClient(fake.address) as client:
                process = await asyncio.create_subprocess_exec(
                    "sleep", "600", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, start_new_session=True
                )
                watch = await client.attach(process, "goal")
                return (await watch.wait()).exit_code

    assert asyncio.run(run()) == -9
    assert not polled
