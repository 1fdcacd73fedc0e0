"""Three servers under load, a target that is away, and a Prometheus that scrapes them and evaluates our rules.

The first server is well but for what its policy does wrong. The second loses its audit records, has a model that fails,
is full, and has rejected the last change of its policy. The third speaks TLS, has rejected the last change of its
certificate, and is called by strangers and too often.
"""

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
    """The third server rejects its certificate, the others a policy; the first then gets good ones."""
    (observed.certificates / "server.pem").write_text("no certificate\n")
    broken = "portcullis_auth_reloads_total{outcome='rejected'} > 0"
    prometheus.until(lambda: observed.prometheus.values(broken), "the broken certificate is counted")
    reloads = "portcullis_policy_reloads_total{instance='%s', outcome='%s'} > 0"
    files = [policies / "changed.yaml" for policies in observed.policies]
    for server, file in zip(observed.servers, files):
        file.write_text("thresholds: {block: many}\n")
        expr = reloads % (server.http, "rejected")
        prometheus.until(lambda expr=expr: observed.prometheus.values(expr), "the rejected change is counted")
    observed.load.keep_changing(files[0])
    expr = reloads % (observed.servers[0].http, "applied")
    prometheus.until(lambda: observed.prometheus.values(expr), "the repaired change is counted")


def channel_to(server, certificates: pathlib.Path):
    """What connects to a server with TLS, as a client with a certificate."""
    parts = [(certificates / name).read_bytes() for name in ("authority.pem", "client.key", "client.pem")]
    return lambda: grpc.secure_channel(server.grpc, grpc.ssl_channel_credentials(*parts))


@pytest.fixture(scope="session")
def observed(tmp_path_factory):
    """Servers, their policy folders, and the Prometheus that watches them, under a load that goes on."""
    # A port that is bound, and where nobody listens: nothing else can take it.
    with socket.socket() as unused, stand_in.running() as url:
        unused.bind(("127.0.0.1", 0))
        gone = "127.0.0.1:%d" % unused.getsockname()[1]
        folders = [tmp_path_factory.mktemp(name) for name in ("well", "unwell", "guarded")]
        policies = [folder_of_policies(folder, url, gone) for folder in folders]
        certificates = folders[2] / "tls"
        shutil.copytree(ROOT / "tests" / "tls", certificates)
        tls = {"certificate": "tls/server.pem", "key": "tls/server.key", "client_ca": "tls/authority.pem"}
        guarded = {"server": {"tls": tls}, "rate_limit": {"per_second": 1, "burst": 1}}
        unwell = {
            "audit": {"path": "/dev/full"},
            "server": {"concurrency_max": 1},
            "streams": {"sessions_max": 1},
        }
        with (
            running_server(folders[0], settings(url, "good"), policies[0]) as first,
            running_server(folders[1], settings(url, "broken", **unwell), policies[1]) as second,
            running_server(folders[2], settings(url, "good", **guarded), policies[2]) as third,
            prometheus.running(tmp_path_factory.mktemp("prometheus"), config_of((first, second, third), gone)) as watching,
        ):
            enough = f"count(count_over_time(portcullis_build_info[5m]) >= {SCRAPES}) == 3"
            # Counters are known to Prometheus before they move, as in a service that has been up for a while.
            prometheus.until(lambda: watching.values("count(portcullis_build_info) == 3"), "all are scraped")
            third.channel = channel_to(third, certificates)
            together = SimpleNamespace(
                servers=(first, second, third), policies=policies[:2], certificates=certificates, prometheus=watching
            )
            with Load(first, second, guarded=third) as together.load:
                reject_and_repair(together)
                prometheus.until(lambda: watching.values(enough), "enough scrapes of all")
                yield together


@pytest.fixture(scope="session")
def server_binary():
    """The program under test."""
    return os.environ["TEST_SERVER"]
