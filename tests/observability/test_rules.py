"""Rules and alerts: checked by promtool, tried on courses of events, and under load; and a runbook for each."""

import re
import subprocess
import urllib.request

import pytest
import yaml

import prometheus
from files import ALERTS, PROMETHEUS, RECORDED, ROOT, RULE_FILES, RULES, RUNBOOK, anchors, metrics_of

UNIT_TESTS = sorted((PROMETHEUS / "tests").glob("*.test.yaml"))
SEVERITIES = {"critical", "warning", "info"}

# Alerts that are rightly quiet under the load of these tests, and why. All others become at least pending.
QUIET = {
    ("PortcullisAbsent", "critical"): "there are targets",
    ("PortcullisSaturated", "warning"): "a few calls are under way",
    ("PortcullisProcessorFull", "warning"): "the load is light",
    ("PortcullisOpenFiles", "warning"): "a few files are open",
    ("PortcullisCertificateExpiry", "warning"): "the certificates of tests are good for a hundred years",
    ("PortcullisCertificateExpiry", "critical"): "the certificates of tests are good for a hundred years",
    ("PortcullisBlockSpike", "warning"): "there is nothing half an hour before",
    ("PortcullisWouldBlockSpike", "info"): "there is nothing half an hour before",
    ("PortcullisIncidentsLost", "critical"): "the database takes every incident",
    ("PortcullisStoreAway", "critical"): "the database answers",
    ("PortcullisReviewQueueAge", "warning"): "nothing waits for a quarter of an hour",
    ("PortcullisReviewQueueAge", "critical"): "nothing waits for an hour",
}
# Alerts that depend on how fast the machine is.
EITHER = {("PortcullisStreamBackpressure", "warning")}

# What a runbook section tells.
PARTS = ["What it means", "Impact", "How to look", "What to do", "When to escalate"]


def named(alert):
    return (alert["alert"], alert["labels"]["severity"])


def promtool(*arguments, **options):
    ran = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, **options)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def test_promtool_takes_the_rules():
    promtool("check", "rules", *RULE_FILES)


def test_promtool_takes_the_configuration(tmp_path):
    promtool("check", "config", PROMETHEUS / "prometheus.yaml")
    # And with the rules where the configuration looks for them.
    config = (PROMETHEUS / "prometheus.yaml").read_text(encoding="utf-8")
    (tmp_path / "prometheus.yaml").write_text(config.replace("/etc/prometheus/rules", str(PROMETHEUS)))
    said = promtool("check", "config", tmp_path / "prometheus.yaml")
    assert f"{len(RULE_FILES)} rule files found" in said


@pytest.mark.parametrize("file", UNIT_TESTS, ids=lambda file: file.name)
def test_the_alerts_fire_when_they_should(file):
    promtool("test", "rules", file)


def test_every_alert_is_tried_firing_and_quiet():
    fires, is_quiet = set(), set()
    for file in UNIT_TESTS:
        for case in yaml.safe_load(file.read_text(encoding="utf-8"))["tests"]:
            for check in case["alert_rule_test"]:
                for alert in check["exp_alerts"]:
                    fires.add((check["alertname"], alert["exp_labels"]["severity"]))
                if not check["exp_alerts"]:
                    is_quiet.add(check["alertname"])
    assert fires == {named(alert) for alert in ALERTS}
    assert is_quiet == {alert["alert"] for alert in ALERTS}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: "-".join(named(alert)))
def test_an_alert_tells_what_and_where_to_look(alert):
    assert alert["alert"].startswith("Portcullis")
    assert alert["labels"]["severity"] in SEVERITIES
    annotations = alert["annotations"]
    assert annotations["summary"] and annotations["description"]
    page, _, anchor = annotations["runbook_url"].partition("#")
    assert page.endswith("docs/runbook.md")
    assert anchor == alert["alert"].lower()
    assert anchor in anchors()


def section(name):
    """The text below the heading of an alert in the runbook."""
    text = RUNBOOK.read_text(encoding="utf-8")
    found = re.search(rf"^### {name}$(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"the runbook has no section {name}"
    return found[1]


@pytest.mark.parametrize("name", sorted({alert["alert"] for alert in ALERTS}))
def test_a_section_of_the_runbook_has_all_parts(name):
    told = re.findall(r"^\*\*(.+?)\.\*\*", section(name), re.MULTILINE)
    assert told == PARTS


def test_the_runbook_has_no_section_without_an_alert():
    sections = set(re.findall(r"^### (Portcullis\w+)$", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE))
    assert sections == {alert["alert"] for alert in ALERTS}


def runbook_queries():
    """The blocks of PromQL of the runbook."""
    blocks = re.findall(r"^```promql\n(.*?)^```", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line and not line.startswith("#")]


def runbook_commands():
    """The commands of the program that the runbook names, without their arguments."""
    text = RUNBOOK.read_text(encoding="utf-8")
    code = re.findall(r"`([^`\n]+)`", text) + [
        line for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL) for line in block.splitlines()
    ]
    return sorted({line.split("#")[0].strip() for line in code if line.startswith("portcullis ")})


@pytest.mark.parametrize("command", runbook_commands())
def test_a_command_of_the_runbook_exists(server_binary, command):
    words = command.split()[1:]
    names = [word for word in words if re.fullmatch(r"[a-z-]+", word) and not word.startswith("-")]
    # The longest beginning that names a subcommand has a help text, and that knows every flag.
    for length in range(min(len(names), 2), 0, -1):
        helped = subprocess.run([server_binary, *names[:length], "--help"], capture_output=True, text=True)
        if helped.returncode == 0:
            break
    else:
        raise AssertionError(f"no such command: {command}")
    for flag in re.findall(r"(--[a-z-]+)", command):
        assert re.search(rf"{flag}\b", helped.stdout), f"{command}: no flag {flag}"


@pytest.mark.parametrize("expr", runbook_queries())
def test_a_query_of_the_runbook_parses_and_its_metrics_are_there(observed, expr):
    observed.prometheus.get("query", query=expr)
    known = set(observed.prometheus.get("label/__name__/values"))
    assert metrics_of(expr) and metrics_of(expr) <= known


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("record") or "-".join(named(rule)))
def test_a_rule_parses_and_its_metrics_are_there(observed, rule):
    known = prometheus.until(
        lambda: (found := set(observed.prometheus.get("label/__name__/values"))) and RECORDED <= found and found,
        "every recorded series has values",
    )
    used = metrics_of(rule["expr"])
    assert used and used <= known


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_a_recorded_series_has_values_under_load(observed, name):
    prometheus.until(lambda: observed.prometheus.values(name), f"{name} has values")


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: "-".join(named(alert)))
def test_an_alert_under_load(observed, alert):
    """What goes wrong is noticed, at least as pending; what does not is quiet."""
    if named(alert) in EITHER:
        rules = [rule for group in observed.prometheus.get("rules")["groups"] for rule in group["rules"]]
        assert [rule["health"] for rule in rules if rule["name"] == alert["alert"]] == ["ok"]
        return
    if named(alert) in QUIET:
        assert named(alert) not in observed.prometheus.active_alerts()
        return
    prometheus.until(
        lambda: named(alert) in observed.prometheus.active_alerts(), f"{named(alert)} is pending or firing"
    )


def test_quiet_alerts_are_alerts():
    assert QUIET.keys() | EITHER <= {named(alert) for alert in ALERTS}


def test_no_rule_failed(observed):
    groups = observed.prometheus.get("rules")["groups"]
    assert {rule["name"]: rule.get("lastError") for group in groups for rule in group["rules"] if rule["health"] == "err"} == {}


def test_promtool_takes_the_exposition(observed):
    for server in observed.servers:
        with urllib.request.urlopen(f"http://{server.http}/metrics", timeout=10) as answer:
            assert promtool("check", "metrics", input=answer.read().decode()) == ""


def test_the_compose_side_of_grafana_is_read():
    """The provisioning names the data source that the dashboards fall back to, and the folder they are mounted at."""
    provisioning = ROOT / "deploy" / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    assert (source["type"], source["isDefault"]) == ("prometheus", True)
    interval = yaml.safe_load((PROMETHEUS / "prometheus.yaml").read_text())["global"]["scrape_interval"]
    assert source["jsonData"]["timeInterval"] == interval
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "portcullis.yaml").read_text())["providers"]
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"

