"""What a client can be told: where the service is, how to speak to it, and what to do when it is away."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import logging
import os
import random
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, Union

import grpc

from portcullis.errors import ConfigurationError, ServiceError, Unavailable
from portcullis.v1 import context_pb2

_LOG = logging.getLogger("portcullis")

# What gRPC knows besides plain host and port.
_RESOLVERS = ("dns", "unix", "unix-abstract", "ipv4", "ipv6", "vsock", "xds")

# Longest wait for the answer to a ping.
_PING_ANSWER_MS_MAX = 10_000

#: Where a service listens when nobody told it otherwise.
DEFAULT_TARGET = "127.0.0.1:50051"

#: A bearer token: the text, a file that holds it and is read again when it changes, or what gives it for each call.
Token = Union[str, "os.PathLike[str]", Callable[[], str], Callable[[], Awaitable[str]]]

#: Who asks: a message of the contract, or its fields.
ContextLike = Union[context_pb2.CallContext, Mapping[str, object]]

#: What becomes of a question that nobody answered: `closed` raises, `open` lets it pass, counted and reported.
OnUnavailable = Literal["closed", "open"]


@dataclasses.dataclass(frozen=True)
class Tls:
    """How to speak TLS. Each file is given by its path or by its bytes (PEM), and read once."""

    #: Certificates that the server's must lead to. None: those that gRPC brings.
    root_certificates: str | os.PathLike[str] | bytes | None = None
    #: Certificate chain of this client, for mutual TLS. Needs `private_key`.
    certificate: str | os.PathLike[str] | bytes | None = None
    #: Private key of that certificate.
    private_key: str | os.PathLike[str] | bytes | None = None
    #: The name the server's certificate must hold, where that is not the host of the address.
    server_name: str | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """What gRPC wants of it; a file that cannot be read is a `ConfigurationError` naming it."""
        if (self.certificate is None) != (self.private_key is None):
            raise ConfigurationError("mutual TLS needs both `certificate` and `private_key`")
        return grpc.ssl_channel_credentials(
            root_certificates=_pem("root_certificates", self.root_certificates),
            private_key=_pem("private_key", self.private_key),
            certificate_chain=_pem("certificate", self.certificate),
        )


@dataclasses.dataclass(frozen=True)
class Timeouts:
    """How long each kind of call may take, its retries included, in seconds. Every call has a deadline."""

    #: CheckMessages.
    check_s: float = 5.0
    #: InterceptMessage, InterceptParams and InterceptTool.
    intercept_s: float = 10.0
    #: Reading a submission.
    read_s: float = 10.0
    #: ReviewBundle, from the first byte to the verdict of the inline checks.
    upload_s: float = 300.0
    #: WatchSubmission, until the verdict of a model.
    watch_s: float = 3600.0
    #: A session of a watched process. When it passes, the process is treated as when the connection is lost.
    session_s: float = 86_400.0
    #: From the end of a watched process to the summary of its session; the server waits for verdicts meanwhile.
    summary_s: float = 30.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            seconds = getattr(self, field.name)
            is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
            if not is_number or not 0 < seconds < float("inf"):
                raise ConfigurationError(
                    f"`timeouts.{field.name}` is {seconds!r}; it must be a number of seconds above 0 and finite"
                )


@dataclasses.dataclass(frozen=True)
class Retry:
    """How often a call that changes nothing is tried again when the service answers UNAVAILABLE.

    The pause grows by two each time, a fifth up or down by chance. A RetryInfo of the server is a lower bound. What
    does not fit into the deadline is not waited for.
    """

    #: Tries in all; 1 tries once.
    attempts_max: int = 4
    #: The first pause, in seconds.
    pause_s: float = 0.1
    #: The longest pause of our own choice, in seconds.
    pause_max_s: float = 2.0

    def __post_init__(self) -> None:
        if self.attempts_max < 1 or self.pause_s < 0 or self.pause_max_s < self.pause_s:
            raise ConfigurationError("`retry` needs attempts_max >= 1 and 0 <= pause_s <= pause_max_s")

    def pause(self, failure: ServiceError, attempt: int, left_s: float) -> float | None:
        """Seconds to wait after try number `attempt`, from 1; None when it is not to be tried again."""
        if failure.code is not grpc.StatusCode.UNAVAILABLE or attempt >= self.attempts_max:
            return None
        chosen = min(self.pause_s * 2.0 ** (attempt - 1), self.pause_max_s) * random.uniform(0.8, 1.2)
        asked = failure.retry_after_s
        wait = chosen if asked is None else max(chosen, asked)
        return wait if wait < left_s else None


@dataclasses.dataclass(frozen=True)
class FailOpen:
    """A question that went unanswered and was let pass, as `on_unavailable="open"` chose."""

    #: Name of the call.
    rpc: str
    #: Why there is no answer.
    error: Unavailable


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """Where to connect, in gRPC's words."""

    #: The target of the channel.
    target: str
    #: Credentials; None speaks plain text.
    credentials: grpc.ChannelCredentials | None
    #: Channel arguments.
    arguments: tuple[tuple[str, str | int], ...]


def endpoint(
    target: str | Sequence[str], tls: Tls | bool | None, has_token: bool, keepalive_s: float, message_bytes_max: int
) -> Endpoint:
    """Where to connect, and how."""
    addresses = [target] if isinstance(target, str) else list(target)
    if not addresses:
        raise ConfigurationError("`target` is an empty list; give at least one address such as `127.0.0.1:50051`")
    schemes, bare = zip(*(_split(address) for address in addresses))
    if "https" in schemes and "http" in schemes:
        raise ConfigurationError("`target` mixes http:// and https:// addresses; one client speaks one of them")
    if tls is None and "https" in schemes:
        tls = True
    if tls is not None and tls is not False and "http" in schemes:
        raise ConfigurationError("`target` begins with http://, and `tls` is set; use https:// or drop one of them")
    if tls is False and "https" in schemes:
        raise ConfigurationError("`target` begins with https://, and `tls` is False; use http:// or drop one of them")
    if tls is None and has_token and not all(map(_is_local, bare)):
        raise ConfigurationError(
            "a token would cross the network in plain text: give `tls`, or `tls=False` where a mesh encrypts"
        )
    answer_ms = min(int(keepalive_s * 1000), _PING_ANSWER_MS_MAX)
    arguments: dict[str, str | int] = {
        "grpc.keepalive_time_ms": int(keepalive_s * 1000),
        # By the names of older and of present releases of gRPC: the present ones give a ping a minute unless they are told
        # by the second, whatever the first says.
        "grpc.keepalive_timeout_ms": answer_ms,
        "grpc.http2.ping_timeout_ms": answer_ms,
        "grpc.http2.max_pings_without_data": 0,
        # A server that comes back is found again soon.
        "grpc.initial_reconnect_backoff_ms": 100,
        "grpc.max_reconnect_backoff_ms": 5_000,
        "grpc.max_receive_message_length": message_bytes_max,
        "grpc.service_config": json.dumps({"loadBalancingConfig": [{"round_robin": {}}]}),
    }
    credentials = None
    if tls:
        chosen = Tls() if tls is True else tls
        credentials = chosen.credentials()
        if chosen.server_name:
            arguments["grpc.ssl_target_name_override"] = chosen.server_name
        elif len(bare) > 1:
            # Of several addresses, the host of the first is what their certificates must name.
            arguments["grpc.ssl_target_name_override"] = _host_port(bare[0])[0]
    name = bare[0] if len(bare) == 1 else _listed(bare)
    if credentials is None and "," in name:
        # Else the whole list would be the `:authority` of each request, which is no authority, and servers refuse it.
        arguments["grpc.default_authority"] = name.partition(":")[2].partition(",")[0]
    return Endpoint(name, credentials, tuple(arguments.items()))


def _split(address: str) -> tuple[str, str]:
    """The scheme of ours, if any, and the address as gRPC wants it."""
    if not isinstance(address, str) or not address.strip():
        raise ConfigurationError("`target` holds an empty address; give one such as `127.0.0.1:50051`")
    scheme, separator, rest = address.strip().partition("://")
    if separator and scheme.lower() in ("http", "https"):
        return scheme.lower(), _checked(rest.rstrip("/"), address)
    if address.strip().split(":", 1)[0] in _RESOLVERS:
        return "", address.strip()
    if separator:
        raise ConfigurationError(f"`target` {address!r}: use http://, https://, dns:///, unix: or plain host:port")
    return "", _checked(address.strip(), address)


def _checked(address: str, shown: str) -> str:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65_536 or "/" in address:
        raise ConfigurationError(f"`target` {shown!r}: give host and port, such as `127.0.0.1:50051`")
    return address


def _host_port(address: str) -> tuple[str, str]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), port


def _is_local(address: str) -> bool:
    if address.startswith("unix"):
        return True
    plain = address.split(":///")[-1]
    for prefix in ("dns:", "ipv4:", "ipv6:"):
        plain = plain.removeprefix(prefix)
    hosts = [_host_port(one)[0] for one in plain.split(",")]
    try:
        return all(host == "localhost" or ipaddress.ip_address(host).is_loopback for host in hosts)
    except ValueError:
        return False


def _listed(addresses: Sequence[str]) -> str:
    """One target for several addresses. gRPC lists numeric ones of one family, so names are looked up here, once."""
    best: tuple[list[str], list[str], str] | None = None
    for family, scheme in ((socket.AF_INET, "ipv4"), (socket.AF_INET6, "ipv6")):
        numeric: list[str] = []
        missing: list[str] = []
        for address in addresses:
            if address.split(":", 1)[0] in _RESOLVERS:
                raise ConfigurationError(f"`target` {address!r} cannot stand in a list; a list takes host:port only")
            host, port = _host_port(address)
            try:
                found = socket.getaddrinfo(host, int(port), family, socket.SOCK_STREAM)
            except OSError:
                missing.append(address)
                continue
            for entry in found:
                one = f"{entry[4][0]}:{port}" if family == socket.AF_INET else f"[{entry[4][0]}]:{port}"
                if one not in numeric:
                    numeric.append(one)
        if numeric and (best is None or len(missing) < len(best[1])):
            best = (numeric, missing, scheme)
    if best is None:
        # None can be looked up now: gRPC goes on trying the first, and calls end with UNAVAILABLE meanwhile.
        return addresses[0]
    numeric, missing, scheme = best
    if missing:
        _LOG.warning("no %s address of %s is known; only the others are used", scheme, ", ".join(missing))
    return f"{scheme}:{','.join(numeric)}"


def _pem(field: str, source: str | os.PathLike[str] | bytes | None) -> bytes | None:
    if source is None or isinstance(source, bytes):
        return source
    try:
        with open(source, "rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigurationError(f"`tls.{field}`: {os.fspath(source)} cannot be read: {error.strerror}") from error
