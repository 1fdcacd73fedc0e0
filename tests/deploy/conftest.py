"""What the tests of deploy/ share: the value sets, and what Helm makes of them."""

import functools
import os
import pathlib
import subprocess
import tempfile

import yaml

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "portcullis"
# Every set of values that must render: those of the tests, and those of which deploy/kubernetes is made.
VALUE_SETS = {path.stem: path for path in [*(HERE / "values").glob("*.yaml"), *(DEPLOY / "helm/values").glob("*.yaml")]}
NAMESPACE = "agents"


def helm(*arguments: str) -> subprocess.CompletedProcess:
    """Runs Helm, which finds neither settings nor a cluster of whoever runs the tests."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "KUBECONFIG": os.devnull, "PATH": os.environ["PATH"]}
        return subprocess.run([os.environ["HELM"], *arguments], capture_output=True, text=True, env=environment)


@functools.cache
def rendered(name: str, *arguments: str) -> str:
    """What a value set becomes, as text."""
    result = helm("template", "portcullis", str(CHART), "--namespace", NAMESPACE, "--values", str(VALUE_SETS[name]), *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def objects(name: str, *arguments: str) -> list[dict]:
    """The objects that a value set becomes."""
    return [found for found in yaml.safe_load_all(rendered(name, *arguments)) if found]


def named(name: str, kind: str, ending: str = "") -> dict:
    """The one object of a kind, whose name ends so."""
    found = [o for o in objects(name) if o["kind"] == kind and o["metadata"]["name"].endswith(ending)]
    if kind in ("Service", "ConfigMap") and not ending:
        found = sorted(found, key=lambda o: len(o["metadata"]["name"]))[:1]
    assert len(found) == 1, f"{name} has {len(found)} of {kind} {ending}"
    return found[0]


def pod_of(found: dict) -> dict | None:
    """The spec of the pods that an object makes; None when it makes none."""
    match found["kind"]:
        case "Pod":
            return found["spec"]
        case "Deployment" | "Job":
            return found["spec"]["template"]["spec"]
    return None


def containers_of(pod: dict) -> list[dict]:
    """Every container of a pod."""
    return [*pod.get("initContainers", []), *pod["containers"]]


def service_container(name: str) -> dict:
    """The container of the service."""
    (container,) = named(name, "Deployment")["spec"]["template"]["spec"]["containers"]
    return container


def settings_of(name: str) -> str:
    """The settings file that a value set becomes."""
    return named(name, "ConfigMap")["data"]["portcullis.yaml"]
