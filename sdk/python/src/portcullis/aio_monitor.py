"""A child process under `StreamMonitor`, from asyncio.

Four tasks, as in `monitor`: one reads each output stream, one hears the server, one waits for the end of the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Literal, Union

import grpc

from portcullis import session
from portcullis.core import deadline_of
from portcullis.errors import ConfigurationError, PortcullisError, ServiceError, Unavailable
from portcullis.process import Child, is_unseen
from portcullis.v1 import monitor_pb2
from portcullis.v1 import policy_decision_service_pb2 as pdp

if TYPE_CHECKING:
    from portcullis.aio import AsyncClient

#: A child process of either kind.
Process = Union[asyncio.subprocess.Process, "subprocess.Popen[Any]"]

_LOG = logging.getLogger("portcullis")

_STREAMS = {1: monitor_pb2.OUTPUT_STREAM_STDOUT, 2: monitor_pb2.OUTPUT_STREAM_STDERR}
_NAMES = {1: "stdout", 2: "stderr"}


class AsyncWatch:
    """A process that is being watched. `AsyncClient.attach` makes it; it says what `Watch` says."""

    def __init__(
        self, client: AsyncClient, process: Process, work: session.WorkLike | None, options: session.WatchOptions
    ) -> None:
        self._pipes = {number: pipe for number, pipe in ((1, process.stdout), (2, process.stderr)) if pipe is not None}
        if not self._pipes:
            raise ConfigurationError(
                "attach: the process has no pipes to read; start it with stdout=subprocess.PIPE, stderr=subprocess.PIPE"
            )
        self._attach = pdp.Attach(
            session_id=options.session_id,
            work=session.work_context(work),
            context=client._merged(options.context),
            policy=client._policy if options.policy is None else options.policy,
        )
        self._deadline = deadline_of(options.timeout, client._timeouts.session_s)
        self._client = client
        self._process = process
        self._options = options
        self._child = Child(process.pid)
        self._session = session.Session()
        self._outbox: asyncio.Queue[pdp.StreamMonitorRequest | None] = asyncio.Queue(session.CHUNKS_MAX)
        self._error: PortcullisError | None = None
        self._killed_by: Literal["verdict", "disconnect"] | None = None
        self._detached = False
        self._quiet = asyncio.Event()
        self._session_over = asyncio.Event()
        self._done = asyncio.Event()
        self._call: Any = None
        self._summary_timer: asyncio.TimerHandle | None = None
        unseen = [number for number in (1, 2) if number not in self._pipes and is_unseen(process.pid, number)]
        self._unwatched = tuple(_NAMES[number] for number in unseen)
        for name in self._unwatched:
            _LOG.warning("%s of process %d is no pipe of ours, so nobody watches it", name, process.pid)

    async def _start(self) -> None:
        metadata = await self._client._metadata()
        timeout = max(self._deadline - time.monotonic(), 0.001)
        self._call = self._client._stubs().pdp.StreamMonitor(self._requests(), timeout=timeout, metadata=metadata)
        sinks = {1: session.sink(self._options.stdout), 2: session.sink(self._options.stderr)}
        readers = {number: await _reader(pipe) for number, pipe in self._pipes.items()}
        self._reading = len(readers)
        self._readers = [
            asyncio.create_task(self._read(number, reader, sinks[number])) for number, reader in readers.items()
        ]
        # Kept, as the loop holds tasks only weakly.
        self._tasks = [asyncio.create_task(self._hear()), asyncio.create_task(self._end())]

    async def wait(self, timeout: float | None = None) -> session.WatchResult:
        """Waits until process and session have ended and all output was passed on.

        `TimeoutError` when that takes longer.
        """
        try:
            await asyncio.wait_for(self._done.wait(), timeout)
        except asyncio.TimeoutError:
            raise TimeoutError(f"process {self._process.pid} is still watched after {timeout} s") from None
        return session.WatchResult(
            exit_code=self._code(),
            killed_by=self._killed_by,
            verdict=self._session.kill,
            summary=self._session.summary,
            incidents=self.get_incidents(),
            error=self._error,
            unwatched=self._unwatched,
        )

    async def detach(self) -> session.WatchResult:
        """Stops watching and leaves the process alone; its output is still passed on. Answers what was seen.

        Verdicts that are still out are waited for, and a KILL among them is carried out.
        """
        await self._finish()
        await self._session_over.wait()
        self._done.set()
        return await self.wait()

    def get_incidents(self) -> list[monitor_pb2.Incident]:
        """Every incident so far, oldest first, with the verdicts they have now."""
        return self._session.incidents()

    async def abandon(self) -> None:
        """Ends the session as when the connection is lost: `on_disconnect` says what becomes of the process."""
        if not self._done.is_set():
            self._call.cancel()
            await self._session_over.wait()

    async def __aenter__(self) -> AsyncWatch:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self.wait()
        else:
            await self.abandon()

    async def _requests(self) -> AsyncIterator[pdp.StreamMonitorRequest]:
        yield pdp.StreamMonitorRequest(attach=self._attach)
        seq = 0
        following: list[pdp.StreamMonitorRequest | None] = []
        while True:
            try:
                message = (
                    following.pop() if following else await asyncio.wait_for(self._outbox.get(), session.SILENCE_S)
                )
            except asyncio.TimeoutError:
                message = pdp.StreamMonitorRequest(chunk=pdp.Chunk(stream=monitor_pb2.OUTPUT_STREAM_STDOUT))
            if message is None:
                return
            while not following and not self._outbox.empty():
                one = self._outbox.get_nowait()
                if one is None or not session.merged(message, one):
                    following.append(one)
            if message.HasField("chunk"):
                seq += 1
                message.chunk.seq = seq
            yield message

    async def _read(self, number: int, pipe: asyncio.StreamReader, put: Callable[[bytes], object]) -> None:
        try:
            while data := await pipe.read(session.READ_BYTES):
                if not self._session_over.is_set() and not self._detached:
                    chunk = pdp.Chunk(stream=_STREAMS[number], data=data)
                    # Waits for room, and so does the process.
                    await self._outbox.put(pdp.StreamMonitorRequest(chunk=chunk))
                put(data)
        except OSError as error:
            _LOG.warning("%s of process %d cannot be read any longer: %s", _NAMES[number], self._process.pid, error)
        finally:
            self._reading -= 1
            if self._reading == 0:
                self._quiet.set()

    async def _hear(self) -> None:
        failure: ServiceError | None = None
        try:
            async for message in self._call:
                if self._session.hear(message):
                    self._kill("verdict")
                kind = message.WhichOneof("kind")
                if kind == "incident":
                    await _heard(self._options.on_incident, message.incident)
                elif kind == "verdict":
                    await _heard(self._options.on_verdict, message.verdict)
        except grpc.RpcError as error:
            failure = self._client._failed(error, "StreamMonitor")
        except asyncio.CancelledError:
            # The call was cancelled, or the loop ends: either way nobody watches any more.
            failure = ServiceError("StreamMonitor: watching was cancelled", rpc="StreamMonitor")
        except Exception as error:
            failure = ServiceError(f"StreamMonitor: {type(error).__name__}: {error}", rpc="StreamMonitor")
        if failure is None and self._session.summary is None:
            failure = Unavailable("StreamMonitor: the stream ended without a summary", rpc="StreamMonitor")
        # A server that shuts down sums up before it fails. Where we had ended as well, nothing is missing.
        if failure is not None and not (self._detached and self._session.summary is not None):
            self._cut_off(failure)
        self._session_over.set()
        if self._summary_timer is not None:
            self._summary_timer.cancel()
        # Whoever waits for room finds it, and sees that nobody takes messages any more.
        while not self._outbox.empty():
            self._outbox.get_nowait()

    def _cut_off(self, failure: ServiceError) -> None:
        self._error = failure
        self._client.stats.count("disconnects")
        if self._code() is not None and self._quiet.is_set():
            _LOG.warning("process %d has ended, and its last output was not judged: %s", self._process.pid, failure)
            return
        if self._options.on_disconnect == "kill":
            self._kill("disconnect")
            return
        self._client.stats.count("unwatched")
        _LOG.warning("process %d goes on unwatched (on_disconnect='continue'): %s", self._process.pid, failure)

    def _kill(self, why: Literal["verdict", "disconnect"]) -> None:
        # Once somebody has taken the exit code, the number may be another process's.
        self._child.kill(self._signal if self._code() is None else None)
        self._quiet.set()
        if self._killed_by is not None:
            return
        self._killed_by = why
        self._client.stats.count("killed" if why == "verdict" else "killed_on_disconnect")
        _LOG.warning("process %d was killed: %s", self._process.pid, self._error or "a verdict says KILL")

    def _signal(self, number: int) -> None:
        """Sends a signal to the process itself.

        Not by `Process.send_signal`: that polls, and so may take the exit code before asyncio does, which then tells 255.
        """
        if isinstance(self._process, subprocess.Popen):
            self._process.send_signal(number)
            return
        if sys.platform == "linux":
            try:
                os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                # It has ended and was waited for: the number may be another process's.
                return
        os.kill(self._process.pid, number)

    def _code(self) -> int | None:
        """The exit code, if the process has ended."""
        return self._process.poll() if isinstance(self._process, subprocess.Popen) else self._process.returncode

    async def _end(self) -> None:
        """Waits for the end of the output and of the process, then ends the session."""
        await self._quiet.wait()
        # At once, unless it was killed: who escaped its group may still hold a pipe.
        await asyncio.wait(self._readers, timeout=session.DRAIN_S)
        await _ended(self._process)
        await self._finish()
        await self._session_over.wait()
        self._done.set()

    async def _finish(self) -> None:
        """Sends Detach, once, and sees to it that the session ends."""
        if self._detached:
            return
        self._detached = True
        detach = pdp.Detach()
        code = session.exit_number(self._code())
        if code is not None:
            detach.exit_code.value = code
        if not self._session_over.is_set():
            await self._outbox.put(pdp.StreamMonitorRequest(detach=detach))
        if not self._session_over.is_set():
            await self._outbox.put(None)
        if not self._session_over.is_set():
            loop = asyncio.get_running_loop()
            self._summary_timer = loop.call_later(self._client._timeouts.summary_s, self._call.cancel)


async def _heard(callback: Callable[[Any], object] | None, told: object) -> None:
    if callback is None:
        return
    try:
        answer = callback(told)
        if inspect.isawaitable(answer):
            await answer
    except Exception:
        _LOG.exception("a callback of a watched process failed")


async def _reader(pipe: Any) -> asyncio.StreamReader:
    """The bytes of a pipe: as asyncio reads it already, or from the pipe of a `Popen`."""
    if isinstance(pipe, asyncio.StreamReader):
        return pipe
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader


async def _ended(process: Process) -> None:
    if not isinstance(process, subprocess.Popen):
        await process.wait()
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def wait() -> None:
        process.wait()
        # The loop may be gone by then.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)

    # A thread of its own: those of the loop's pool are few, and a process may run for days.
    threading.Thread(target=wait, name=f"portcullis-end-{process.pid}", daemon=True).start()
    await ended.wait()
