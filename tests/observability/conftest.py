"""Servers under load, a target that is away, and a Prometheus that scrapes them and evaluates our rules.

The first server is well but for what its policy does wrong. The second loses its audit records, has a model that fails,
is full, and has rejected the last change of its policy. The third speaks TLS, has rejected the last change of its
certificate, and is called by strangers and too often. The fourth has no policy, and nobody calls it.
"""

import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import socket
import sys
from types import SimpleNamespace

import grpc
import pytest
import yaml

import prometheus
import stand_in
from files import PROMETHEUS, ROOT
from load import Load

HERE = pathlib.Path(__file__).parent
# A policy that cannot be loaded.
BROKEN = "thresholds: {block: many}\n"
# Scrapes of each target before anything is asked: more than the window of a rate.
SCRAPES = 15


def of_clients():
    """The conftest of the Python client, which starts servers."""
    path = ROOT / "tests" / "clients" / "python" / "conftest.py"
    spec = importlib.util.spec_from_file_location("conftest_of_clients", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


running_server = of_clients().running_server


def folder_of_policies(folder: pathlib.Path, url: str, gone: str) -> pathlib.Path:
    policies = folder / "policies"
    policies.mkdir()
    text = (HERE / "policies.yaml").read_text(encoding="utf-8")
    text = text.replace("GONE", f"http://{gone}/").replace("SLOW", f"{url}/webhook/slow")
    (policies / "default.yaml").write_text(text)
    return policies


def settings(url: str, model: str, **more) -> str:
    llm = {
        "backend": "ollama",
        "model": "m",
        "base_url": f"{url}/model/{model}",
        "attempts_max": 1,
        "breaker_failures": 2,
        "price_input": 1.0,
        "price_output": 5.0,
    }
    # JSON is YAML.
    return json.dumps({"llm": llm, "extensions": {"private_hosts": ["127.0.0.0/8"]}} | more)


def config_of(servers, gone: str) -> str:
    """The committed configuration with our targets, and faster."""
    config = yaml.safe_load((PROMETHEUS / "prometheus.yaml").read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    assert config["rule_files"] == ["/etc/prometheus/rules/*.rules.yaml"]
    config["rule_files"] = [str(PROMETHEUS / "*.rules.yaml")]
    config["scrape_configs"] = [one for one in config["scrape_configs"] if one["job_name"] == "portcullis"]
    targets = [server.http for server in servers] + [gone]
    config["scrape_configs"][0]["static_configs"] = [{"targets": targets}]
    return yaml.safe_dump(config)


def reject_and_repair(observed):
    """The third server rejects its certificate, the first and second a policy; the first then gets good ones."""

    def counted(metric, server, outcome):
        expr = f"{metric}{{instance='{server.http}', outcome='{outcome}'}} > 0"
        prometheus.until(lambda: observed.prometheus.values(expr), f"{expr} is seen")

    well, unwell, guarded, _ = observed.servers
    files = [policies / "changed.yaml" for policies in observed.policies]
    (guarded.certificates / "server.pem").write_text("no certificate\n")
    for server, file in ((well, files[0]), (unwell, files[1])):
        file.write_text(BROKEN)
        counted("portcullis_policy_reloads_total", server, "rejected")
    counted("portcullis_auth_reloads_total", guarded, "rejected")
    observed.load.keep_changing(files[0])
    counted("portcullis_policy_reloads_total", well, "applied")


def channel_to(server):
    """What connects to a server with TLS, as a client with a certificate."""
    parts = [(server.certificates / name).read_bytes() for name in ("authority.pem", "client.key", "client.pem")]
    return lambda: grpc.secure_channel(server.grpc, grpc.ssl_channel_credentials(*parts))


def settings_of_all(url: str) -> dict[str, str]:
    """Name and settings of each server; see the module."""
    tls = {"certificate": "tls/server.pem", "key": "tls/server.key", "client_ca": "tls/authority.pem"}
    unwell = {
        # A disk without place, as Linux has one for tests.
        "audit": {"path": "/dev/full"},
        "server": {"concurrency_max": 1},
        "streams": {"sessions_max": 1},
    }
    guarded = {"server": {"tls": tls}, "rate_limit": {"per_second": 1, "burst": 1}}
    return {
        "well": settings(url, "good"),
        "unwell": settings(url, "broken", **unwell),
        "guarded": settings(url, "good", **guarded),
        "lost": settings(url, "good"),
    }


@pytest.fixture(scope="session")
def observed(tmp_path_factory):
    """Servers, their policy folders, and the Prometheus that watches them, under a load that goes on."""
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(stand_in.running())
        # A port that is bound, and where nobody listens: nothing else can take it.
        unused = stack.enter_context(socket.socket())
        unused.bind(("127.0.0.1", 0))
        gone = "127.0.0.1:%d" % unused.getsockname()[1]
        servers, policies = [], []
        for name, text in settings_of_all(url).items():
            folder = tmp_path_factory.mktemp(name)
            shutil.copytree(ROOT / "tests" / "tls", folder / "tls")
            policies.append(folder_of_policies(folder, url, gone))
            if name == "lost":
                (policies[-1] / "default.yaml").write_text(BROKEN)
            server = stack.enter_context(running_server(folder, text, policies[-1]))
            server.certificates = folder / "tls"
            servers.append(server)
        config = config_of(servers, gone)
        watching = stack.enter_context(prometheus.running(tmp_path_factory.mktemp("prometheus"), config))
        # Counters are known to Prometheus before they move, as in a service that has been up for a while.
        scraped = f"count(portcullis_build_info) == {len(servers)}"
        prometheus.until(lambda: watching.values(scraped), "all are scraped")
        well, unwell, guarded, _ = servers
        guarded.channel = channel_to(guarded)
        together = SimpleNamespace(servers=servers, policies=policies, prometheus=watching)
        together.load = stack.enter_context(Load(well, unwell, guarded=guarded))
        reject_and_repair(together)
        enough = f"count(count_over_time(portcullis_build_info[5m]) >= {SCRAPES}) == {len(servers)}"
        prometheus.until(lambda: watching.values(enough), "enough scrapes of all")
        yield together


@pytest.fixture(scope="session")
def server_binary():
    """The program under test."""
    return os.environ["TEST_SERVER"]
