"""Watches a command with StreamMonitor and kills it when told: `watch.py ADDRESS COMMAND ARGUMENTS…`.

The output of the command passes through, and goes to the monitor as it comes. On a verdict KILL the whole process group
is continued and killed. The last line on standard error is the summary of the session as JSON. Exit code: that of the
command, 128 + N when signal N ended it, 86 when it was killed by a verdict, 87 when the monitor went away.
"""

import os
import queue
import signal
import subprocess
import sys
import threading

import grpc
from google.protobuf import json_format
from portcullis.v1 import monitor_pb2, policy_decision_service_pb2, policy_decision_service_pb2_grpc

CHUNK_BYTES = 16 * 1024
# Chunks on their way: when the monitor cannot keep up, the command waits.
QUEUE_MAX = 64
KILLED = 86
DISCONNECTED = 87

Request = policy_decision_service_pb2.StreamMonitorRequest


def kill_group(process: subprocess.Popen) -> None:
    """Kills every process of the group; one that is stopped is continued first."""
    for name in (signal.SIGCONT, signal.SIGKILL):
        try:
            os.killpg(process.pid, name)
        except ProcessLookupError:
            return


def watch(address: str, command: list[str], session_id: str = "") -> int:
    """Runs the command under the monitor at `address`; answers the exit code."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    requests: queue.Queue = queue.Queue(QUEUE_MAX)
    attach = policy_decision_service_pb2.Attach(session_id=session_id, acks=True)
    requests.put(Request(attach=attach))
    numbering = threading.Lock()
    counted = 0

    def forward(stream, output, to):
        nonlocal counted
        while data := os.read(stream.fileno(), CHUNK_BYTES):
            # Numbers must go out in their order.
            with numbering:
                counted += 1
                chunk = policy_decision_service_pb2.Chunk(stream=output, data=data, seq=counted)
                requests.put(Request(chunk=chunk))
            to.write(data)
            to.flush()

    def detach_at_the_end():
        for reader in readers:
            reader.join()
        code = process.wait()
        detach = policy_decision_service_pb2.Detach()
        detach.exit_code.value = code if code >= 0 else 128 - code
        requests.put(Request(detach=detach))
        requests.put(None)

    readers = [
        threading.Thread(target=forward, args=arguments, daemon=True)
        for arguments in (
            (process.stdout, monitor_pb2.OUTPUT_STREAM_STDOUT, sys.stdout.buffer),
            (process.stderr, monitor_pb2.OUTPUT_STREAM_STDERR, sys.stderr.buffer),
        )
    ]
    for thread in [*readers, threading.Thread(target=detach_at_the_end, daemon=True)]:
        thread.start()

    was_killed = False
    summary = None
    try:
        with grpc.insecure_channel(address) as channel:
            stub = policy_decision_service_pb2_grpc.PolicyDecisionServiceStub(channel)
            for answer in stub.StreamMonitor(iter(requests.get, None)):
                kind = answer.WhichOneof("kind")
                # A verdict that is not understood is taken for the strongest.
                if kind == "verdict" and answer.verdict.verdict not in (
                    monitor_pb2.VERDICT_KIND_SAFE,
                    monitor_pb2.VERDICT_KIND_WARN,
                ):
                    was_killed = True
                    kill_group(process)
                elif kind == "summary":
                    summary = answer.summary
    except grpc.RpcError as error:
        print(f"the monitor went away: {error.code().name}: {error.details()}", file=sys.stderr)
    if summary is None:
        kill_group(process)
    else:
        text = json_format.MessageToJson(summary, indent=None, preserving_proto_field_name=True)
        print(text, file=sys.stderr, flush=True)
    code = process.wait()
    if was_killed:
        return KILLED
    if summary is None:
        return DISCONNECTED
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: watch.py ADDRESS COMMAND ARGUMENTS…")
    sys.exit(watch(sys.argv[1], sys.argv[2:]))
