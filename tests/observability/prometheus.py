"""A Prometheus that runs within a block, and what it answers."""

import contextlib
import json
import math
import pathlib
import re
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

WAIT_S = 30


class Prometheus:
    """The HTTP API of a running Prometheus."""

    def __init__(self, address: str):
        self.address = address

    def get(self, path: str, **parameters: str) -> dict:
        """The `data` of an answer; an error of Prometheus is an assertion with its words."""
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def values(self, expr: str) -> list[float]:
        """The finite values that a query has now."""
        found = (float(series["value"][1]) for series in self.get("query", query=expr)["result"])
        return [value for value in found if math.isfinite(value)]

    def series(self, expr: str) -> list[dict]:
        """The labels of the series that a query has now."""
        return [series["metric"] for series in self.get("query", query=expr)["result"]]

    def active_alerts(self) -> set[tuple[str, str]]:
        """Name and severity of the alerts that are pending or firing."""
        return {(one["labels"]["alertname"], one["labels"]["severity"]) for one in self.get("alerts")["alerts"]}


def until(condition, what: str, seconds: float = WAIT_S):
    """What `condition` answers as soon as that is true; asked a few times a second."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.2)
    return answer


def is_ready(address: str) -> bool:
    """Whether it has read its data, before which it answers no query."""
    try:
        with urllib.request.urlopen(f"http://{address}/-/ready", timeout=WAIT_S):
            return True
    except urllib.error.HTTPError:
        return False


@contextlib.contextmanager
def running(folder: pathlib.Path, config: str):
    """A Prometheus with that configuration, on a free port, its data in `folder`."""
    (folder / "prometheus.yaml").write_text(config)
    command = ["prometheus", f"--config.file={folder / 'prometheus.yaml'}", f"--storage.tsdb.path={folder / 'data'}"]
    process = subprocess.Popen(
        [*command, "--web.listen-address=127.0.0.1:0"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    log: list[str] = []
    found: list[str] = []
    heard = threading.Event()

    def read():
        # Read to the end, so that a full pipe never blocks it.
        for line in process.stderr:
            log.append(line)
            address = re.search(r'msg="Listening on" address=(\S+)', line)
            if address:
                found.append(address[1])
                heard.set()
        heard.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        heard.wait(WAIT_S)
        assert found, "Prometheus did not start:\n" + "".join(log)
        until(lambda: is_ready(found[0]), "Prometheus is ready:\n" + "".join(log))
        yield Prometheus(found[0])
    finally:
        process.kill()
        process.wait()
        reader.join(WAIT_S)
        process.stderr.close()
