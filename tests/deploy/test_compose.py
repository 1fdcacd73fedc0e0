"""The Compose file: valid, closed, and in step with what it runs."""

import importlib.util
import json
import pathlib
import re
from urllib.parse import urlsplit

import compose_spec
import jsonschema
import pytest
import yaml
from conftest import DEPLOY, ROOT

TEXT = (DEPLOY / "compose.yaml").read_text()
COMPOSE = yaml.safe_load(TEXT)
SERVICES = COMPOSE["services"]
SETTINGS = yaml.safe_load((DEPLOY / "compose" / "portcullis.yaml").read_text())


def problems(compose: dict) -> list[str]:
    """What is wrong by the schema of the Compose specification, which check-jsonschema carries."""
    (package,) = importlib.util.find_spec("check_jsonschema").submodule_search_locations
    schema = json.loads((pathlib.Path(package) / "builtin_schemas/vendor/compose-spec.json").read_text())
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    return [error.message for error in validator(schema).iter_errors(compose)]


def test_schema_of_the_specification():
    assert problems(COMPOSE) == []


@pytest.mark.parametrize(("key", "value"), [("read_onyl", True), ("ports", 5), ("healthcheck", {"tests": []}), ("cap_drop", "ALL")])
def test_the_schema_refuses_what_is_wrong(key, value):
    wrong = yaml.safe_load(TEXT)
    wrong["services"]["portcullis"][key] = value
    assert problems(wrong)


def test_another_reader_takes_it():
    compose = compose_spec.PyCompose.from_yaml(TEXT)
    compose.validate()
    assert set(compose.service_names()) == {"portcullis", "postgres", "prometheus", "grafana"}


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_closed(name):
    service = SERVICES[name]
    assert re.search(r":v?\d+\.\d+", service["image"]), "the version is pinned"
    assert "no-new-privileges:true" in service["security_opt"]
    assert not service.get("privileged") and "cap_add" not in service
    assert service["healthcheck"]["test"][0] == "CMD"
    assert service["deploy"]["resources"]["limits"].keys() >= {"cpus", "memory"}
    assert service["pids_limit"] > 0
    assert service["restart"] == "unless-stopped"
    for port in service.get("ports", []):
        assert port.startswith("127.0.0.1:"), "published on loopback only"
    for mount in service.get("volumes", []):
        source, target, *mode = mount.split(":")
        if source.startswith("."):
            assert mode == ["ro"]
            assert target.startswith("/")
        else:
            assert source in COMPOSE["volumes"]
    assert set(service["networks"]) <= set(COMPOSE["networks"])
    assert set(service.get("depends_on", {})) <= set(SERVICES)


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_mounted_is_there(name):
    """Rules and dashboards may be absent as a whole; what is there must be what is mounted."""
    for mount in SERVICES[name].get("volumes", []):
        source = DEPLOY / mount.split(":")[0]
        folder = source.relative_to(DEPLOY).parts[0]
        if mount.startswith("./") and (DEPLOY / folder).exists():
            assert source.exists(), mount


def test_the_service_runs_as_its_image_does():
    service = SERVICES["portcullis"]
    assert service["user"] == "65532:65532" and service["read_only"] is True and service["cap_drop"] == ["ALL"]
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    check = re.search(r"HEALTHCHECK.*?CMD (\[.*?\])", dockerfile, re.S)
    assert service["healthcheck"]["test"] == ["CMD", *json.loads(check.group(1))]
    settings = re.search(r"ENV PORTCULLIS_CONFIG=(\S+)", dockerfile).group(1)
    assert f"./compose/portcullis.yaml:{settings}:ro" in service["volumes"]
    assert f"data:{pathlib.PurePath(SETTINGS['data_dir']).parent}" in service["volumes"]
    build = (DEPLOY / service["build"]["context"]).resolve()
    assert build == ROOT and (build / service["build"]["dockerfile"]).is_file()
    assert int(service["stop_grace_period"].removesuffix("s")) >= 10 + 27


def test_it_reaches_what_its_settings_name():
    database = urlsplit(SETTINGS["store"]["url"])
    assert database.password is None
    shared = set(SERVICES["portcullis"]["networks"]) & set(SERVICES[database.hostname]["networks"])
    assert shared and all(COMPOSE["networks"][network].get("internal") for network in shared), "sslmode=disable is for a closed network"
    given = SERVICES[database.hostname]["environment"]
    assert (given["POSTGRES_USER"], given["POSTGRES_DB"]) == (database.username, database.path.lstrip("/"))
    assert SERVICES["portcullis"]["environment"]["PGPASSWORD"] == given["POSTGRES_PASSWORD"]
    assert list(SERVICES[database.hostname]["networks"]) == list(shared), "nobody else reaches the database"


def test_passwords_have_no_default():
    for name, value in re.findall(r"\$\{([A-Z_]+)([^}]*)\}", TEXT):
        if "PASSWORD" in name:
            assert value.startswith(":?"), name
    assert "/.env" in (DEPLOY / ".gitignore").read_text()


def test_anonymous_callers_are_those_of_this_machine():
    assert SETTINGS["server"]["insecure_allow_anonymous"] is True
    assert all(port.startswith("127.0.0.1:") for port in SERVICES["portcullis"]["ports"])


def test_prometheus_scrapes_the_service():
    config = DEPLOY / "prometheus" / "prometheus.yaml"
    mounts = dict(mount.split(":")[:2] for mount in SERVICES["prometheus"]["volumes"])
    assert f"--config.file={mounts['./prometheus/prometheus.yaml']}" in SERVICES["prometheus"]["command"]
    if config.exists():
        settings = yaml.safe_load(config.read_text())
        assert settings["rule_files"] == [f"{mounts['./prometheus']}/*.rules.yaml"]
        targets = [t for job in settings["scrape_configs"] for each in job["static_configs"] for t in each["targets"]]
        port = SETTINGS["http"]["listen"].rpartition(":")[2]
        assert f"portcullis:{port}" in targets
    assert SETTINGS["http"]["allowed_hosts"] == ["portcullis"]
    assert set(SERVICES["portcullis"]["networks"]) & set(SERVICES["prometheus"]["networks"])


def test_grafana_is_provisioned():
    mounts = dict(mount.split(":")[:2] for mount in SERVICES["grafana"]["volumes"])
    assert mounts["./grafana/provisioning"] == "/etc/grafana/provisioning"
    provisioning = DEPLOY / "grafana" / "provisioning"
    for file in provisioning.glob("dashboards/*.yaml"):
        for provider in yaml.safe_load(file.read_text())["providers"]:
            assert provider["options"]["path"] == mounts["./grafana"]
    for file in provisioning.glob("datasources/*.yaml"):
        for source in yaml.safe_load(file.read_text())["datasources"]:
            assert source["url"] == "http://prometheus:9090"
