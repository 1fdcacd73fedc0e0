"""The built service, run as a pod would run it."""

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading

BINARY = os.environ["TEST_SERVER"]
# How long a start and a stop may take on a busy machine.
WAIT_S = 30


def run(*arguments: str, env: dict | None = None, folder: pathlib.Path | None = None) -> subprocess.CompletedProcess:
    """Runs the program to its end, with these variables alone."""
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, env=env or {}, cwd=folder, timeout=60)


def known_settings() -> set[str]:
    """Every key that the program knows."""
    result = run("config", "--json", folder=pathlib.Path("/"))
    return {setting["key"] for setting in json.loads(result.stdout)["settings"]}


@contextlib.contextmanager
def serving(folder: pathlib.Path, *arguments: str, env: dict | None = None):
    """A running service: the addresses that it tells, its process and its log."""
    command = [BINARY, "serve", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", *arguments]
    process = subprocess.Popen(command, cwd=folder, env=env or {}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    log, told, heard = [], {}, threading.Event()

    def read():
        # To the end, so that a full pipe never blocks the service.
        for line in process.stderr:
            log.append(line)
            if line.startswith("{") and (event := json.loads(line)).get("message") == "serving" and "grpc" in event:
                told.update(event)
                heard.set()
        heard.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        heard.wait(WAIT_S)
        assert told, "it did not start:\n" + "".join(log)
        yield told | {"process": process, "log": log}
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0, "".join(log)
    finally:
        process.kill()
        process.wait()
        reader.join(WAIT_S)


def get(address: str, path: str, host: str) -> int:
    """The status of a GET that names a host."""
    connection = http.client.HTTPConnection(address, timeout=WAIT_S)
    try:
        connection.putrequest("GET", path, skip_host=True)
        connection.putheader("Host", host)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


def mount(files: dict[str, str], folder: pathlib.Path) -> None:
    """Writes files the way the kubelet mounts a ConfigMap: links into a folder that it swaps as a whole."""
    version = len([each for each in folder.glob("..2*")]) if folder.exists() else 0
    target = folder / f"..2026_01_01_{version}"
    target.mkdir(parents=True)
    for name, text in files.items():
        (target / name).write_text(text)
    link = folder / "..data_tmp"
    link.symlink_to(target.name)
    link.rename(folder / "..data")
    for old in folder.glob("..2*"):
        if old != target:
            shutil.rmtree(old)
    for name in files:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
