"""A bundle on its way up: what is sent, in which order, and how far it is.

A folder is packed so that the same files give the same bytes: sorted by path, with one fixed time, and the mode
reduced to whether a file may be run. Links are packed as links and never followed, so that nothing outside of the
folder is read; the service judges them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, Union

import grpc

from portcullis.errors import ConfigurationError, Unavailable
from portcullis.v1 import bundles_pb2, context_pb2
from portcullis.v1 import policy_decision_service_pb2 as pdp

#: What a bundle is: a word, or a number of the contract.
KindLike = Union[Literal["skill", "plugin", "agent"], bundles_pb2.BundleKind.ValueType]

CHUNK_BYTES = 64 * 1024
# Folders of version control: not part of a bundle.
LEFT_OUT = frozenset({".git", ".hg", ".svn"})
# Past this, somebody has named the wrong folder. The service's own limits are lower unless they are raised.
ENTRIES_MAX = 100_000
BYTES_MAX = 2 * 1024**3

_KINDS = {
    "skill": bundles_pb2.BUNDLE_KIND_SKILL,
    "plugin": bundles_pb2.BUNDLE_KIND_PLUGIN,
    "agent": bundles_pb2.BUNDLE_KIND_AGENT,
}
# The earliest time a ZIP archive can hold.
_TIME = (1980, 1, 1, 0, 0, 0)


class Upload:
    """A bundle that is being sent. Use it with `with`; it removes what it packed."""

    def __init__(self, path: str | os.PathLike[str], kind: KindLike | None) -> None:
        self._open = contextlib.ExitStack()
        #: What the progress callback raised, if it did.
        self.raised: BaseException | None = None
        source = Path(path)
        try:
            if source.is_dir():
                self._file: IO[bytes] = self._open.enter_context(tempfile.TemporaryFile())
                names = pack(source, self._file)
            elif source.suffix.lower() == ".md":
                self._file = self._open.enter_context(tempfile.TemporaryFile())
                with zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED) as archive:
                    _write(archive, source.name, source.read_bytes(), 0o100644)
                names = [source.name]
            elif source.exists() and not source.is_file():
                raise ConfigurationError(f"{source}: is neither a file nor a folder")
            else:
                self._file = self._open.enter_context(open(source, "rb"))
                names = _names(self._file)
            self._kind = _kind(kind, names, source)
            self._sha256, self.size = _measured(self._file)
        except OSError as error:
            self._open.close()
            raise ConfigurationError(f"{error.filename or source}: cannot be read: {error.strerror}") from error
        except BaseException:
            self._open.close()
            raise

    def __enter__(self) -> Upload:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def header(
        self,
        name: str,
        entity_id: str,
        submitter: str,
        dry_run: bool,
        policy: str,
        context: context_pb2.CallContext | None,
    ) -> pdp.BundleHeader:
        """The first message: what is uploaded."""
        return pdp.BundleHeader(
            kind=self._kind,
            name=name,
            submitter=submitter,
            entity_id=entity_id,
            sha256=self._sha256,
            size=self.size,
            dry_run=dry_run,
            context=context,
            policy=policy,
        )

    def requests(
        self, header: pdp.BundleHeader, progress: Callable[[int, int], object] | None
    ) -> Iterator[pdp.ReviewBundleRequest]:
        """All messages in order. `progress` hears of each piece when the next one is asked for, so when it is sent."""
        yield pdp.ReviewBundleRequest(header=header)
        sent = 0
        self._file.seek(0)
        while True:
            try:
                if progress is not None:
                    progress(sent, self.size)
                data = self._file.read(CHUNK_BYTES)
            except BaseException as error:
                self.raised = error
                raise
            if not data:
                return
            yield pdp.ReviewBundleRequest(chunk=data)
            sent += len(data)


def pack(folder: Path, into: IO[bytes]) -> list[str]:
    """Packs a folder into a ZIP archive, in one way only; answers the paths in it."""
    entries = sorted(_walk(folder, ""))
    if not entries:
        raise ConfigurationError(f"{folder}: holds no file")
    written = 0
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in entries:
            found = os.lstat(path)
            if stat.S_ISLNK(found.st_mode):
                _write(archive, name, os.fsencode(os.readlink(path)), stat.S_IFLNK | 0o777)
                continue
            if not stat.S_ISREG(found.st_mode):
                raise ConfigurationError(f"{path}: is neither a file, a folder nor a link, and cannot be packed")
            written += found.st_size
            if written > BYTES_MAX:
                raise ConfigurationError(f"{folder}: holds more than {BYTES_MAX} bytes; is it the right folder?")
            mode = stat.S_IFREG | (0o755 if found.st_mode & 0o111 else 0o644)
            _write(archive, name, _content(path), mode)
    return [name for name, _ in entries]


def _content(path: str) -> bytes:
    # A link that took the place of the file since it was looked at is not followed.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with open(handle, "rb") as file:
        return file.read(BYTES_MAX)


def _walk(folder: Path | str, prefix: str) -> Iterator[tuple[str, str]]:
    """The files and links below a folder: their path in the bundle, and where they are."""
    pending = [(os.fspath(folder), prefix)]
    seen = 0
    while pending:
        here, before = pending.pop()
        with os.scandir(here) as entries:
            for entry in entries:
                seen += 1
                if seen > ENTRIES_MAX:
                    raise ConfigurationError(
                        f"{folder}: holds more than {ENTRIES_MAX} entries; is it the right folder?"
                    )
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in LEFT_OUT:
                        pending.append((entry.path, f"{before}{entry.name}/"))
                else:
                    yield f"{before}{entry.name}", entry.path


def _write(archive: zipfile.ZipFile, name: str, data: bytes, mode: int) -> None:
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(f"{ascii(name)}: the name is not UTF-8; rename the file") from error
    entry = zipfile.ZipInfo(name, _TIME)
    # Unix, whatever the machine, so that the mode is read as one.
    entry.create_system = 3
    entry.external_attr = mode << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)


def _names(file: IO[bytes]) -> list[str]:
    try:
        with zipfile.ZipFile(file) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, UnicodeDecodeError):
        # The service refuses it, whatever it is.
        return []


def _kind(kind: KindLike | None, names: list[str], source: Path) -> bundles_pb2.BundleKind.ValueType:
    """What was said, or what the files look like, the bundle lying at the top or in one folder."""
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ConfigurationError(f"`kind` is {kind!r}; it is one of {', '.join(_KINDS)}")
        return _KINDS[kind]
    if kind is not None:
        return kind
    if not names:
        return bundles_pb2.BUNDLE_KIND_SKILL
    inner = {name for path in names for name in (path, path.partition("/")[2])}
    if ".claude-plugin/plugin.json" in inner:
        return bundles_pb2.BUNDLE_KIND_PLUGIN
    if "SKILL.md" in inner:
        return bundles_pb2.BUNDLE_KIND_SKILL
    if any(name.lower().endswith(".md") for name in names):
        return bundles_pb2.BUNDLE_KIND_AGENT
    raise ConfigurationError(f"{source}: nothing tells what it is; give `kind`: {', '.join(_KINDS)}")


def _measured(file: IO[bytes]) -> tuple[str, int]:
    digest = hashlib.sha256()
    size = 0
    file.seek(0)
    while data := file.read(1024 * 1024):
        digest.update(data)
        size += len(data)
    return digest.hexdigest(), size


def cut_off() -> Unavailable:
    """The failure of a stream that ended in good order before its last message."""
    return Unavailable(
        "WatchSubmission: the stream ended before the final message", rpc="WatchSubmission",
        code=grpc.StatusCode.UNAVAILABLE,
    )  # fmt: skip
