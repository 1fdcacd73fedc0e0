"""Every pod is restricted by the Pod Security Standards, and more."""

import copy

import pytest
import yaml
from conftest import DEPLOY, VALUE_SETS, named, objects, pod_of
from security import CONTROLS, OURS

SIDECAR = list(yaml.safe_load_all((DEPLOY / "sidecar" / "job.yaml").read_text()))
PODS = {
    f"{values}: {each['kind']}": pod for values in VALUE_SETS for each in objects(values) if (pod := pod_of(each))
} | {"sidecar": pod_of(SIDECAR[1])}


@pytest.mark.parametrize("control", CONTROLS | OURS)
@pytest.mark.parametrize("pod", PODS)
def test_control(pod, control):
    assert (CONTROLS | OURS)[control](PODS[pod]) == []


# How each control can be broken, so that none of them is one that always holds.
BREAKS = {
    "host process": lambda p, c: c["securityContext"].update(windowsOptions={"hostProcess": True}),
    "host namespaces": lambda p, c: p.update(hostPID=True),
    "privileged": lambda p, c: c["securityContext"].update(privileged=True),
    "host path": lambda p, c: p["volumes"].append({"name": "x", "hostPath": {"path": "/"}}),
    "host ports": lambda p, c: c["ports"][0].update(hostPort=1),
    "host of probes": lambda p, c: c["livenessProbe"]["httpGet"].update(host="10.0.0.1"),
    "AppArmor": lambda p, c: c["securityContext"].update(appArmorProfile={"type": "Unconfined"}),
    "SELinux": lambda p, c: c["securityContext"].update(seLinuxOptions={"type": "spc_t"}),
    "proc mount": lambda p, c: c["securityContext"].update(procMount="Unmasked"),
    "sysctls": lambda p, c: p["securityContext"].update(sysctls=[{"name": "kernel.msgmax", "value": "1"}]),
    "volume types": lambda p, c: p["volumes"].append({"name": "x", "nfs": {}}),
    "privilege escalation": lambda p, c: c["securityContext"].pop("allowPrivilegeEscalation"),
    "running as non-root": lambda p, c: c["securityContext"].update(runAsNonRoot=False),
    "running as non-root user": lambda p, c: c["securityContext"].update(runAsUser=0),
    "seccomp": lambda p, c: c["securityContext"].update(seccompProfile={"type": "Unconfined"}),
    "capabilities": lambda p, c: c["securityContext"]["capabilities"].update(add=["NET_ADMIN"]),
    "no token of the API": lambda p, c: p.pop("automountServiceAccountToken"),
    "no service links": lambda p, c: p.pop("enableServiceLinks"),
    "read-only root": lambda p, c: c["securityContext"].update(readOnlyRootFilesystem=False),
    "a numbered user": lambda p, c: p["securityContext"].pop("runAsUser"),
    "requests and a memory limit": lambda p, c: c["resources"]["limits"].pop("memory"),
    "a pinned image": lambda p, c: c.update(image="registry:5000/portcullis"),
}


@pytest.mark.parametrize("control", CONTROLS | OURS)
def test_each_control_can_be_broken(control):
    pod = copy.deepcopy(PODS["defaults: Deployment"])
    BREAKS[control](pod, pod["containers"][0])
    assert (CONTROLS | OURS)[control](pod)


@pytest.mark.parametrize("values", VALUE_SETS)
def test_what_is_writable(values):
    """The data folder and /tmp; everything else that is mounted is read-only."""
    (container,) = PODS[f"{values}: Deployment"]["containers"]
    writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert writable == {"/var/lib/portcullis", "/tmp"}
    # A mount below another one needs a folder that a read-only volume cannot get.
    paths = [mount["mountPath"] for mount in container["volumeMounts"]]
    assert not [(a, b) for a in paths for b in paths if a != b and b.startswith(a + "/")]
    volumes = {volume["name"] for volume in PODS[f"{values}: Deployment"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes


@pytest.mark.parametrize("values", VALUE_SETS)
def test_no_secret_is_in_a_manifest(values):
    found = objects(values)
    assert not [each for each in found if each["kind"] == "Secret"]
    container = PODS[f"{values}: Deployment"]["containers"][0]
    given = {variable["name"]: variable for variable in container["env"]}
    for name in ("GEMINI_API_KEY", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD"):
        assert set(given.get(name, {"valueFrom": {}})) & {"valueFrom"}


def test_secret_files_keep_to_their_group():
    volumes = {volume["name"]: volume for volume in PODS["replicated: Deployment"]["volumes"]}
    assert volumes["tokens"]["secret"] == {"secretName": "portcullis-tokens", "defaultMode": 0o440}
    assert volumes["secret-database"]["secret"] == {"secretName": "portcullis-database", "defaultMode": 0o440}


def test_service_accounts_have_no_token():
    assert named("defaults", "ServiceAccount")["automountServiceAccountToken"] is False
    assert pod_of(named("anonymous", "Deployment"))["serviceAccountName"] == "default"


def test_files_of_the_data_folder_keep_their_modes():
    """With another policy the kubelet opens them to the group at each mount, and the admin token is refused."""
    context = PODS["defaults: Deployment"]["securityContext"]
    assert context["fsGroupChangePolicy"] == "OnRootMismatch"
