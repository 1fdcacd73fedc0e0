"""What a client counts, so that nothing that was let pass unseen goes unnoticed."""

from __future__ import annotations

import dataclasses
import threading


@dataclasses.dataclass
class Stats:
    """Counts since the client was made. Read the fields; `snapshot` gives all of them at one moment."""

    #: Calls that were tried again.
    retries: int = 0
    #: Questions without an answer that were let pass (`on_unavailable="open"`).
    failed_open: int = 0
    #: Questions without an answer that raised.
    failed_closed: int = 0
    #: Processes killed because a verdict said so.
    killed: int = 0
    #: Sessions of watched processes that were cut off, refused or never began.
    disconnects: int = 0
    #: Processes killed because nobody could watch them any longer (`on_disconnect="kill"`).
    killed_on_disconnect: int = 0
    #: Processes that went on unwatched (`on_disconnect="continue"`).
    unwatched: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def count(self, name: str) -> None:
        """Adds one to a count."""
        with self._lock:
            setattr(self, name, getattr(self, name) + 1)

    def snapshot(self) -> dict[str, int]:
        """All counts at one moment."""
        with self._lock:
            return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
