"""The built service accepts what the chart, the image and the Compose file write, and runs with it."""

import json
import re
import subprocess
import sys
import time

import pytest
import yaml
from conftest import CHART, DEPLOY, ROOT, VALUE_SETS, helm, named, service_container, settings_of
from service import get, known_settings, mount, run, serving

POD_IP = {"IPv4": "10.1.2.3", "IPv6": "fd00::17"}


def environment_of(values: str, pod_ip: str) -> dict[str, str]:
    """The variables of the container as the kubelet makes them, with something in place of each secret."""
    variables = {}
    for variable in service_container(values)["env"]:
        if "value" in variable:
            variables[variable["name"]] = variable["value"].replace("$(POD_IP)", variables.get("POD_IP", "$(POD_IP)"))
        elif "fieldRef" in variable["valueFrom"]:
            assert variable["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"
            variables[variable["name"]] = pod_ip
        else:
            variables[variable["name"]] = "from-a-secret"
    return variables


def family_of(values: str) -> str:
    return "IPv6" if yaml.safe_load(settings_of(values))["server"]["listen"].startswith("[") else "IPv4"


def written(values: str, folder) -> dict[str, str]:
    """Writes the settings of a value set; answers the variables, with the place where the settings are."""
    mount({"portcullis.yaml": settings_of(values)}, folder / "config")
    return environment_of(values, POD_IP[family_of(values)]) | {"PORTCULLIS_CONFIG": str(folder / "config" / "portcullis.yaml")}


def keys_of(settings, known: set[str], prefix: str = "") -> set[str]:
    """The dotted keys that a settings file sets. What is no section of a known key is a key itself."""
    found = set()
    for name, value in settings.items():
        key = f"{prefix}{name}"
        is_section = isinstance(value, dict) and key not in known
        found |= keys_of(value, known, f"{key}.") if is_section else {key}
    return found


@pytest.mark.parametrize("values", VALUE_SETS)
def test_settings_are_accepted(values, tmp_path):
    result = run("config", "--json", env=written(values, tmp_path), folder=tmp_path)
    known = known_settings()
    settings = yaml.safe_load(settings_of(values))
    if "auth.tokens.path" in known or settings["auth"]["mode"] == "none":
        assert result.returncode == 0, result.stderr
        effective = {each["key"]: each["source"] for each in json.loads(result.stdout)["settings"]}
        for key in keys_of(settings, known):
            # A map is told by its entries, and they have no source of their own.
            is_map = key not in effective and any(each.startswith(f"{key}.") for each in effective)
            assert is_map or effective[key].startswith(("file ", "env ")), key
    else:
        # A release without authentication: nothing else may be wrong with the settings.
        assert result.returncode == 78
        problems = [line.strip() for line in result.stderr.splitlines() if line.startswith("  ")]
        assert problems, result.stderr
        for problem in problems:
            assert problem.startswith(("auth.", "auth:", "server.tls", "server.insecure_allow_plaintext", "server.listen", "http.listen")), result.stderr


def test_a_wrong_setting_is_noticed(tmp_path):
    """What the chart lets pass is refused by the service itself, which knows its settings best."""
    settings = settings_of("anonymous") + "\nlog:\n  level: loud\n"
    (tmp_path / "portcullis.yaml").write_text(settings)
    result = run("config", folder=tmp_path)
    assert result.returncode == 78 and "log.level" in result.stderr


def test_the_schema_knows_every_setting_and_no_other():
    """Of the program itself, not of the reference from which the schema is written."""
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]["config"]

    def keys(inner, prefix=""):
        for name, each in inner.get("properties", {}).items():
            deeper = list(keys(each, f"{prefix}{name}."))
            yield from deeper or [f"{prefix}{name}"]

    assert set(keys(schema)) == known_settings()


def test_the_schema_is_what_is_written():
    result = subprocess.run([sys.executable, DEPLOY / "helm" / "make_schema.py", "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


# Values of each format that the schema knows, the good ones first. Of those that are well-formed, ranges are no matter here.
FORMATS = {
    "store.busy_timeout": (["250ms", "5s", "20 s", " 7s "], ["", "5", "s", "5 sec", "-5s", "1.5s", "1d", "5S", "off"]),
    "streams.idle_timeout": (["off", "OFF", "2h"], ["", "never", "5", "off "]),
    "cache.bytes_max": (["1048576", "1024KiB", "2 mib", "1048576B", "1GiB"], ["", "MiB", "4MB", "-1", "1.5MiB", "4M", "4 MiBs"]),
    "http.listen": (["127.0.0.1:0", "[::1]:8080"], ["", "localhost:8080", "127.0.0.1", ":8080", "::1:8080"]),
    "log.level": (
        ["info", "OFF", "info,portcullis=debug", " warn , a::b=trace", "a=info,error"],
        ["", "loud", "portcullis=debug", "info,loud", "info,a=loud", "info,", "5", "info=", "a= info,warn"],
    ),
    "http.allowed_hosts": (
        ["*", "portcullis.internal", "10.0.0.7:8080", "[fd00::1]:80", "[fd00::1]", "a_b", "host."],
        ["a b", "a/b", "u@h", "*.example.org", "host:", "http://h", "h?x"],
    ),
    "tracing.otlp_endpoint": (
        ["http://h:4317", "http://[::1]:4317", "http://h/path"],
        ["https://h:4317", "h:4317", "http://", "http://:4317", "grpc://h:4317"],
    ),
}


@pytest.mark.parametrize("key", FORMATS)
def test_a_format_of_the_schema_is_that_of_the_program(key, tmp_path):
    """Nothing that the service takes is refused by the chart, and no slip of these is left to the pod."""
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]["config"]
    *sections, name = key.split(".")
    for word in [*sections, name]:
        schema = schema["properties"][word]
    is_list = "items" in schema
    pattern = re.compile((schema["items"] if is_list else schema)["pattern"])
    for is_good, values in zip((True, False), FORMATS[key], strict=True):
        for value in values:
            settings = {name: [value] if is_list else value}
            for section in reversed(sections):
                settings = {section: settings}
            (tmp_path / "portcullis.yaml").write_text(yaml.safe_dump(settings))
            result = run("config", folder=tmp_path)
            assert (result.returncode == 0, bool(pattern.search(value))) == (is_good, is_good), f"{value!r}: {result.stderr}"


def test_harmless_variables_and_urls_pass():
    """What looks a little like a secret, and is none."""
    env = ["AWS_WEB_IDENTITY_TOKEN_FILE=/var/run/token", "AWS_REGION=eu-west-1", "SSL_CERT_FILE=/etc/ca.pem"]
    config = ["store.url=postgres://user@db/p?sslmode=require", "llm.proxy=http://proxy:3128/", "llm.base_url=https://h:8443/a@b"]
    arguments = [*(f"env.{each}" for each in env), *(f"config.{each}" for each in config)]
    result = helm("template", "portcullis", str(CHART), *(word for each in arguments for word in ("--set-string", each)))
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("values", ["anonymous", "policies", "ipv6"])
def test_a_pod_runs(values, tmp_path):
    env = written(values, tmp_path)
    arguments = ["--data-dir", str(tmp_path / "data")]
    if values == "policies":
        for kind, folder in (("policies", "policies"), ("rules", "rules")):
            mount(named(values, "ConfigMap", f"-{kind}")["data"], tmp_path / folder)
        settings = yaml.safe_load(settings_of(values))
        assert settings["policy"]["path"] == "/etc/portcullis/policies"
        assert settings["rules"]["paths"] == ["/etc/portcullis/rules/custom"]
        arguments += ["--policy", str(tmp_path / "policies"), "--set", f"rules.paths={tmp_path}/rules"]
    pod_ip = POD_IP[family_of(values)]
    in_url = f"[{pod_ip}]" if ":" in pod_ip else pod_ip
    with serving(tmp_path, *arguments, env=env) as service:
        # As the probes ask, as Prometheus scrapes, and as nobody else may.
        container = service_container(values)
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            if "grpc" in container[probe]:
                result = run("health", "--server", f"http://{service['grpc']}", "--timeout", "20s")
                assert (result.returncode, result.stdout.strip()) == (0, "SERVING")
            else:
                asked = container[probe]["httpGet"]
                (header,) = asked["httpHeaders"]
                assert get(service["http"], asked["path"], header["value"]) == 200
        assert get(service["http"], "/metrics", f"{in_url}:8080") == 200
        assert get(service["http"], "/metrics", "10.9.9.9:8080") == 421
        assert get(service["http"], "/readyz", "localhost") == 200
        if values == "ipv6":
            assert get(service["http"], "/metrics", "portcullis.example.org") == 200
        if values == "policies":
            reloads(service, tmp_path)
    assert (tmp_path / "data" / "admin-token").stat().st_mode & 0o777 == 0o600


def reloads(service, folder):
    """A ConfigMap that changes is in force without a restart, rules of one's own included."""
    asked = ["check", "--server", f"http://{service['grpc']}", "--json"]
    assert json.loads(run(*asked, "My badge is badge-123456").stdout)["decision"] == "DECISION_BLOCK"
    text = named("policies", "ConfigMap", "-policies")["data"]["default.yaml"]
    mount({"default.yaml": text + "rules:\n  custom.badge: {mode: off}\n"}, folder / "policies")
    until = time.monotonic() + 20
    while json.loads(run(*asked, "My badge is badge-123456").stdout)["decision"] != "DECISION_ALLOW":
        assert time.monotonic() < until, "".join(line for line in service["log"] if "request decided" not in line)
        time.sleep(0.1)


@pytest.mark.parametrize("values", ["defaults", "mesh"])
def test_a_pod_takes_tokens(values, tmp_path):
    """With the Secrets that the chart waits for, mounted where its settings look for them."""
    if "auth.tokens.path" not in known_settings():
        pytest.skip("a release without authentication")
    env = written(values, tmp_path)
    settings = settings_of(values).replace("/etc/portcullis/", f"{tmp_path}/")
    (tmp_path / "portcullis.yaml").write_text(settings)
    made = run("token", "create", "--name", "agent-7", "--roles", "agent", "--append", "made.yaml", folder=tmp_path)
    mount({"tokens.yaml": (tmp_path / "made.yaml").read_text()}, tmp_path / "tokens")
    certificates = ROOT / "tests" / "tls"
    if values == "defaults":
        pair = {"tls.crt": "server.pem", "tls.key": "server.key"}
        mount({key: (certificates / name).read_text() for key, name in pair.items()}, tmp_path / "tls")
    env["PORTCULLIS_CONFIG"] = str(tmp_path / "portcullis.yaml")
    with serving(tmp_path, "--data-dir", str(tmp_path / "data"), env=env) as service:
        assert get(service["http"], "/readyz", "localhost") == 200
        if values == "mesh":
            assert run("health", "--server", f"http://{service['grpc']}", "--timeout", "20s").stdout.strip() == "SERVING"
        security = ["-cacert", str(certificates / "authority.pem")] if values == "defaults" else ["-plaintext"]
        ask = ["grpcurl", *security, "-d", '{"messages": [{"role": "user", "text": "hello"}]}']
        what = [service["grpc"], "portcullis.v1.PolicyDecisionService/CheckMessages"]
        token = f"authorization: Bearer {made.stdout.strip()}"
        answer = subprocess.run([*ask, "-H", token, *what], capture_output=True, text=True, timeout=60)
        assert json.loads(answer.stdout)["decision"] == "DECISION_ALLOW", answer.stderr
        answer = subprocess.run([*ask, *what], capture_output=True, text=True, timeout=60)
        assert answer.returncode != 0 and "Unauthenticated" in answer.stderr


def test_an_admin_token_that_the_group_can_read_stops_a_start(tmp_path):
    """Why the pod has fsGroupChangePolicy: OnRootMismatch."""
    env = written("anonymous", tmp_path)
    arguments = ["--data-dir", str(tmp_path / "data")]
    with serving(tmp_path, *arguments, env=env):
        pass
    (tmp_path / "data" / "admin-token").chmod(0o660)
    result = run("serve", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", *arguments, env=env, folder=tmp_path)
    assert result.returncode == 78 and "others can read it" in result.stderr


def test_the_image_starts_only_when_somebody_says_who_may_call(tmp_path):
    settings = str(DEPLOY / "image" / "portcullis.yaml")
    result = run("config", "--config", settings, folder=tmp_path)
    assert result.returncode == 78 and "--insecure-allow-anonymous" in result.stderr
    result = run("config", "--config", settings, "--set", "server.insecure_allow_anonymous=true", folder=tmp_path)
    assert result.returncode == 0, result.stderr


def test_the_settings_of_compose_are_accepted(tmp_path):
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    variables = compose["services"]["portcullis"]["environment"]
    # Nobody has given a key: an empty value.
    env = {name: "" if ":-}" in value else "secret" for name, value in variables.items()}
    assert set(env.values()) == {"", "secret"}
    result = run("config", "--json", "--config", str(DEPLOY / "compose" / "portcullis.yaml"), env=env, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    effective = {each["key"]: each["value"] for each in json.loads(result.stdout)["settings"]}
    assert effective["llm.gemini_api_key"] is None and effective["llm.anthropic_api_key"] is None


def test_prometheus_may_call_as_compose_lets_it(tmp_path):
    """By the name of the service, which is no address."""
    settings = yaml.safe_load((DEPLOY / "compose" / "portcullis.yaml").read_text())
    (tmp_path / "portcullis.yaml").write_text(yaml.safe_dump({"http": {"allowed_hosts": settings["http"]["allowed_hosts"]}}))
    with serving(tmp_path, "--data-dir", str(tmp_path / "data")) as service:
        assert get(service["http"], "/metrics", "portcullis:8080") == 200
        assert get(service["http"], "/metrics", "grafana:8080") == 421
