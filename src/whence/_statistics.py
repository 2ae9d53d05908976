"""How large the native tables are, and what they could not keep."""

from typing import NamedTuple

from whence import _core


class Statistics(NamedTuple):
    """Counts over the life of the process. Sizes are bytes mapped."""

    stacks: int
    """Entries of the stack table: one for each distinct stack and its outer parts."""
    stacks_cap: int
    """How many the table may hold."""
    stacks_truncated: int
    """Captures whose inner frames were lost to the cap or for lack of memory."""
    stacks_bytes: int
    codes: int
    """Distinct pieces of code that were seen in a capture."""
    codes_dead: int
    """Code objects with a frame in a capture that have died since."""
    codes_lost: int
    """Times that code could not be named for lack of memory."""
    codes_bytes: int
    walk: str
    """``"fast"``, or ``"public"`` if frames are walked by CPython's public API."""
    walk_reason: str | None
    """Why the walk is not fast, or None."""


def statistics() -> Statistics:
    """Return the size and the losses of the native tables."""
    return Statistics(**_core.statistics())
