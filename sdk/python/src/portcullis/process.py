"""What can be done to a watched child process: kill it with its group, and tell which of its output nobody reads."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable

_LOG = logging.getLogger("portcullis")


class Child:
    """A child process, known by its id."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        # Taken now: a process that has ended has no group any more, but its children may still be in it.
        self._groups = self._group()
        if not self._groups:
            _LOG.warning(
                "process %d has no group of its own, so a KILL reaches it alone and not what it starts;"
                " start it with start_new_session=True",
                pid,
            )

    def _group(self) -> set[int]:
        """The group of the process, unless it is our own, which we must not kill."""
        try:
            group = os.getpgid(self.pid)
        except (ProcessLookupError, PermissionError):
            # It is gone. A group that bears its number was its own.
            group = self.pid
        return set() if group == os.getpgrp() else {group}

    def kill(self, alone: Callable[[int], object] | None) -> None:
        """Continues and kills the group. `alone` sends a signal to the process itself; None once it has ended."""
        if alone is not None:
            # It may have moved to another group since.
            self._groups |= self._group()
        for number in (signal.SIGCONT, signal.SIGKILL):
            # Nobody is left there; or somebody with other rights, whom we cannot reach.
            for group in self._groups:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, number)
            if alone is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    alone(number)


def is_unseen(pid: int, number: int) -> bool:
    """Whether output stream `number` of a process goes where we do not read it. Known on Linux only, else False."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        there = os.readlink(f"/proc/{pid}/fd/{number}")
        other = os.readlink(f"/proc/{pid}/fd/{3 - number}")
    except OSError:
        # It has ended, or closed the stream.
        return False
    return there not in (other, "/dev/null")
