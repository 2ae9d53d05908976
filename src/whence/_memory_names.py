"""What the events of memory refer to: stacks, domains, tags; as names."""

from __future__ import annotations

import json

from whence._stack_names import StackNames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from whence import _core
    from whence._frame import Frame

    Tags = dict[str, str | int | float | bool]

DOMAINS = ("raw", "mem", "obj", "malloc", "mmap")
POOL = 1 << 63
_OTHER_POOLS = (1 << 64) - 1
_STATE = 1  # a detail of memory: what is in use, and no history
_MALLOC = 1 << DOMAINS.index("malloc")


class MemoryNames:
    """Names for one recording, each made once."""

    __slots__ = ("_pools", "_reader", "_stacks", "_tags")

    def __init__(self, reader: _core.Reader) -> None:
        self._reader = reader
        self._stacks = StackNames(reader)
        self._pools = {
            number & ~POOL: name
            for number, name in reader.pools()
            if name and name not in DOMAINS  # which means something else here
        }
        self._tags: dict[int, Tags] = {}

    def frames(self, stack: int) -> tuple[Frame, ...]:
        """Return the frames of a stack, innermost first."""
        return self._stacks.frames(stack)

    def domain(self, number: int) -> str:
        """Say who handed out a block."""
        if not number & POOL:
            return DOMAINS[number]
        if number == _OTHER_POOLS:
            return "other pools"
        return self._pools.get(number & ~POOL, f"pool {number & ~POOL}")

    def pool(self, name: str) -> int | None:
        """Return the number of the pool with this name."""
        named = (number for number, known in self._pools.items() if known == name)
        return next(named, None)

    def tags(self, number: int) -> Tags:
        """Return what a thread has said, from the number of that text."""
        if number not in self._tags:
            self._tags[number] = _read_tags(self._reader.string(number))
        return self._tags[number]


def history_of(reader: _core.Reader) -> Literal["kept", "ring", "partly", "none"]:
    """Say whether there is a history of memory, by what the recording says of itself.

    Not by what there is: pools have a history in any case. Where nothing is said of it,
    the file is damaged, and nobody knows what else is missing. A ring has only the
    newest of it.
    """
    found = {fields["detail"] for fields in _starts_of(reader)}
    if found == {_STATE}:
        return "none"
    if not found or _STATE in found:
        return "partly"
    return "ring" if reader.header()["ring_events"] else "kept"


def has_c_library(reader: _core.Reader) -> bool:
    """Say whether what libraries took from the C library was recorded, too."""
    return any(fields["domains"] & _MALLOC for fields in _starts_of(reader))


def _starts_of(reader: _core.Reader) -> list[dict[str, int]]:
    """Return what was said each time that recording memory began."""
    starts = len(reader.memory_starts())  # which are among the first records
    told: list[dict[str, int]] = []
    for kind, _, _, fields in reader.records() if starts else ():
        if kind == "memory_on":
            told.append(fields)
        if len(told) == starts:
            break
    return told


def _read_tags(text: str | None) -> Tags:
    """Read them as far as they are some: a file may say anything."""
    try:
        tags = json.loads(text or "{}")
    except (RecursionError, ValueError):
        return {}
    if not isinstance(tags, dict):
        return {}
    kinds = (str, int, float, bool)
    return {name: value for name, value in tags.items() if isinstance(value, kinds)}
