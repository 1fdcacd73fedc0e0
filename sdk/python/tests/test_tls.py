"""TLS and mutual TLS: a relay that ends TLS before a real server, as a proxy in front of it would."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import socket
import ssl
import threading

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from conftest import WAIT_S
from portcullis import AsyncClient, Client, ConfigurationError, Decision, Retry, Tls, Unavailable

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


class Relay:
    """Ends TLS and passes the bytes on to a server that speaks plain text."""

    def __init__(self, folder, to, wants_client):
        host, _, port = to.rpartition(":")
        self._to = (host, int(port))
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(folder / "server.test.pem", folder / "server.test.key")
        self._context.set_alpn_protocols(["h2"])
        if wants_client:
            self._context.verify_mode = ssl.CERT_REQUIRED
            self._context.load_verify_locations(folder / "authority.pem")
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()

        async def begin():
            # A port of IPv4 alone, as the certificate names that address.
            self._server = await asyncio.start_server(
                self._relay, "127.0.0.1", 0, ssl=self._context, family=socket.AF_INET
            )
            self.port = self._server.sockets[0].getsockname()[1]
            ready.set()

        def run():
            self._loop.create_task(begin())
            self._loop.run_forever()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        assert ready.wait(WAIT_S)

    async def _relay(self, reader, writer):
        there, back = await asyncio.open_connection(*self._to)

        async def copy(source, sink):
            try:
                while data := await source.read(65536):
                    sink.write(data)
                    await sink.drain()
            except OSError:
                pass
            finally:
                sink.close()

        await asyncio.gather(copy(reader, back), copy(there, writer))

    def stop(self):
        async def end():
            self._server.close()
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(WAIT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
        self._loop.close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    authority = certificate(folder, "authority", is_authority=True)
    certificate(folder, "server.test", authority)
    certificate(folder, "client.test", authority)
    certificate(folder, "stranger", is_authority=True)
    return folder


@pytest.fixture(scope="module", params=[False, True], ids=["tls", "mutual tls"])
def relay(request, certificates, server):
    relay = Relay(certificates, server.grpc, request.param)
    relay.is_mutual = request.param
    yield relay
    relay.stop()


def tls(folder, relay, **changed):
    fields = {"root_certificates": folder / "authority.pem"}
    if relay.is_mutual:
        fields |= {"certificate": folder / "client.test.pem", "private_key": folder / "client.test.key"}
    return Tls(**(fields | changed))


def test_questions_are_answered(certificates, relay, server):
    with Client(f"127.0.0.1:{relay.port}", tls=tls(certificates, relay), token=server.admin_token) as client:
        assert client.check_messages("hello").decision == Decision.ALLOW

    async def run():
        async with AsyncClient(f"https://127.0.0.1:{relay.port}", tls=tls(certificates, relay)) as client:
            return await client.check_messages("hello")

    assert asyncio.run(run()).decision == Decision.ALLOW


def test_certificates_may_be_bytes_and_names_may_differ(certificates, relay):
    settings = tls(
        certificates, relay, root_certificates=(certificates / "authority.pem").read_bytes(), server_name="server.test"
    )
    with Client(f"localhost:{relay.port}", tls=settings) as client:
        assert client.check_messages("hello").decision == Decision.ALLOW


def test_several_addresses(certificates, relay):
    target = [f"127.0.0.1:{relay.port}", f"localhost:{relay.port}"]
    with Client(target, tls=tls(certificates, relay)) as client:
        assert client.check_messages("hello").decision == Decision.ALLOW


@pytest.mark.parametrize(
    "changed",
    [{"root_certificates": "stranger.pem"}, {"server_name": "somebody.else"}],
    ids=["strange authority", "wrong name"],
)
def test_a_server_that_is_not_who_it_should_be_is_not_asked(certificates, relay, changed):
    if "root_certificates" in changed:
        changed = {"root_certificates": certificates / changed["root_certificates"]}
    with Client(f"127.0.0.1:{relay.port}", tls=tls(certificates, relay, **changed), retry=ONCE) as client:
        with pytest.raises(Unavailable, match="TLS"):
            client.check_messages("hello")


def test_only_mutual_tls_needs_the_clients_certificate(certificates, relay):
    settings = Tls(root_certificates=certificates / "authority.pem")
    with Client(f"127.0.0.1:{relay.port}", tls=settings, retry=ONCE) as client:
        if relay.is_mutual:
            with pytest.raises(Unavailable):
                client.check_messages("hello")
        else:
            assert client.check_messages("hello").decision == Decision.ALLOW


def test_plain_text_to_a_tls_port_and_tls_to_a_plain_port(certificates, relay, server):
    with Client(f"127.0.0.1:{relay.port}", retry=ONCE) as client, pytest.raises(Unavailable):
        client.check_messages("hello")
    with Client(server.grpc, tls=tls(certificates, relay), retry=ONCE) as client:
        with pytest.raises(Unavailable, match="agree on TLS"):
            client.check_messages("hello")


def test_files_that_are_missing_are_named(tmp_path):
    with pytest.raises(ConfigurationError, match="root_certificates.*missing.pem"):
        Client("127.0.0.1:1", tls=Tls(root_certificates=tmp_path / "missing.pem"))
    with pytest.raises(ConfigurationError, match="both"):
        Client("127.0.0.1:1", tls=Tls(certificate=b"x"))
