"""`portcullis health` as the page on operating shows it, against a listener that speaks TLS and wants certificates."""

import pathlib
import re
import subprocess

from servers import running

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEMS = ROOT / "tests" / "tls"


def test_health_over_tls(tmp_path):
    page = (ROOT / "docs" / "OPERATING.md").read_text()
    (command,) = re.findall(r"^portcullis (health --server https://.*)$", page, re.M)
    for name, file in {"ca.pem": "authority.pem", "me.pem": "client.pem", "me.key": "client.key"}.items():
        (tmp_path / name).write_bytes((PEMS / file).read_bytes())
    tls = {"certificate": str(PEMS / "server.pem"), "key": str(PEMS / "server.key"), "client_ca": str(PEMS / "authority.pem")}
    with running(tmp_path, {"server": {"tls": tls}}) as server:
        port = server.grpc.rpartition(":")[2]

        def health(words):
            words = [word.replace("localhost:50051", f"localhost:{port}") for word in words]
            done = subprocess.run([server.process.args[0], *words], cwd=tmp_path, env={}, capture_output=True, text=True, timeout=60)
            return done.returncode, done.stdout + done.stderr

        words = command.split()
        assert health(words)[0] == 0, health(words)
        # Without any one of what it is told, nobody is trusted.
        assert health(words[:3])[0] == 69
        assert health(words[:5])[0] == 69, "the server wants a certificate"
        # In the place of the server the settings of its listener say the rest.
        own = ["health", "--set", f"server.listen=127.0.0.1:{port}"]
        assert health(own)[0] == 69 and health([*own, *words[3:]])[0] == 0
