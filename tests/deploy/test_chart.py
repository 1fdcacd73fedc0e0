"""The chart renders, and what it renders is valid."""

import json
import os
import subprocess

import kubernetes_validate
import pytest
import yaml
from conftest import CHART, DEPLOY, HERE, VALUE_SETS, helm, objects, rendered

# The oldest that Chart.yaml allows, one between, and the newest that the schemas know.
KUBERNETES = ["1.30", "1.33", "1.37"]
OPERATOR = "monitoring.coreos.com/v1"
# Fields of the operator that the chart may use. Its schemas let unknown fields pass, and so would its API.
OPERATOR_FIELDS = {
    "ServiceMonitor": {"jobLabel", "selector", "namespaceSelector", "endpoints"},
    "PrometheusRule": {"groups"},
}
ENDPOINT_FIELDS = {"port", "path", "scheme", "interval", "scrapeTimeout"}
GROUP_FIELDS = {"name", "interval", "limit", "labels", "query_offset", "partial_response_strategy", "rules"}
RULE_FIELDS = {"alert", "record", "expr", "for", "keep_firing_for", "labels", "annotations"}


def plain_manifests() -> list[dict]:
    """What is committed besides the chart."""
    files = [*(DEPLOY / "kubernetes").glob("*.yaml"), *(DEPLOY / "sidecar").glob("*.yaml")]
    assert len(files) >= 4
    return [found for file in files for found in yaml.safe_load_all(file.read_text()) if found]


@pytest.mark.parametrize("values", VALUE_SETS)
def test_lint(values):
    result = helm("lint", "--strict", "--values", str(VALUE_SETS[values]), str(CHART))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "[WARNING]" not in result.stdout + result.stderr


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("values", VALUE_SETS)
def test_every_object_is_valid(values, version):
    found = objects(values, "--kube-version", version)
    assert len(found) >= 4
    for each in found:
        if each["apiVersion"] != OPERATOR:
            kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("version", KUBERNETES)
def test_every_plain_manifest_is_valid(version):
    for each in plain_manifests():
        if each["apiVersion"] != OPERATOR:
            kubernetes_validate.validate(each, version, strict=True)


def test_the_validator_refuses_what_is_wrong():
    (deployment,) = [each for each in objects("defaults") if each["kind"] == "Deployment"]
    deployment["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, KUBERNETES[0], strict=True)


def operator_problems(found: list[dict]) -> list[str]:
    result = subprocess.run(
        ["node", HERE / "operator.mjs"], input=json.dumps(found), capture_output=True, text=True, check=True
    )
    return json.loads(result.stdout)


def test_objects_of_the_prometheus_operator_are_valid():
    found = [each for each in [*objects("monitoring"), *plain_manifests()] if each["apiVersion"] == OPERATOR]
    assert {each["kind"] for each in found} == set(OPERATOR_FIELDS)
    assert operator_problems(found) == []
    for each in found:
        assert set(each["spec"]) <= OPERATOR_FIELDS[each["kind"]]
        for endpoint in each["spec"].get("endpoints", []):
            assert set(endpoint) <= ENDPOINT_FIELDS
        for group in each["spec"].get("groups", []):
            assert set(group) <= GROUP_FIELDS
            for rule in group["rules"]:
                assert set(rule) <= RULE_FIELDS and ("alert" in rule) != ("record" in rule)


def test_the_validator_of_the_operator_refuses_what_is_wrong():
    wrong = [each for each in objects("monitoring") if each["apiVersion"] == OPERATOR]
    for each in wrong:
        del each["spec"]["endpoints" if each["kind"] == "ServiceMonitor" else "groups"][0][
            "port" if each["kind"] == "ServiceMonitor" else "name"
        ]
        if each["kind"] == "ServiceMonitor":
            each["spec"]["endpoints"][0]["interval"] = "often"
    assert len(operator_problems(wrong)) == len(wrong) == 2


def test_older_clusters_are_refused():
    result = helm("template", "portcullis", str(CHART), "--kube-version", "1.29")
    assert result.returncode != 0
    assert "kubeVersion" in result.stderr


@pytest.mark.parametrize("values", VALUE_SETS)
def test_every_object_has_its_namespace_and_labels(values):
    for each in objects(values):
        labels = each["metadata"]["labels"]
        assert each["metadata"]["namespace"] == "agents"
        assert {"app.kubernetes.io/name", "app.kubernetes.io/instance"} <= set(labels)
        assert len(each["metadata"]["name"]) <= 63
    names = [(each["kind"], each["metadata"]["name"]) for each in objects(values)]
    assert len(names) == len(set(names)), "no two objects share a kind and a name"


def test_long_names_are_cut():
    result = helm("template", "r" * 53, str(CHART), "--set", "nameOverride=" + "n" * 63)
    assert result.returncode == 0, result.stderr
    for each in yaml.safe_load_all(result.stdout):
        assert len(each["metadata"]["name"]) <= 63
        assert all(len(value) <= 63 for value in each["metadata"]["labels"].values())


def test_rules_and_dashboards_of_the_chart_are_those_of_deploy():
    """A chart cannot reach outside its folder, so deploy/render copies them."""
    for folder, pattern in (("prometheus", "*.rules.yaml"), ("grafana", "*.json")):
        ours = {file.name: file.read_bytes() for file in (DEPLOY / folder).glob(pattern)}
        copies = {file.name: file.read_bytes() for file in (CHART / "files" / folder).glob("*")}
        assert copies == ours, f"run deploy/render: {folder}"


def test_every_rule_group_reaches_the_prometheus_rule():
    expected = ["portcullis.tests"]
    for file in sorted((DEPLOY / "prometheus").glob("*.rules.yaml"), reverse=True):
        expected = [group["name"] for group in yaml.safe_load(file.read_text())["groups"]] + expected
    (rule,) = [each for each in objects("monitoring") if each["kind"] == "PrometheusRule"]
    assert [group["name"] for group in rule["spec"]["groups"]] == expected
    alert = rule["spec"]["groups"][-1]["rules"][0]
    assert alert["annotations"]["summary"] == "{{ $labels.pod }} lost {{ $value }} audit records", "Helm leaves it alone"


def test_every_dashboard_becomes_a_config_map():
    dashboards = {file.name: json.loads(file.read_text()) for file in (DEPLOY / "grafana").glob("*.json")}
    if dashboards:
        found = objects("defaults", "--set", "dashboards.enabled=true")
        maps = [each for each in found if each["metadata"]["labels"].get("grafana_dashboard") == "1"]
        assert {key: json.loads(text) for each in maps for key, text in each["data"].items()} == dashboards
    else:
        result = helm("template", "portcullis", str(CHART), "--set", "dashboards.enabled=true")
        assert result.returncode != 0 and "files/grafana of the chart is empty" in result.stderr


def test_links_to_the_runbook_lead_where_the_values_say():
    """Those of the chart's files lead nowhere, and nobody can change the files of a packed chart."""
    nowhere, ours, theirs = "https://portcullis.example", "https://git.example.com/pdp/runbook.md", "https://wiki.example.com/guards"
    enabled = ["--set", "prometheusRule.enabled=true,dashboards.enabled=true"]
    as_it_is = rendered("defaults", *enabled)
    links = as_it_is.count(f"{nowhere}/docs/runbook.md#")
    assert links > 50
    moved = rendered("defaults", *enabled, "--set", f"prometheusRule.runbookUrl={ours}")
    assert nowhere not in moved
    assert moved == as_it_is.replace(f"{nowhere}/docs/runbook.md", ours) and moved.count(f"{ours}#") == links
    both = rendered("defaults", *enabled, "--set", f"prometheusRule.runbookUrl={ours},dashboards.runbookUrl={theirs}")
    assert nowhere not in both and both.count(f"{ours}#") + both.count(f"{theirs}#") == links
    (rule,) = [each for each in yaml.safe_load_all(both) if each["kind"] == "PrometheusRule"]
    urls = [each["annotations"]["runbook_url"] for group in rule["spec"]["groups"] for each in group["rules"] if "alert" in each]
    assert len(urls) > 25 and all(url.startswith(f"{ours}#portcullis") for url in urls)


def test_notes_say_what_is_left_to_do():
    """Notes are told at an installation only; the client alone can say what they would be."""
    arguments = ["install", "portcullis", str(CHART), "--dry-run=client", "--namespace", "agents"]
    result = helm(*arguments)
    assert result.returncode == 0, result.stderr
    notes = result.stdout.partition("NOTES:")[2]
    assert "kubectl -n agents create secret generic portcullis-tokens --from-file=tokens.yaml" in notes
    assert "kubectl -n agents create secret tls portcullis-tls --cert=server.pem --key=server.key" in notes
    assert "dns:///portcullis-headless.agents.svc:50051" in notes
    result = helm(*arguments, "--set", "auth.mode=none,auth.insecureAllowAnonymous=true,tls.enabled=false,networkPolicy.enabled=false")
    notes = result.stdout.partition("NOTES:")[2]
    assert "Nobody is authenticated" in notes and "The NetworkPolicy is off as well." in notes


def test_a_change_of_settings_starts_new_pods():
    def checksum(*arguments):
        (deployment,) = [each for each in objects("defaults", *arguments) if each["kind"] == "Deployment"]
        return deployment["spec"]["template"]["metadata"]["annotations"]["checksum/settings"]

    assert checksum() == checksum("--set", "replicas=1")
    assert checksum() != checksum("--set", "config.log.level=debug")
    assert checksum() == checksum("--set-json", 'podDisruptionBudget={"enabled":false}')
    assert rendered("defaults") == rendered("defaults", "--set", "replicas=1")


def test_snapshot():
    """deploy/kubernetes is what the chart renders today."""
    result = subprocess.run(
        [DEPLOY / "render", "--check"], capture_output=True, text=True, env={**os.environ, "HELM": os.environ["HELM"]}
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_snapshot_is_compared(tmp_path):
    copy = tmp_path / "deploy"
    subprocess.run(["cp", "-R", DEPLOY, copy], check=True)
    manifest = copy / "kubernetes" / "single.yaml"
    manifest.write_text(manifest.read_text().replace("runAsNonRoot: true", "runAsNonRoot: false", 1))
    result = subprocess.run([copy / "render", "--check"], capture_output=True, text=True, env=os.environ)
    assert result.returncode == 1
    assert "-        runAsNonRoot: false" in result.stdout
    subprocess.run([copy / "render"], check=True, env=os.environ)
    assert manifest.read_bytes() == (DEPLOY / "kubernetes" / "single.yaml").read_bytes()
