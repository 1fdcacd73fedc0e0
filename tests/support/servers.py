"""Starts built servers for tests in Python, and keeps what they leave where the search for secrets finds it.

With PORTCULLIS_TEST_LOGS each server gets a folder there, with what it printed, its metrics and its audit files.
"""

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time
import urllib.request

# How long a start and a stop may take on a busy machine.
WAIT_S = 40
_numbers = itertools.count()


def until(check, what, within_s=WAIT_S, pause_s=0.02):
    """What `check` answers as soon as that is something true; fails after `within_s`."""
    end = time.monotonic() + within_s
    while True:
        if found := check():
            return found
        assert time.monotonic() < end, f"not within {within_s} s: {what}"
        time.sleep(pause_s)


class Server:
    """One process. `settings` is its settings file as data; `args` are more flags."""

    def __init__(self, folder, settings=None, listen="127.0.0.1:0", http_listen="127.0.0.1:0", env=None, args=()):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        # JSON is YAML.
        (self.folder / "portcullis.yaml").write_text(json.dumps(settings or {}))
        self.log, self.out = [], []
        self._heard, self._serving, self._dumped = threading.Event(), {}, False
        command = [os.environ["TEST_SERVER"], "serve", "--listen", listen, "--http-listen", http_listen]
        self.process = subprocess.Popen(
            [*command, "--data-dir", "data", *args],
            cwd=self.folder,
            env=env or {},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        # Both are read to the end, so that a full pipe never blocks the server.
        self._readers = [
            threading.Thread(target=self._read, args=[stream, lines], daemon=True)
            for stream, lines in ((self.process.stderr, self.log), (self.process.stdout, self.out))
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream, lines):
        for line in stream:
            lines.append(line)
            if stream is self.process.stderr and not self._serving and '"message":"serving"' in line:
                self._serving = json.loads(line)
                self._heard.set()
        if stream is self.process.stderr:
            self._heard.set()

    def wait(self):
        """Waits until it serves."""
        self._heard.wait(WAIT_S)
        assert self._serving, "the server did not start:\n" + "".join(self.log)
        return self

    @property
    def grpc(self):
        """Address of the gRPC listener."""
        return self._serving["grpc"]

    @property
    def http(self):
        """Address of the HTTP listener."""
        return self._serving["http"]

    @property
    def data(self):
        """Its data folder."""
        return self.folder / "data"

    @property
    def admin_token(self):
        """What changes of state need with `auth.mode: none`."""
        return (self.data / "admin-token").read_text().strip()

    def metrics_text(self):
        """What a scraper gets."""
        with urllib.request.urlopen(f"http://{self.http}/metrics", timeout=WAIT_S) as answer:
            return answer.read().decode()

    def metrics(self):
        """Values by series, such as `portcullis_audit_records_total` or `…{policy="x"}`."""
        lines = (line for line in self.metrics_text().splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def metric(self, name):
        """One value; 0 while nothing was counted."""
        return self.metrics().get(name, 0.0)

    def audit_lines(self):
        """Whole lines of the audit file as data."""
        file = self.data / "audit" / "audit.jsonl"
        text = file.read_text() if file.exists() else ""
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def stop(self):
        """SIGTERM, and its end in good order."""
        metrics = self._metrics_at_the_end()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(WAIT_S)
        self._end(metrics)
        assert code == 0, f"SIGTERM ends the server in good order, not with {code}:\n" + "".join(self.log[-50:])

    def kill(self):
        """The end without any order."""
        metrics = self._metrics_at_the_end() if not self._dumped and self._serving else ""
        self.process.kill()
        self.process.wait()
        self._end(metrics)

    def _metrics_at_the_end(self):
        # It may be gone already.
        with contextlib.suppress(OSError):
            return self.metrics_text()
        return ""

    def _end(self, metrics):
        for reader in self._readers:
            reader.join(WAIT_S)
        if not self._dumped:
            self._dumped = True
            keep(self.folder, "".join(self.log), "".join(self.out), metrics)


def keep(folder, log, out="", metrics=""):
    """Keeps what one server leaves, if somebody asks for it."""
    where = os.environ.get("PORTCULLIS_TEST_LOGS")
    if not where:
        return
    suite = pathlib.Path.cwd().name
    kept = pathlib.Path(where) / f"{suite}-{os.getpid()}-{next(_numbers)}"
    kept.mkdir(parents=True)
    for name, text in (("stderr.log", log), ("stdout.log", out), ("metrics.txt", metrics)):
        (kept / name).write_text(text)
    for file in pathlib.Path(folder).glob("data/audit/*"):
        shutil.copy(file, kept / file.name)


@contextlib.contextmanager
def running(folder, settings=None, **more):
    """A server that serves, and is stopped at the end."""
    server = Server(folder, settings, **more)
    try:
        server.wait()
        yield server
        server.stop()
    finally:
        server.kill()
