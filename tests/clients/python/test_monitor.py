"""A real child process under StreamMonitor, watched by the script beside this file and killed when it is told to."""

import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from portcullis.v1 import (
    incident_service_pb2,
    incident_service_pb2_grpc,
    monitor_pb2,
    policy_decision_service_pb2,
    policy_decision_service_pb2_grpc,
)

HERE = pathlib.Path(__file__).parent
OUTPUT = HERE.parent.parent / "cases" / "stream_monitor" / "output"
TIMEOUT_S = 30

# Prints a file, then lives on with a child of its own; tells both process ids on standard error.
LIVES_ON = """
import os, pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(f"pids {os.getpid()} {child.pid}", file=sys.stderr, flush=True)
print(pathlib.Path(sys.argv[1]).read_text(), flush=True)
time.sleep(60)
"""

# Prints a harmless line on each stream and ends with code 7.
HARMLESS = """
import sys
print("Compiling 12 crates")
print("warning: unused variable", file=sys.stderr)
sys.exit(7)
"""


def watch(server, program, *arguments):
    command = [sys.executable, HERE / "watch.py", server.grpc, sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)


def is_alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at processes by way of /proc")
def test_a_dangerous_child_is_killed_with_its_group(server, channel):
    ran = watch(server, LIVES_ON, OUTPUT / "certain.txt")
    assert ran.returncode == 86, ran.stderr
    lines = ran.stderr.splitlines()
    pids = next(line for line in lines if line.startswith("pids ")).split()[1:]
    until = time.monotonic() + TIMEOUT_S
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < until, "the group lives on"
        time.sleep(0.01)
    assert "Tidying up" in ran.stdout, "the output passes through"
    summary = json.loads(lines[-1])
    assert summary["worst"] == "VERDICT_KIND_KILL"
    incident = summary["incidents"][0]
    assert incident["category"] == "dangerous_command"
    assert incident["action"] == "INCIDENT_ACTION_KILL_ADVISED"
    # The service has kept it.
    stub = incident_service_pb2_grpc.IncidentServiceStub(channel)
    request = incident_service_pb2.GetIncidentRequest(incident_id=incident["id"])
    kept = stub.GetIncident(request, timeout=TIMEOUT_S).incident
    assert kept.rule_id == incident["rule_id"]
    assert kept.verdict == monitor_pb2.VERDICT_KIND_KILL


def test_a_harmless_child_ends_as_it_likes(server):
    ran = watch(server, HARMLESS)
    assert ran.returncode == 7, ran.stderr
    assert ran.stdout == "Compiling 12 crates\n"
    lines = ran.stderr.splitlines()
    assert lines[0] == "warning: unused variable"
    summary = json.loads(lines[-1])
    assert summary.get("incidents", []) == []
    assert summary["worst"] == "VERDICT_KIND_SAFE"
    assert int(summary["bytes"]) == len(ran.stdout) + len(lines[0]) + 1


def test_a_chunk_before_attach_is_a_precondition(channel):
    stub = policy_decision_service_pb2_grpc.PolicyDecisionServiceStub(channel)
    chunk = policy_decision_service_pb2.Chunk(stream=monitor_pb2.OUTPUT_STREAM_STDOUT, data=b"x")
    request = policy_decision_service_pb2.StreamMonitorRequest(chunk=chunk)
    with pytest.raises(grpc.RpcError) as refused:
        list(stub.StreamMonitor(iter([request]), timeout=TIMEOUT_S))
    assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    failure = error_details_pb2.PreconditionFailure()
    details = [any for any in rpc_status.from_call(refused.value).details if any.Is(failure.DESCRIPTOR)]
    details[0].Unpack(failure)
    assert [violation.type for violation in failure.violations] == ["NOT_ATTACHED"]


def test_a_flood_of_short_lines_slows_its_senders_and_ends_no_session(server, channel):
    """gRPC sends each of these in a frame of its own; all wait on one connection while the server does not run."""
    lines = [b'src/a.py:12: password = get("x")\n', b"find . -name x\n"]
    sessions, count = 8, 1_500
    monitor = policy_decision_service_pb2_grpc.PolicyDecisionServiceStub(channel)

    def said():
        yield policy_decision_service_pb2.StreamMonitorRequest(attach=policy_decision_service_pb2.Attach())
        for number in range(count):
            chunk = policy_decision_service_pb2.Chunk(
                stream=monitor_pb2.OUTPUT_STREAM_STDOUT, data=lines[number % 2], seq=number + 1
            )
            yield policy_decision_service_pb2.StreamMonitorRequest(chunk=chunk)
        yield policy_decision_service_pb2.StreamMonitorRequest(detach=policy_decision_service_pb2.Detach())

    with concurrent.futures.ThreadPoolExecutor(sessions) as pool:
        streams = [monitor.StreamMonitor(said(), timeout=60) for _ in range(sessions)]
        for stream in streams:
            assert next(stream).attached.session_id
        # A busy machine, only more so: everything that is sent meanwhile waits unread.
        os.kill(server.pid, signal.SIGSTOP)
        time.sleep(0.7)
        os.kill(server.pid, signal.SIGCONT)
        ended = list(pool.map(lambda stream: list(stream)[-1], streams))
    assert [last.summary.chunks for last in ended] == [count] * sessions
