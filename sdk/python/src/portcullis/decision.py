"""Decisions as Python enums that compare with the numbers of the contract."""

from __future__ import annotations

import enum
from typing import SupportsInt


class Decision(enum.IntEnum):
    """What the caller may do, ordered by strength: `ALLOW < WARN < ASK < BLOCK`."""

    ALLOW = 1
    """Go ahead."""
    WARN = 2
    """Go ahead, and let somebody know."""
    ASK = 3
    """Do not go ahead until a person has approved."""
    BLOCK = 4
    """Do not go ahead."""

    def __str__(self) -> str:
        return self.name

    @classmethod
    def of(cls, number: SupportsInt) -> Decision:
        """The decision of an answer. One that is not set or not known is BLOCK, as the contract wants."""
        try:
            return cls(int(number))
        except ValueError:
            return cls.BLOCK


class Phase(enum.IntEnum):
    """On which side of a tool call the guard stands."""

    BEFORE = 1
    """The tool has not run."""
    AFTER = 2
    """The tool has run; its result has not been shown to anybody."""
