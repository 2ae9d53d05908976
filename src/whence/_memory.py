"""What a recording says about memory.

Every answer is found by replaying what happened to blocks of memory, in native/read;
here it is given names. Stacks are named when somebody looks at them.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

from whence import _bounds
from whence._memory_groups import Level, MemoryGroups
from whence._memory_names import DOMAINS, MemoryNames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whence import _core
    from whence._bounds import Bounds
    from whence._frame import Frame
    from whence._memory_names import Tags

_ACTIONS = (
    *("allocated", "moved", "freed", "not_freed"),
    *("segment_allocated", "segment_freed", "in_use"),
)
_MOST_POINTS = 4096
_LARGEST = (1 << 64) - 1


class Peak(NamedTuple):
    """When most memory was in use: how much, and by whom."""

    bytes: int
    time: int
    groups: MemoryGroups


class UsagePoint(NamedTuple):
    """What was in use at a time. ``domains`` has those that were, by name.

    ``reserved`` are the bytes that pools held in segments, by name.
    """

    time: int
    bytes: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    domains: dict[str, Level]
    reserved: dict[str, int]


class ResidentPoint(NamedTuple):
    """What the system held in memory for the process at a time."""

    time: int
    bytes: int


class Usage(NamedTuple):
    """How much was in use as time went by."""

    points: list[UsagePoint]
    resident: list[ResidentPoint]


class MemoryCounts(NamedTuple):
    """What was recorded about memory.

    ``before`` are frees of blocks from before the recording. ``contradictions`` are
    blocks that were given out while they were still in use, as far as the recording
    knows. ``left_out`` and ``disorder`` are 0 unless a file holds more than it can.
    """

    allocated: int
    freed: int
    before: int
    contradictions: int
    out_of_memory: int
    left_out: int
    disorder: int


class MemoryEvent:
    """What happened to a block."""

    __slots__ = (
        *("_names", "_stack", "_tags", "action", "address", "domain", "size"),
        *("thread", "time"),
    )

    def __init__(self, names: MemoryNames, values: tuple[int, ...]) -> None:
        action, self.time, self.thread, domain, self.address, self.size = values[:6]
        self.action = _ACTIONS[action]
        self.domain = names.domain(domain)
        self._names = names
        self._stack, self._tags = values[6:]

    @property
    def stack(self) -> tuple[Frame, ...]:
        """The frames that did it, innermost first; none if they are not known."""
        return self._names.frames(self._stack)

    @property
    def tags(self) -> Tags:
        """What the thread had said about itself; see ``whence.memory.tag``."""
        return dict(self._names.tags(self._tags))

    def __repr__(self) -> str:
        return f"<{self.action} {self.size} bytes at {self.address:#x}, {self.time} ns>"


class MemoryFailure(NamedTuple):
    """Somebody asked for ``size`` bytes in vain.

    ``available`` is how many there were, if that was told.
    """

    time: int
    thread: int
    domain: str
    size: int
    available: int | None
    stack: tuple[Frame, ...]
    tags: Tags


class Memory:
    """Questions about memory. Each method reads the recording again."""

    __slots__ = ("_bounds", "_names", "_peak", "_reader")

    def __init__(self, reader: _core.Reader, bounds: Bounds) -> None:
        self._reader = reader
        self._bounds = bounds
        self._names = MemoryNames(reader)
        self._peak: tuple[Peak, MemoryCounts] | None = None

    @property
    def peak(self) -> Peak:
        """The most that was in use at a time, when that was first, and by whom."""
        return self._find_peak()[0]

    @property
    def counts(self) -> MemoryCounts:
        """What was recorded about memory."""
        return self._find_peak()[1]

    def usage(self) -> Usage:
        """Return how much was in use as time went by, in up to some thousand points.

        Each is the most in its stretch of time, so that the peak is among them.
        """
        read = self._reader.memory_usage(tuple(self._bounds), _MOST_POINTS)
        points, resident = self._answer(read)
        return Usage(
            [self._usage_point(*point) for point in points],
            [ResidentPoint(*point) for point in resident],
        )

    def live_at(self, time: int | str) -> MemoryGroups:
        """Return the blocks that were in use at that time."""
        if time is None:  # which is no time, but a bound that is not there
            message = "time takes nanoseconds or a text like '1.5s', not None"
            raise TypeError(message)
        return self._live(None, None, _bounds.moment(time, "time"))

    def leaks(
        self,
        start: int | str | None = None,
        end: int | str | None = None,
        *,
        at: int | str | None = None,
    ) -> MemoryGroups:
        """Return the blocks that nobody gave back.

        They were taken from ``start`` on and before ``end``, and are in use at the time
        ``at``: the end of the recording, unless something else is said.
        """
        times = (start, "start"), (end, "end"), (at, "at")
        return self._live(*(_bounds.moment(*time) for time in times))

    def allocated(self) -> MemoryGroups:
        """Return all blocks that were taken, whether they were given back or not."""
        read = self._reader.memory_taken(tuple(self._bounds))
        return MemoryGroups(self._names, self._answer(read))

    def churn(self, within: int = 1) -> MemoryGroups:
        """Return the blocks that were given back at once.

        That is, before their thread had taken ``within`` further ones.
        """
        if not isinstance(within, int) or not 1 <= within <= _LARGEST:
            message = f"within must be a number of blocks from 1 on, not {within!r}"
            raise ValueError(message)
        read = self._reader.memory_churn(tuple(self._bounds), within)
        return MemoryGroups(self._names, self._answer(read))

    @property
    def failures(self) -> list[MemoryFailure]:
        """Who asked for memory in vain, in the order of time."""
        events = self._answer(self._reader.memory_failures(tuple(self._bounds)))
        return [_failure(self._names, *event) for event in events]

    def history(
        self, address: int, *, pool: int | str | None = None
    ) -> list[MemoryEvent]:
        """Return what happened to the blocks that this address was in.

        ``pool`` is the name of the domain whose address it is, or its number, if it is
        not the process's.
        """
        if isinstance(pool, str):
            number = self._names.pool(pool)
            if number is None:
                return []
            pool = number
        for name, value in (("address", address), ("pool", pool or 0)):
            if not isinstance(value, int) or not 0 <= value <= _LARGEST:
                message = f"{name} must be a number of up to 64 bits, not {value!r}"
                raise ValueError(message)
        read = self._reader.memory_history(tuple(self._bounds), address, pool)
        return [MemoryEvent(self._names, event) for event in self._answer(read)]

    def _live(self, start: int | None, end: int | None, at: int | None) -> MemoryGroups:
        read = self._reader.memory_live(tuple(self._bounds), start, end, at)
        return MemoryGroups(self._names, self._answer(read))

    def _usage_point(
        self,
        time: int,
        size: int,
        count: int,
        levels: list[tuple[int, int]],
        pools: list[tuple[int, int, int, int]],
    ) -> UsagePoint:
        named = dict(zip(DOMAINS, levels, strict=True))
        reserved = {}
        for domain, *level, held in pools:
            name = self._names.domain(domain)
            named[name] = (level[0], level[1])
            reserved[name] = held
        domains = {name: Level(*level) for name, level in named.items() if any(level)}
        held_by = {name: held for name, held in reserved.items() if held}
        return UsagePoint(time, size, count, domains, held_by)

    def _find_peak(self) -> tuple[Peak, MemoryCounts]:
        if self._peak is None:
            read = self._reader.memory_peak(tuple(self._bounds))
            size, time, rows = self._answer(read)
            peak = Peak(size, time, MemoryGroups(self._names, rows))
            self._peak = peak, MemoryCounts(*read[1])
        return self._peak

    @staticmethod
    def _answer(read: tuple[Any, Any, int | None]) -> Any:
        """Return the answer, and warn if the time limit came before the end."""
        answer, _, until = read
        if until is not None:
            warnings.warn(_bounds.partly(until), stacklevel=4)
        return answer


def _failure(  # noqa: PLR0913
    names: MemoryNames,
    time: int,
    thread: int,
    domain: int,
    size: int,
    available: int,
    stack: int,
    tags: int,
) -> MemoryFailure:
    there = available - 1 if available else None
    said = dict(names.tags(tags))
    who = names.domain(domain)
    return MemoryFailure(time, thread, who, size, there, names.frames(stack), said)
