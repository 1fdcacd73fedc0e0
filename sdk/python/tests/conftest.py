"""Starts the built server on free ports: once for all tests, or with settings of its own for some of them."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from portcullis import Client, Retry

ROOT = pathlib.Path(__file__).resolve().parents[3]
# How long anything may take on a busy machine.
WAIT_S = 30

# A policy with one interceptor for each answer a guard may get.
POLICY = {
    "name": "default",
    "interceptors": [
        {
            "id": "t:ask",
            "hook": "tool.before",
            "tools": "^pay$",
            "allow_unknown_tools": True,
            "when": "args.amount > 100",
            "do": [{"ask": "More than 100 needs a person."}],
        },
        {
            "id": "t:change",
            "hook": "tool.before",
            "tools": "^greet$",
            "allow_unknown_tools": True,
            "when": 'has(args.name) && args.name == "eve"',
            "do": [{"merge_args": {"name": "Eve", "loud": True, "extra": None}}],
        },
        {
            "id": "t:after",
            "hook": "tool.after",
            "tools": "^leak$",
            "allow_unknown_tools": True,
            "when": 'string(result).contains("forbidden")',
            "do": [{"block": "Forbidden things stay inside."}],
        },
    ],
}


def keep(folder: pathlib.Path, log: list[str]) -> None:
    """Keeps log and audit files of a server below PORTCULLIS_TEST_LOGS, where they are searched for secrets."""
    where = os.environ.get("PORTCULLIS_TEST_LOGS")
    if where:
        kept = pathlib.Path(tempfile.mkdtemp(prefix="sdk-python-", dir=where))
        (kept / "stderr.log").write_text("".join(log))
        for file in folder.glob("data/audit/*"):
            shutil.copy(file, kept)


class Server(SimpleNamespace):
    """A running server: `grpc` and `http` addresses, `admin_token`, and its process."""

    grpc: str
    http: str
    admin_token: str
    process: subprocess.Popen[str]


@contextlib.contextmanager
def running_server(
    folder: pathlib.Path,
    settings: dict[str, Any] | None = None,
    listen: str = "127.0.0.1:0",
    policy: dict[str, Any] | None = None,
) -> Iterator[Server]:
    """A server in a folder of its own."""
    (folder / "policies").mkdir(parents=True, exist_ok=True)
    # JSON is YAML.
    (folder / "policies" / "default.yaml").write_text(json.dumps(policy or POLICY))
    (folder / "portcullis.yaml").write_text(json.dumps({"policy": {"path": "policies"}} | (settings or {})))
    command = [os.environ["TEST_SERVER"], "serve", "--listen", listen, "--http-listen", "127.0.0.1:0"]
    log: list[str] = []
    serving: dict[str, str] = {}
    heard = threading.Event()

    def read(stream: Any) -> None:
        # Read to the end, so that a full pipe never blocks the server.
        for line in stream:
            log.append(line)
            if not serving and line.startswith("{"):
                event = json.loads(line)
                if event.get("message") == "serving" and "grpc" in event:
                    serving.update(grpc=event["grpc"], http=event["http"])
                    heard.set()
        heard.set()

    process = subprocess.Popen(
        [*command, "--data-dir", str(folder / "data")], cwd=folder, env={}, stderr=subprocess.PIPE, text=True
    )
    reader = threading.Thread(target=read, args=[process.stderr], daemon=True)
    reader.start()
    try:
        heard.wait(WAIT_S)
        assert serving, "the server did not start:\n" + "".join(log)
        # Where callers have credentials there is no such token.
        file = folder / "data" / "admin-token"
        token = file.read_text().strip() if file.exists() else ""
        yield Server(**serving, admin_token=token, process=process, log=log)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_S) == 0, "SIGTERM ends the server in good order:\n" + "".join(log)
    finally:
        process.kill()
        process.wait()
        reader.join(WAIT_S)
        keep(folder, log)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.grpc) as client:
        yield client


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody listens: bound, so that no one else takes it, and never listened on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def away(nobody: str) -> Iterator[Client]:
    """A client whose service is away."""
    with Client(nobody, retry=Retry(attempts_max=1)) as client:
        yield client
