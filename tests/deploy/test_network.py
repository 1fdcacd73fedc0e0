"""What the NetworkPolicy lets in and out."""

import pytest
from conftest import VALUE_SETS, named, objects, service_container

PRIVATE = ["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"]
INTERNET = [
    {"ipBlock": {"cidr": "0.0.0.0/0", "except": PRIVATE}},
    {"ipBlock": {"cidr": "::/0", "except": ["::1/128", "fc00::/7", "fe80::/10"]}},
]
ANYWHERE = None


def of_namespace(name):
    return [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}]


DNS = (53, [of_namespace("kube-system")[0] | {"podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}])
# Port and peers of each rule for TCP, in order.
EGRESS = {
    "defaults": [DNS],
    "single": [DNS],
    "policies": [DNS],
    "monitoring": [DNS],
    "ipv6": [DNS],
    "mtls": [DNS],
    "mesh": [DNS],
    "adapters": [DNS],
    "jwt": [DNS, (443, ANYWHERE)],
    "everything-else": [(53, [{"ipBlock": {"cidr": "169.254.20.10/32"}}])],
    "fixed-replicas": [DNS, (6432, [{"ipBlock": {"cidr": "10.20.30.40/32"}}]), (9000, of_namespace("storage"))],
    "replicated": [DNS, (5432, of_namespace("databases")), (443, INTERNET), (443, INTERNET)],
    "models": [
        DNS,
        (11434, [{"podSelector": {}}]),
        (8000, [of_namespace("models")[0] | {"podSelector": {"matchLabels": {"app": "guard"}}}]),
        (4317, of_namespace("observability")),
        (443, ANYWHERE),
        (8443, ANYWHERE),
        (8081, [{"podSelector": {"matchLabels": {"app": "interceptor"}}}]),
    ],
}


@pytest.mark.parametrize("values", EGRESS)
def test_egress(values):
    policy = named(values, "NetworkPolicy")["spec"]
    found = [(port["port"], rule.get("to")) for rule in policy["egress"] for port in rule["ports"] if port["protocol"] == "TCP"]
    assert found == EGRESS[values]


def test_every_value_set_is_looked_at():
    assert set(EGRESS) == set(VALUE_SETS) - {"anonymous"}
    assert not [each for each in objects("anonymous") if each["kind"] == "NetworkPolicy"]


@pytest.mark.parametrize("values", EGRESS)
def test_ingress(values):
    policy = named(values, "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    ports = {port["name"]: port["containerPort"] for port in service_container(values)["ports"]}
    found = {rule["ports"][0]["port"]: rule["from"] for rule in policy["ingress"]}
    assert all(len(rule["ports"]) == 1 and rule["from"] for rule in policy["ingress"]), "no rule without peers"
    if values == "everything-else":
        assert found == {ports["grpc"]: [{"namespaceSelector": {"matchLabels": {"agents": "true"}}}]}
    else:
        # Adapters are called through a proxy.
        http = of_namespace("ingress" if values == "adapters" else "monitoring")
        assert found == {ports["grpc"]: [{"podSelector": {}}], ports["http"]: http}


def test_an_empty_list_of_peers_lets_nobody_pass():
    """In a NetworkPolicy itself it would let everybody pass."""
    arguments = ["networkPolicy.ingress.grpc", "networkPolicy.ingress.http", "networkPolicy.egress.dns"]
    found = objects("defaults", *[part for key in arguments for part in ("--set-json", f"{key}=[]")])
    (policy,) = [each for each in found if each["kind"] == "NetworkPolicy"]
    assert policy["spec"]["ingress"] == [] and policy["spec"]["egress"] == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        # Who asks nobody is let out to nobody.
        ("config.llm.backend=none", []),
        ("config.llm.backend=anthropic", [(443, INTERNET)]),
        ("config.llm.backend=openai,config.llm.base_url=http://127.0.0.1:9999", []),
        ("config.llm.backend=openai,config.llm.base_url=http://10.0.0.9", [(80, [{"ipBlock": {"cidr": "10.0.0.9/32"}}])]),
        ("config.llm.backend=gemini,config.llm.proxy=http://proxy.egress.svc:3128", [(3128, of_namespace("egress"))]),
        ("config.llm.backend=ollama,config.llm.base_url=https://[2001:db8::7]:8443", [(8443, [{"ipBlock": {"cidr": "2001:db8::7/128"}}])]),
        ("env.LLAMAGUARD_ENABLED=true", []),
        ("env.LLAMAGUARD_ENABLED=true,env.LLAMAGUARD_ENDPOINT=http://guard:11434/api/generate", [(11434, [{"podSelector": {}}])]),
        ("env.OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4317", [(4317, [{"podSelector": {}}])]),
        ("config.audit.sink=otlp,config.audit.otlp_endpoint=http://logs:4317", [(4317, [{"podSelector": {}}])]),
        ("config.audit.otlp_endpoint=http://logs:4317,config.tracing.otlp_endpoint=http://logs:4317", [(4317, [{"podSelector": {}}])]),
        ("config.audit.otlp_endpoint=http://logs:4317,config.tracing.otlp_endpoint=http://spans:4318", [(4318, [{"podSelector": {}}]), (4317, [{"podSelector": {}}])]),
        ("config.store.url=postgres://portcullis@db.example.com/portcullis", [(5432, ANYWHERE)]),
    ],
)  # fmt: skip
def test_destinations(settings, expected):
    found = objects("defaults", "--set", settings.replace(".com", r".com"))
    (policy,) = [each for each in found if each["kind"] == "NetworkPolicy"]
    rules = policy["spec"]["egress"][1:]
    assert [(rule["ports"][0]["port"], rule.get("to")) for rule in rules] == expected


def test_a_key_alone_chooses_a_provider():
    secret = '[{"name":"GEMINI_API_KEY","secretName":"models","key":"gemini"}]'
    found = objects("defaults", "--set-json", f"secrets.env={secret}")
    (policy,) = [each for each in found if each["kind"] == "NetworkPolicy"]
    assert [rule["ports"][0]["port"] for rule in policy["spec"]["egress"]] == [53, 443]
