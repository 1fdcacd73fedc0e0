"""A child process under `StreamMonitor`, from threads.

Four threads: one reads each output stream, one hears the server, one waits for the end of the process. The readers wait
when the server cannot keep up, and so the process waits too: no byte goes unscanned and nothing piles up.
"""

from __future__ import annotations

import atexit
import collections
import logging
import os
import subprocess
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import grpc

from portcullis import session
from portcullis.core import deadline_of
from portcullis.errors import ConfigurationError, PortcullisError, ServiceError, Unavailable
from portcullis.process import Child, is_unseen
from portcullis.v1 import monitor_pb2
from portcullis.v1 import policy_decision_service_pb2 as pdp

if TYPE_CHECKING:
    from portcullis.client import Client

_LOG = logging.getLogger("portcullis")

_STREAMS = {1: monitor_pb2.OUTPUT_STREAM_STDOUT, 2: monitor_pb2.OUTPUT_STREAM_STDERR}
_NAMES = {1: "stdout", 2: "stderr"}

_WATCHES: weakref.WeakSet[Watch] = weakref.WeakSet()


@atexit.register
def _abandon_all() -> None:
    """When the program ends, nobody watches any more."""
    for watch in list(_WATCHES):
        # A fork has the memory of its parent, and none of its threads.
        if watch._owner == os.getpid():
            watch.abandon()


class _Outbox:
    """Messages on their way to the server, a few at a time. gRPC takes them out from a thread of its own."""

    def __init__(self, attach: pdp.Attach) -> None:
        self._changed = threading.Condition()
        self._waiting: collections.deque[pdp.StreamMonitorRequest] = collections.deque()
        self._waiting.append(pdp.StreamMonitorRequest(attach=attach))
        self._seq = 0
        self._ended = False
        self._closed = False

    def put(self, message: pdp.StreamMonitorRequest) -> bool:
        """Waits for room; False when nobody takes messages any more."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < session.CHUNKS_MAX or self._ended)
            if self._ended:
                return False
            self._waiting.append(message)
            self._changed.notify_all()
            return True

    def end(self, last: pdp.StreamMonitorRequest) -> None:
        """Sends one more message, whether there is room or not, and then nothing."""
        with self._changed:
            if not self._ended:
                self._waiting.append(last)
                self._ended = True
                self._changed.notify_all()

    def close(self) -> None:
        """Sends nothing any more, not even what waits."""
        with self._changed:
            self._ended = self._closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def __iter__(self) -> _Outbox:
        return self

    def __next__(self) -> pdp.StreamMonitorRequest:
        with self._changed:
            there = self._changed.wait_for(lambda: self._waiting or self._ended, timeout=session.SILENCE_S)
            if self._closed or (self._ended and not self._waiting):
                raise StopIteration
            if there:
                message = self._waiting.popleft()
                while self._waiting and session.merged(message, self._waiting[0]):
                    self._waiting.popleft()
                self._changed.notify_all()
            else:
                message = pdp.StreamMonitorRequest(chunk=pdp.Chunk(stream=monitor_pb2.OUTPUT_STREAM_STDOUT))
            if message.HasField("chunk"):
                # Numbered as they leave, so that numbers are in order whoever put them in.
                self._seq += 1
                message.chunk.seq = self._seq
            return message


class Watch:
    """A process that is being watched. `Client.attach` makes it.

    The process must have been started with pipes, and should have a session of its own, so that a KILL reaches all that
    it started: `subprocess.Popen(command, stdout=PIPE, stderr=PIPE, start_new_session=True)`. Its pipes are read here;
    nobody else may read them.
    """

    def __init__(
        self,
        client: Client,
        process: subprocess.Popen[Any],
        work: session.WorkLike | None,
        options: session.WatchOptions,
    ) -> None:
        pipes = {number: pipe for number, pipe in ((1, process.stdout), (2, process.stderr)) if pipe is not None}
        if not pipes:
            raise ConfigurationError(
                "attach: the process has no pipes to read; start it with stdout=subprocess.PIPE, stderr=subprocess.PIPE"
            )
        attach = pdp.Attach(
            session_id=options.session_id,
            work=session.work_context(work),
            context=client._merged(options.context),
            policy=client._policy if options.policy is None else options.policy,
        )
        deadline = deadline_of(options.timeout, client._timeouts.session_s)
        metadata = client._metadata()
        self._owner = os.getpid()
        self._client = client
        self._process = process
        self._options = options
        self._child = Child(process.pid)
        self._session = session.Session()
        self._outbox = _Outbox(attach)
        self._error: PortcullisError | None = None
        self._killed_by: Literal["verdict", "disconnect"] | None = None
        self._state = threading.Lock()
        self._detached = threading.Event()
        # Set when the output has ended, and when the process was killed and need not be waited for.
        self._quiet = threading.Event()
        self._session_over = threading.Event()
        self._done = threading.Event()
        unseen = [number for number in (1, 2) if number not in pipes and is_unseen(process.pid, number)]
        self._unwatched = tuple(_NAMES[number] for number in unseen)
        for name in self._unwatched:
            _LOG.warning("%s of process %d is no pipe of ours, so nobody watches it", name, process.pid)
        # A session that cannot begin ends at once, and the receiver deals with that as with any other end.
        self._call: Any = client._pdp.StreamMonitor(
            self._outbox, timeout=max(deadline - time.monotonic(), 0.001), metadata=metadata
        )
        self._reading = len(pipes)
        self._summary_timer = threading.Timer(client._timeouts.summary_s, self._call.cancel)
        self._summary_timer.daemon = True
        sinks = {1: session.sink(options.stdout), 2: session.sink(options.stderr)}
        self._readers = [
            self._started("read", self._read, number, pipe.fileno(), sinks[number]) for number, pipe in pipes.items()
        ]
        self._started("hear", self._hear)
        self._started("end", self._end)
        _WATCHES.add(self)

    def _started(self, what: str, run: Callable[..., None], *arguments: Any) -> threading.Thread:
        name = f"portcullis-{what}-{self._process.pid}"
        thread = threading.Thread(target=run, args=arguments, name=name, daemon=True)
        thread.start()
        return thread

    def wait(self, timeout: float | None = None) -> session.WatchResult:
        """Waits until process and session have ended and all output was passed on.

        `TimeoutError` when that takes longer.
        """
        if not self._done.wait(timeout):
            raise TimeoutError(f"process {self._process.pid} is still watched after {timeout} s")
        return session.WatchResult(
            exit_code=self._process.returncode,
            killed_by=self._killed_by,
            verdict=self._session.kill,
            summary=self._session.summary,
            incidents=self.get_incidents(),
            error=self._error,
            unwatched=self._unwatched,
        )

    def detach(self) -> session.WatchResult:
        """Stops watching and leaves the process alone; its output is still passed on. Answers what was seen.

        Verdicts that are still out are waited for, and a KILL among them is carried out.
        """
        self._finish()
        self._session_over.wait()
        self._done.set()
        return self.wait()

    def get_incidents(self) -> list[monitor_pb2.Incident]:
        """Every incident so far, oldest first, with the verdicts they have now."""
        return self._session.incidents()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.wait()
        else:
            # Whoever leaves by an exception does not wait for a process that may run for ever.
            self.abandon()

    def abandon(self) -> None:
        """Ends the session as when the connection is lost: `on_disconnect` says what becomes of the process."""
        if not self._done.is_set():
            self._call.cancel()
            self._session_over.wait()

    def _read(self, number: int, handle: int, put: Callable[[bytes], object]) -> None:
        watched = True
        try:
            # Somebody else may close the pipe (OSError): what is written to it then nobody can see.
            while data := os.read(handle, session.READ_BYTES):
                if watched:
                    chunk = pdp.Chunk(stream=_STREAMS[number], data=data)
                    watched = self._outbox.put(pdp.StreamMonitorRequest(chunk=chunk))
                put(data)
        except OSError as error:
            _LOG.warning("%s of process %d cannot be read any longer: %s", _NAMES[number], self._process.pid, error)
        finally:
            with self._state:
                self._reading -= 1
                if self._reading == 0:
                    self._quiet.set()

    def _hear(self) -> None:
        failure: ServiceError | None = None
        try:
            for message in self._call:
                must_kill = self._session.hear(message)
                if must_kill:
                    self._kill("verdict")
                kind = message.WhichOneof("kind")
                if kind == "incident":
                    session.heard(self._options.on_incident, message.incident)
                elif kind == "verdict":
                    session.heard(self._options.on_verdict, message.verdict)
        except grpc.RpcError as error:
            failure = self._client._failed(error, "StreamMonitor")
        except Exception as error:
            # Whatever went wrong, nobody watches any more.
            failure = ServiceError(f"StreamMonitor: {type(error).__name__}: {error}", rpc="StreamMonitor")
        if failure is None and self._session.summary is None:
            failure = Unavailable("StreamMonitor: the stream ended without a summary", rpc="StreamMonitor")
        # A server that shuts down sums up before it fails. Where we had ended as well, nothing is missing.
        if failure is not None and not (self._detached.is_set() and self._session.summary is not None):
            self._cut_off(failure)
        self._outbox.close()
        self._session_over.set()
        self._summary_timer.cancel()

    def _cut_off(self, failure: ServiceError) -> None:
        self._error = failure
        self._client.stats.count("disconnects")
        if self._process.poll() is not None and self._quiet.is_set():
            _LOG.warning("process %d has ended, and its last output was not judged: %s", self._process.pid, failure)
            return
        if self._options.on_disconnect == "kill":
            self._kill("disconnect")
            return
        self._client.stats.count("unwatched")
        _LOG.warning("process %d goes on unwatched (on_disconnect='continue'): %s", self._process.pid, failure)

    def _kill(self, why: Literal["verdict", "disconnect"]) -> None:
        # Once somebody has taken the exit code, the number may be another process's.
        self._child.kill(self._process.send_signal if self._process.returncode is None else None)
        self._quiet.set()
        with self._state:
            if self._killed_by is not None:
                return
            self._killed_by = why
        self._client.stats.count("killed" if why == "verdict" else "killed_on_disconnect")
        _LOG.warning("process %d was killed: %s", self._process.pid, self._error or "a verdict says KILL")

    def _end(self) -> None:
        """Waits for the end of the output and of the process, then ends the session."""
        self._quiet.wait()
        for reader in self._readers:
            # At once, unless it was killed: who escaped its group may still hold a pipe.
            reader.join(session.DRAIN_S)
        self._process.wait()
        self._finish()
        self._session_over.wait()
        self._done.set()

    def _finish(self) -> None:
        """Sends Detach, once, and sees to it that the session ends: a cancelled call that has ended stays as it is."""
        with self._state:
            if self._detached.is_set():
                return
            self._detached.set()
        detach = pdp.Detach()
        code = session.exit_number(self._process.poll())
        if code is not None:
            detach.exit_code.value = code
        self._outbox.end(pdp.StreamMonitorRequest(detach=detach))
        self._summary_timer.start()
