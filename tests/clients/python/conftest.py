"""Starts the built server on free ports: once for all tests, or with settings of its own for some of them."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import urllib.request
from types import SimpleNamespace

import grpc
import pytest

# The policies that cases name.
POLICIES = pathlib.Path(__file__).parent.parent.parent / "cases" / "policies"
# How long a start and a stop may take on a busy machine.
WAIT_S = 30


def keep(folder: pathlib.Path, log: list[str], metrics: str):
    """Keeps what a server leaves below PORTCULLIS_TEST_LOGS, where it is searched for secrets."""
    where = os.environ.get("PORTCULLIS_TEST_LOGS")
    if not where:
        return
    kept = pathlib.Path(tempfile.mkdtemp(prefix="clients-python-", dir=where))
    (kept / "stderr.log").write_text("".join(log))
    (kept / "metrics.txt").write_text(metrics)
    for file in folder.glob("data/audit/*"):
        shutil.copy(file, kept)


def metrics_of(serving: dict[str, str]) -> str:
    """What a scraper would get; empty when nobody answers any more."""
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{serving['http']}/metrics", timeout=WAIT_S) as answer:
        return answer.read().decode()
    return ""


@contextlib.contextmanager
def running_server(folder: pathlib.Path, settings: str = "", policies: pathlib.Path = POLICIES):
    """A server in a folder of its own: its addresses `grpc` and `http`, and its admin token."""
    (folder / "portcullis.yaml").write_text(settings)
    command = [os.environ["TEST_SERVER"], "serve", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"]
    log: list[str] = []
    serving: dict[str, str] = {}
    heard = threading.Event()
    metrics = ""

    def read(stream):
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
        [*command, "--data-dir", str(folder / "data"), "--set", f"policy.path={policies}"],
        cwd=folder,
        env={},
        stderr=subprocess.PIPE,
        text=True,
    )
    reader = threading.Thread(target=read, args=[process.stderr], daemon=True)
    reader.start()
    try:
        heard.wait(WAIT_S)
        assert serving, "the server did not start:\n" + "".join(log)
        token = (folder / "data" / "admin-token").read_text().strip()
        yield SimpleNamespace(**serving, admin_token=token, pid=process.pid)
        metrics = metrics_of(serving)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0, "SIGTERM ends the server in good order:\n" + "".join(log)
    finally:
        process.kill()
        process.wait()
        reader.join(WAIT_S)
        keep(folder, log, metrics)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The addresses of a running server: `grpc` and `http`."""
    with running_server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="session")
def channel(server):
    """A channel to the server."""
    with grpc.insecure_channel(server.grpc) as channel:
        yield channel
