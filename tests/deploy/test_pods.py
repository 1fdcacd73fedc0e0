"""How pods start, are asked, spread, stop and are counted."""

import pytest
from conftest import VALUE_SETS, named, objects, pod_of, service_container

# Seconds: the pause before SIGTERM, server.drain_timeout, and what the pod is given.
STOPS = {
    "defaults": (5, 10, 45),
    "anonymous": (0, 10, 40),
    "fixed-replicas": (5, 90, 125),
    "everything-else": (15, 2, 120),
}
# The service ends at most this long after its drain: the limits of src/app.rs and of what it calls, for reviews (5), sessions
# (2), incidents, HTTP answers, audit records and spans (5 each).
AFTER_DRAIN_S = 27
# The kubelet speaks no TLS in its probes over gRPC.
OVER_TLS = {"adapters", "defaults", "single", "jwt", "mtls", "everything-else"}


@pytest.mark.parametrize("values", STOPS)
def test_a_stop_is_given_its_time(values):
    pause, drain, grace = STOPS[values]
    pod = pod_of(named(values, "Deployment"))
    (container,) = pod["containers"]
    assert container.get("lifecycle") == ({"preStop": {"sleep": {"seconds": pause}}} if pause else None)
    assert pod["terminationGracePeriodSeconds"] == grace >= pause + drain + AFTER_DRAIN_S


@pytest.mark.parametrize("drain", [("500ms", 1), ("10s", 10), ("2m", 120), ("1h", 3600), ("1500ms", 2), ("3 s", 3)])
def test_the_drain_is_part_of_it(drain):
    text, seconds = drain
    found = objects("defaults", "--set-string", f"config.server.drain_timeout={text}")
    (deployment,) = [each for each in found if each["kind"] == "Deployment"]
    assert pod_of(deployment)["terminationGracePeriodSeconds"] == 5 + seconds + 30


@pytest.mark.parametrize("values", VALUE_SETS)
def test_probes(values):
    """Health over gRPC; with TLS, which the kubelet does not speak there, the same over HTTP. Whether to kill is another
    question: a service that drains or has no policy is alive."""
    container = service_container(values)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    host = [{"name": "Host", "value": "localhost"}]
    if values in OVER_TLS:
        serving = {"httpGet": {"path": "/readyz", "port": "http", "httpHeaders": host}}
    else:
        serving = {"grpc": {"port": ports["grpc"]}}
    for probe in ("startupProbe", "readinessProbe"):
        assert container[probe].items() >= serving.items()
    assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "http", "httpHeaders": host}
    startup = container["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 30


@pytest.mark.parametrize("values", VALUE_SETS)
def test_services_find_the_pods(values):
    deployment = named(values, "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    container = service_container(values)
    names = {port["name"] for port in container["ports"]}
    services = [each for each in objects(values) if each["kind"] == "Service"]
    for service in services:
        assert service["spec"]["selector"].items() <= labels.items()
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= names
    headless = [each for each in services if each["spec"].get("clusterIP") == "None"]
    assert len(headless) == (0 if values == "anonymous" else 1)
    for service in headless:
        assert [port["name"] for port in service["spec"]["ports"]] == ["grpc"]
    for each in objects(values):
        if each["kind"] in ("NetworkPolicy", "PodDisruptionBudget"):
            selector = each["spec"].get("podSelector") or each["spec"]["selector"]
            assert selector["matchLabels"].items() <= labels.items()
        if each["kind"] == "ServiceMonitor":
            (matching,) = [s for s in services if each["spec"]["selector"]["matchLabels"].items() <= s["metadata"]["labels"].items()]
            assert {e["port"] for e in each["spec"]["endpoints"]} <= {p["name"] for p in matching["spec"]["ports"]}
            assert matching["metadata"]["labels"][each["spec"]["jobLabel"]] == "portcullis"


def test_the_test_of_the_release_is_none_of_the_pods():
    (test,) = [each for each in objects("mesh") if each["kind"] == "Pod"]
    assert not [each for each in objects("defaults") if each["kind"] == "Pod"]
    selector = named("mesh", "Deployment")["spec"]["selector"]["matchLabels"]
    assert not selector.items() <= test["metadata"]["labels"].items()
    assert test["spec"]["containers"][0]["args"] == ["health", "--timeout=10s", "--server=http://portcullis:50051"]


def test_one_pod_keeps_its_folder_to_itself():
    deployment = named("defaults", "Deployment")["spec"]
    assert deployment["replicas"] == 1 and deployment["strategy"] == {"type": "Recreate"}
    claim = named("defaults", "PersistentVolumeClaim")
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    volumes = {volume["name"]: volume for volume in deployment["template"]["spec"]["volumes"]}
    assert volumes["data"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]


def test_a_claim_that_is_there_already_is_used():
    found = objects("defaults", "--set", "persistence.existingClaim=old")
    assert not [each for each in found if each["kind"] == "PersistentVolumeClaim"]
    (deployment,) = [each for each in found if each["kind"] == "Deployment"]
    volumes = {volume["name"]: volume for volume in pod_of(deployment)["volumes"]}
    assert volumes["data"]["persistentVolumeClaim"]["claimName"] == "old"


@pytest.mark.parametrize("values", ["fixed-replicas", "replicated"])
def test_pods_that_share_their_state_roll_over(values):
    deployment = named(values, "Deployment")["spec"]
    assert deployment["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    volumes = {volume["name"]: volume for volume in deployment["template"]["spec"]["volumes"]}
    assert volumes["data"] == {"name": "data", "emptyDir": {"sizeLimit": "2Gi"}}
    assert not [each for each in objects(values) if each["kind"] == "PersistentVolumeClaim"]


def test_autoscaling_decides_the_number_of_pods():
    deployment = named("replicated", "Deployment")
    assert "replicas" not in deployment["spec"]
    scaler = named("replicated", "HorizontalPodAutoscaler")["spec"]
    assert scaler["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment["metadata"]["name"]}
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (3, 12)
    (metric,) = scaler["metrics"]
    assert metric["resource"] == {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}
    assert not [each for each in objects("fixed-replicas") if each["kind"] == "HorizontalPodAutoscaler"]


def test_the_disruption_budget():
    assert named("defaults", "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert named("everything-else", "PodDisruptionBudget")["spec"]["maxUnavailable"] == 0
    budget = named("fixed-replicas", "PodDisruptionBudget")["spec"]
    assert budget["minAvailable"] == "50%" and "maxUnavailable" not in budget


def test_pods_spread_over_nodes_and_zones():
    deployment = named("replicated", "Deployment")["spec"]
    spread = deployment["template"]["spec"]["topologySpreadConstraints"]
    assert [each["topologyKey"] for each in spread] == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    for each in spread:
        assert each["labelSelector"]["matchLabels"] == deployment["selector"]["matchLabels"]
        assert each["matchLabelKeys"] == ["pod-template-hash"]


def test_every_other_value_arrives():
    deployment = named("everything-else", "Deployment")["spec"]["template"]
    pod = deployment["spec"]
    (container,) = pod["containers"]
    assert container["image"].startswith("registry.example.org/portcullis@sha256:0123")
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["serviceAccountName"] == "pdp"
    assert deployment["metadata"]["labels"]["team"] == "security"
    assert deployment["metadata"]["annotations"]["note"] == "here"
    assert pod["priorityClassName"] == "system-cluster-critical"
    assert pod["nodeSelector"] == {"kubernetes.io/arch": "amd64"}
    assert pod["tolerations"][0]["key"] == "guards"
    assert pod["affinity"]["nodeAffinity"]
    claim = named("everything-else", "PersistentVolumeClaim")
    assert claim["spec"]["storageClassName"] == "fast" and claim["metadata"]["annotations"] == {"backup": "nightly"}
    assert named("everything-else", "Service", "guard")["spec"]["type"] == "LoadBalancer"
