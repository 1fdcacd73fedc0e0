"""The controls of the Pod Security Standards, level "restricted", each as a check of one pod.

Source: the page "Pod Security Standards" of the documentation of Kubernetes, at 1.34. Every control answers what breaks it;
an empty list is a pass.
"""

from conftest import containers_of

VOLUME_TYPES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
SYSCTLS = {
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}  # fmt: skip
SELINUX_TYPES = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}


def _context(thing: dict) -> dict:
    return thing.get("securityContext") or {}


def _each(pod: dict, is_broken) -> list[str]:
    return [container["name"] for container in containers_of(pod) if is_broken(container)]


def _either(pod: dict, is_broken) -> list[str]:
    """The pod's own context, and that of each container."""
    return (["pod"] if is_broken(_context(pod)) else []) + _each(pod, lambda c: is_broken(_context(c)))


def _effective(pod: dict, key: str, is_broken) -> list[str]:
    """What holds for a container: its own value, else that of the pod."""
    return _each(pod, lambda c: is_broken(_context(c).get(key, _context(pod).get(key))))


def _handlers(container: dict) -> list[dict]:
    probes = [container.get(f"{name}Probe") or {} for name in ("liveness", "readiness", "startup")]
    return probes + list((container.get("lifecycle") or {}).values())


CONTROLS = {
    "host process": lambda p: _either(p, lambda c: (c.get("windowsOptions") or {}).get("hostProcess")),
    "host namespaces": lambda p: [key for key in ("hostNetwork", "hostPID", "hostIPC") if p.get(key)],
    "privileged": lambda p: _each(p, lambda c: _context(c).get("privileged")),
    "host path": lambda p: [v["name"] for v in p.get("volumes", []) if "hostPath" in v],
    "host ports": lambda p: _each(p, lambda c: any(port.get("hostPort") for port in c.get("ports", []))),
    "host of probes": lambda p: _each(
        p, lambda c: any(h.get(kind, {}).get("host") for h in _handlers(c) for kind in ("httpGet", "tcpSocket"))
    ),
    "AppArmor": lambda p: _either(p, lambda c: (c.get("appArmorProfile") or {}).get("type") == "Unconfined"),
    "SELinux": lambda p: _either(
        p,
        lambda c: (c.get("seLinuxOptions") or {}).get("type", "") not in SELINUX_TYPES
        or any((c.get("seLinuxOptions") or {}).get(key) for key in ("user", "role")),
    ),
    "proc mount": lambda p: _each(p, lambda c: _context(c).get("procMount", "Default") != "Default"),
    "sysctls": lambda p: [s["name"] for s in _context(p).get("sysctls", []) if s["name"] not in SYSCTLS],
    "volume types": lambda p: [v["name"] for v in p.get("volumes", []) if not set(v) - {"name"} <= VOLUME_TYPES],
    "privilege escalation": lambda p: _each(p, lambda c: _context(c).get("allowPrivilegeEscalation") is not False),
    "running as non-root": lambda p: _effective(p, "runAsNonRoot", lambda value: value is not True),
    "running as non-root user": lambda p: _either(p, lambda c: c.get("runAsUser") == 0),
    "seccomp": lambda p: _effective(
        p, "seccompProfile", lambda value: (value or {}).get("type") not in ("RuntimeDefault", "Localhost")
    ),
    "capabilities": lambda p: _each(
        p,
        lambda c: "ALL" not in (_context(c).get("capabilities") or {}).get("drop", [])
        or set((_context(c).get("capabilities") or {}).get("add", [])) - {"NET_BIND_SERVICE"},
    ),
}

# What we ask of our own pods beyond the standard.
OURS = {
    "no token of the API": lambda p: [] if p.get("automountServiceAccountToken") is False else ["pod"],
    "no service links": lambda p: [] if p.get("enableServiceLinks") is False else ["pod"],
    "read-only root": lambda p: _each(p, lambda c: _context(c).get("readOnlyRootFilesystem") is not True),
    "a numbered user": lambda p: _effective(p, "runAsUser", lambda value: not value),
    "requests and a memory limit": lambda p: _each(
        p,
        lambda c: not {"cpu", "memory"} <= set(c.get("resources", {}).get("requests", {}))
        or "memory" not in c.get("resources", {}).get("limits", {}),
    ),
    "a pinned image": lambda p: _each(
        p, lambda c: not ("@sha256:" in c["image"] or ":" in c["image"].rpartition("/")[2]) or c["image"].endswith(":latest")
    ),
}
