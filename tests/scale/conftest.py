"""Three replicas that share a database and the bytes of bundles, each with a data folder and policy files of its own."""

import contextlib
import os
import subprocess
from types import SimpleNamespace

import grpc
import pytest
from servers import Server

ROLES = ("agent", "submitter", "auditor", "admin")
POLICY = "name: default\nthresholds: {warn: 0.3, block: %s}\n"


class Replica:
    """One of several processes: it keeps its folder and its address when it is started again."""

    def __init__(self, folder, settings):
        self.folder, self.settings = folder, settings
        self.listen = "127.0.0.1:0"
        (folder / "policies").mkdir(parents=True)
        self.write_policy(0.7)
        self.server = None

    def start(self):
        """A new process, which serves."""
        self.server = Server(self.folder, self.settings, listen=self.listen)
        self.server.wait()
        self.listen = self.server.grpc
        return self

    def write_policy(self, block):
        """Replaces the policy file as an editor would."""
        new = self.folder / "new.yaml"
        new.write_text(POLICY % block)
        new.rename(self.folder / "policies" / "default.yaml")

    def policy_info(self):
        """Revisions that its metrics tell."""
        series = self.server.metrics()
        name = 'portcullis_policy_info{revision="'
        return {key.removeprefix(name).removesuffix('"}') for key, value in series.items() if key.startswith(name) and value == 1}


def new_token(folder, name, role):
    """A token that the program itself makes and appends to the file of tokens."""
    command = [os.environ["TEST_SERVER"], "token", "create", "--name", name, "--roles", role, "--append", "tokens.yaml"]
    return subprocess.run(command, cwd=folder, env={}, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """The replicas with `tokens` by role and `channels`, one to each."""
    folder = tmp_path_factory.mktemp("cluster")
    tokens = {role: new_token(folder, f"{role}-1", role) for role in ROLES}
    settings = {
        "auth": {"mode": "tokens", "tokens": {"path": str(folder / "tokens.yaml")}},
        "store": {"url": os.environ["TEST_STORE_URL"], "bundles": str(folder / "bundles")},
        "policy": {"path": "policies"},
        # Without a key a review would be held.
        "guardrails": {"enabled": False},
    }
    replicas = [Replica(folder / f"replica-{number}", settings) for number in range(3)]
    with contextlib.ExitStack() as stack:
        for replica in replicas:
            replica.start()
            stack.callback(lambda replica=replica: replica.server.kill())
        channels = [stack.enter_context(grpc.insecure_channel(replica.listen)) for replica in replicas]
        yield SimpleNamespace(replicas=replicas, tokens=tokens, channels=channels, folder=folder)
        for replica in replicas:
            replica.server.stop()


@pytest.fixture
def bearer(cluster):
    """Metadata that carries the token of a role."""
    return lambda role: (("authorization", f"Bearer {cluster.tokens[role]}"),)
