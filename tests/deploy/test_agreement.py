"""One port, path, user and version, wherever it is written."""

import functools
import json
import pathlib
import re
import subprocess
import tomllib

import pytest
import yaml
from conftest import CHART, DEPLOY, HERE, ROOT, named, pod_of, service_container, settings_of
from service import run, serving

DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
IMAGE = yaml.safe_load((DEPLOY / "image" / "portcullis.yaml").read_text())
SIDECAR_MAP, SIDECAR_JOB = yaml.safe_load_all((DEPLOY / "sidecar" / "job.yaml").read_text())
SIDECAR = yaml.safe_load(SIDECAR_MAP["data"]["portcullis.yaml"])
PROGRAM = "/usr/local/bin/portcullis"
# What a release without authentication does not know.
NEW = ("server.tls", "server.insecure_allow_plaintext", "auth.tokens")


@functools.cache
def defaults() -> dict:
    """The defaults of the program."""
    result = run("config", "--json", folder=pathlib.Path("/"))
    return {each["key"]: each["value"] for each in json.loads(result.stdout)["settings"]}


def port(address: str) -> int:
    return int(address.rpartition(":")[2])


def test_ports():
    expected = {"grpc": port(defaults()["server.listen"]), "http": port(defaults()["http.listen"])}
    chart = {each["name"]: each["containerPort"] for each in service_container("defaults")["ports"]}
    service = {each["name"]: each["port"] for each in named("defaults", "Service")["spec"]["ports"]}
    compose = [int(each.rpartition(":")[2]) for each in COMPOSE["services"]["portcullis"]["ports"]]
    exposed = [int(each) for each in re.search(r"^EXPOSE (.*)$", DOCKERFILE, re.M).group(1).split()]
    assert chart == service == expected
    assert sorted(compose) == sorted(exposed) == sorted(expected.values())
    compose_settings = yaml.safe_load((DEPLOY / "compose" / "portcullis.yaml").read_text())
    for settings in (IMAGE, SIDECAR, compose_settings, yaml.safe_load(settings_of("defaults"))):
        assert port(settings["server"]["listen"]) == expected["grpc"]
        assert port(settings["http"]["listen"]) == expected["http"]


@pytest.mark.parametrize("values", ["defaults", "everything-else", "ipv6", "fixed-replicas"])
def test_listeners_are_the_ports_of_the_container(values):
    settings = yaml.safe_load(settings_of(values))
    ports = {each["name"]: each["containerPort"] for each in service_container(values)["ports"]}
    assert {"grpc": port(settings["server"]["listen"]), "http": port(settings["http"]["listen"])} == ports


def test_the_data_folder():
    folders = {settings["data_dir"] for settings in (IMAGE, SIDECAR, yaml.safe_load(settings_of("defaults")))}
    assert folders == {"/var/lib/portcullis/data"}, "below the mount, whose own mode the kubelet looks at"
    assert re.search(r"^COPY .*--chown=65532:65532 /out/state/ /var/lib/$", DOCKERFILE, re.M)
    assert re.search(r"^WORKDIR /var/lib/portcullis$", DOCKERFILE, re.M)


def test_the_user():
    assert re.search(r"^USER (.*)$", DOCKERFILE, re.M).group(1) == COMPOSE["services"]["portcullis"]["user"] == "65532:65532"
    context = pod_of(named("defaults", "Deployment"))["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"], context["fsGroup"]) == (65532, 65532, 65532)


def test_the_version():
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == version
    assert COMPOSE["services"]["portcullis"]["image"] == f"portcullis:{version}"
    assert service_container("defaults")["image"] == f"portcullis:{version}"
    (sidecar,) = pod_of(SIDECAR_JOB)["initContainers"]
    assert sidecar["image"] == f"portcullis:{version}"
    assert f'org.opencontainers.image.version="{version}"' in DOCKERFILE
    assert run("version").stdout.split()[1].startswith(version)


def test_the_drain_that_the_chart_counts_with():
    assert defaults()["server.drain_timeout"] == "10s"


def test_settings_that_the_chart_refuses_exist():
    """A reserved variable that the service does not know would reserve nothing."""
    known = set(defaults())
    checks = (CHART / "templates" / "_checks.tpl").read_text()
    reserved = re.findall(r'"PORTCULLIS_([A-Z_]+)"', checks)
    assert len(reserved) >= 9
    for name in reserved:
        key = name.lower().replace("__", ".")
        is_new = "auth.tokens.path" not in known and key.startswith(NEW)
        assert name == "CONFIG" or key in known or is_new, name
    for key in re.findall(r'fail "config\.([a-z_.]+) is set by the chart', checks):
        is_new = "auth.tokens.path" not in known and key.startswith(NEW)
        assert any(each == key or each.startswith(f"{key}.") for each in known) or is_new, key


def test_the_sidecar_is_asked_by_the_agent(tmp_path):
    """The example as it stands: the settings of its ConfigMap, its probes, and the question of its agent."""
    (sidecar,) = pod_of(SIDECAR_JOB)["initContainers"]
    (agent,) = pod_of(SIDECAR_JOB)["containers"]
    assert sidecar["restartPolicy"] == "Always"
    assert "data" not in [mount["name"] for mount in agent.get("volumeMounts", [])]
    assert sidecar["securityContext"]["runAsUser"] != agent["securityContext"]["runAsUser"]
    settings = SIDECAR_MAP["data"]["portcullis.yaml"].replace("127.0.0.1:50051", "127.0.0.1:0")
    (tmp_path / "portcullis.yaml").write_text(settings)
    with serving(tmp_path, "--data-dir", str(tmp_path / "data")) as service:
        for probe in ("startupProbe", "livenessProbe"):
            program, *arguments = sidecar[probe]["exec"]["command"]
            assert program == PROGRAM
            result = run(*arguments, "--server", f"http://{service['grpc']}")
            assert result.returncode == 0, result.stderr
        arguments = [each.replace(SIDECAR["server"]["listen"], service["grpc"]) for each in agent["args"]]
        assert arguments != agent["args"]
        answer = subprocess.run(["grpcurl", *arguments], capture_output=True, text=True, timeout=60)
        assert answer.returncode == 0, answer.stderr
        assert json.loads(answer.stdout)["decision"] == "DECISION_BLOCK"


def test_yaml_is_tidy():
    files = [p for p in [*DEPLOY.rglob("*.yaml"), *HERE.rglob("*.yaml")] if not {"templates", "files", "prometheus", "grafana"} & set(p.parts)]
    assert len(files) > 20
    result = subprocess.run(["yamllint", "--strict", "-c", HERE / "yamllint.yaml", *files], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
