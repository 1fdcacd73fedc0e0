"""TLS, mutual TLS, tokens over TLS and identities of certificates: the listener of a real server, with nothing between."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import os
import ssl
import subprocess
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from conftest import running_server
from portcullis import AsyncClient, Client, ConfigurationError, Decision, Retry, Tls, Unavailable
from portcullis.errors import PermissionDenied, Unauthenticated

ONCE = Retry(attempts_max=1)


def certificate(folder, name, issuer=None, is_authority=False):
    """A certificate and its key, as files; signed by `issuer`, or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if not is_authority:
        names = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    made = builder.sign(issuer[1] if issuer else key, hashes.SHA256())
    (folder / f"{name}.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return made, key


# What signs more certificates in the folder of the fixture below: certificate and key.
AUTHORITY = []


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    authority = certificate(folder, "authority", is_authority=True)
    certificate(folder, "server.test", authority)
    certificate(folder, "client.test", authority)
    certificate(folder, "stranger", is_authority=True)
    AUTHORITY[:] = [authority]
    return folder


def listener(folder, wants_client):
    """Settings of a listener that speaks TLS."""
    names = {"certificate": "server.test.pem", "key": "server.test.key"}
    if wants_client:
        names["client_ca"] = "authority.pem"
    return {"tls": {key: str(folder / name) for key, name in names.items()}}


@pytest.fixture(scope="module", params=[False, True], ids=["tls", "mutual tls"])
def guarded(request, certificates, tmp_path_factory):
    """A server whose listener speaks TLS, with and without certificates of clients."""
    settings = {"server": listener(certificates, request.param)}
    with running_server(tmp_path_factory.mktemp("guarded"), settings) as server:
        server.is_mutual = request.param
        server.port = server.grpc.rpartition(":")[2]
        yield server


def tls(folder, guarded, **changed):
    fields = {"root_certificates": folder / "authority.pem"}
    if guarded.is_mutual:
        fields |= {"certificate": folder / "client.test.pem", "private_key": folder / "client.test.key"}
    return Tls(**(fields | changed))


def test_questions_are_answered(certificates, guarded):
    with Client(f"127.0.0.1:{guarded.port}", tls=tls(certificates, guarded), token=guarded.admin_token) as client:
        assert client.check_messages("hello").decision == Decision.ALLOW

    async def run():
        async with AsyncClient(f"https://127.0.0.1:{guarded.port}", tls=tls(certificates, guarded)) as client:
            return await client.check_messages("hello")

    assert asyncio.run(run()).decision == Decision.ALLOW


def test_certificates_may_be_bytes_and_names_may_differ(certificates, guarded):
    settings = tls(
        certificates, guarded, root_certificates=(certificates / "authority.pem").read_bytes(), server_name="server.test"
    )
    with Client(f"localhost:{guarded.port}", tls=settings) as client:
        assert client.check_messages("hello").decision == Decision.ALLOW


def test_several_addresses(certificates, guarded):
    target = [f"127.0.0.1:{guarded.port}", f"localhost:{guarded.port}"]
    with Client(target, tls=tls(certificates, guarded)) as client:
        assert client.check_messages("hello").decision == Decision.ALLOW


@pytest.mark.parametrize(
    "changed",
    [{"root_certificates": "stranger.pem"}, {"server_name": "somebody.else"}],
    ids=["strange authority", "wrong name"],
)
def test_a_server_that_is_not_who_it_should_be_is_not_asked(certificates, guarded, changed):
    if "root_certificates" in changed:
        changed = {"root_certificates": certificates / changed["root_certificates"]}
    with Client(f"127.0.0.1:{guarded.port}", tls=tls(certificates, guarded, **changed), retry=ONCE) as client:
        with pytest.raises(Unavailable, match="TLS"):
            client.check_messages("hello")


def test_only_mutual_tls_needs_the_clients_certificate(certificates, guarded):
    settings = Tls(root_certificates=certificates / "authority.pem")
    with Client(f"127.0.0.1:{guarded.port}", tls=settings, retry=ONCE) as client:
        if guarded.is_mutual:
            with pytest.raises(Unavailable):
                client.check_messages("hello")
        else:
            assert client.check_messages("hello").decision == Decision.ALLOW


def test_plain_text_to_a_tls_port_and_tls_to_a_plain_port(certificates, guarded, server):
    with Client(f"127.0.0.1:{guarded.port}", retry=ONCE) as client, pytest.raises(Unavailable):
        client.check_messages("hello")
    with Client(server.grpc, tls=tls(certificates, guarded), retry=ONCE) as client:
        with pytest.raises(Unavailable, match="agree on TLS"):
            client.check_messages("hello")


def test_files_that_are_missing_are_named(tmp_path):
    with pytest.raises(ConfigurationError, match="root_certificates.*missing.pem"):
        Client("127.0.0.1:1", tls=Tls(root_certificates=tmp_path / "missing.pem"))
    with pytest.raises(ConfigurationError, match="both"):
        Client("127.0.0.1:1", tls=Tls(certificate=b"x"))


@pytest.fixture(scope="module", params=[False, True], ids=["tls", "mutual tls"])
def with_tokens(request, certificates, tmp_path_factory):
    """A server that wants a token over TLS, and with mutual TLS a certificate besides: its `tokens` by role."""
    folder = tmp_path_factory.mktemp("tokens")
    tokens = {}
    for role in ("agent", "auditor"):
        command = [os.environ["TEST_SERVER"], "token", "create", "--name", f"{role}-1", "--roles", role, "--append", "tokens.yaml"]
        done = subprocess.run(command, cwd=folder, env={}, check=True, capture_output=True, text=True)
        tokens[role] = done.stdout.strip()
    auth = {"mode": "tokens", "tokens": {"path": "tokens.yaml"}}
    with running_server(folder, {"server": listener(certificates, request.param), "auth": auth}) as server:
        server.is_mutual, server.tokens, server.folder = request.param, tokens, folder
        yield server


def test_tokens_over_tls(certificates, with_tokens, tmp_path):
    def client(token):
        return Client(with_tokens.grpc, tls=tls(certificates, with_tokens), token=token, retry=ONCE)

    file = tmp_path / "token"
    file.write_text(with_tokens.tokens["agent"] + "\n")
    for token in (with_tokens.tokens["agent"], file, lambda: with_tokens.tokens["agent"]):
        with client(token) as known:
            assert known.check_messages("hello").decision == Decision.ALLOW
    with client(with_tokens.tokens["auditor"]) as auditor, pytest.raises(PermissionDenied) as denied:
        auditor.check_messages("hello")
    assert denied.value.reason == "NEEDS_ROLE"
    for token, reason in ((None, "NO_CREDENTIALS"), ("pct_of_nobody", "BAD_CREDENTIALS")):
        with client(token) as stranger, pytest.raises(Unauthenticated) as refused:
            stranger.check_messages("hello")
        assert refused.value.reason == reason
        assert "pct_of_nobody" not in str(refused.value)

    async def run():
        settings = {"tls": tls(certificates, with_tokens), "token": with_tokens.tokens["agent"]}
        async with AsyncClient(with_tokens.grpc, **settings) as client:
            return await client.check_messages("hello")

    assert asyncio.run(run()).decision == Decision.ALLOW


def test_a_token_does_not_replace_a_certificate(certificates, with_tokens):
    settings = Tls(root_certificates=certificates / "authority.pem")
    with Client(with_tokens.grpc, tls=settings, token=with_tokens.tokens["agent"], retry=ONCE) as client:
        if with_tokens.is_mutual:
            with pytest.raises(Unavailable):
                client.check_messages("hello")
        else:
            assert client.check_messages("hello").decision == Decision.ALLOW


def test_certificates_are_identities(certificates, tmp_path):
    """`auth.mode: mtls`: who shows which certificate is who."""
    for name in ("looker", "unlisted"):
        certificate(certificates, name, AUTHORITY[0])
    identities = [
        {"subject": "CN=client.test", "name": "agent-7", "roles": ["agent"]},
        {"san": "looker", "name": "looker", "roles": ["auditor"]},
    ]
    settings = {"server": listener(certificates, True), "auth": {"mode": "mtls", "mtls": {"identities": identities}}}

    def client(name):
        shown = {"certificate": certificates / f"{name}.pem", "private_key": certificates / f"{name}.key"}
        return Client(server.grpc, tls=Tls(root_certificates=certificates / "authority.pem", **shown), retry=ONCE)

    with running_server(tmp_path, settings) as server:
        with client("client.test") as agent:
            assert agent.check_messages("hello").decision == Decision.ALLOW
        with client("looker") as looker, pytest.raises(PermissionDenied):
            looker.check_messages("hello")
        with client("unlisted") as unlisted, pytest.raises(Unauthenticated):
            unlisted.check_messages("hello")
        with client("stranger") as stranger, pytest.raises(Unavailable):
            stranger.check_messages("hello")


def test_a_new_certificate_is_taken_while_a_client_calls(certificates, tmp_path):
    """The pair of the server is replaced: calls go on, and new connections see the new one."""
    pair = tmp_path / "pair"
    pair.mkdir()
    certificate(pair, "server.test", AUTHORITY[0])
    with running_server(tmp_path, {"server": listener(pair, False)}) as server:
        settings = Tls(root_certificates=certificates / "authority.pem")
        with Client(server.grpc, tls=settings, retry=ONCE) as client:
            assert client.check_messages("hello").decision == Decision.ALLOW
            before = served(server.grpc)
            certificate(pair, "server.test", AUTHORITY[0])
            end = time.monotonic() + 2
            while served(server.grpc) == before:
                assert time.monotonic() < end, "a new certificate is in force within two seconds"
                time.sleep(0.02)
            assert client.check_messages("hello").decision == Decision.ALLOW
        with Client(server.grpc, tls=settings, retry=ONCE) as client:
            assert client.check_messages("hello").decision == Decision.ALLOW


def served(address):
    """The certificate that a new connection sees."""
    host, _, port = address.rpartition(":")
    return ssl.get_server_certificate((host, int(port)))
