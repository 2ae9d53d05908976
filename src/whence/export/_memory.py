"""Bytes by stack, as formats with paths show them."""

from __future__ import annotations

from whence._recording import parts_of
from whence.export._stacks import Stacks, added_up
from whence.export._warn import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whence._memory import MemoryCounts
    from whence._memory_groups import MemoryGroups
    from whence._recording import Recording

    Level = tuple[int, int]  # bytes, blocks

TITLES = {
    "peak": "bytes in use at the peak",
    "leaks": "bytes in use at the end",
    "allocated": "bytes taken, given back or not",
}
_NOTHING = (0, 0)


class MemoryPaths:
    """What a process did with memory, by stack, of a recording that has it."""

    def __init__(self, recording: Recording) -> None:
        (part,) = parts_of(recording)
        self._memory = recording.memory
        self.stacks = Stacks(part.reader)
        warn_of_gaps(recording, self._memory.counts)

    def of(self, metric: str) -> Iterator[tuple[Sequence[int], int]]:
        """Yield paths with the bytes of a metric."""
        sizes = ((g._stack, (g.bytes,)) for g in self._groups(metric))  # noqa: SLF001
        for path, (size,) in added_up(self.stacks, sizes):
            yield path, size

    def with_allocated(
        self, metric: str
    ) -> Iterator[tuple[Sequence[int], tuple[int, ...]]]:
        """Yield paths with blocks and bytes that were taken, and those of a metric."""
        taken = _levels(self._groups("allocated"))
        in_use = _levels(self._groups(metric))
        stacks = dict.fromkeys([*in_use, *taken])
        values = (
            (stack, (*_turned(taken.get(stack)), *_turned(in_use.get(stack))))
            for stack in stacks
        )
        return added_up(self.stacks, values)

    def _groups(self, metric: str) -> MemoryGroups:
        if metric == "peak":
            return self._memory.peak.groups
        return self._memory.leaks() if metric == "leaks" else self._memory.allocated()


def warn_of_gaps(recording: Recording, counts: MemoryCounts) -> None:
    """Warn of what the numbers do not have."""
    if recording.info.memory:
        warn(f"memory was not recorded as asked for: {recording.info.memory}")
    if left_out := counts.left_out:
        warn(f"blocks left out: {left_out:,}, for lack of room")


def _levels(groups: MemoryGroups) -> dict[int, Level]:
    return {g._stack: (g.bytes, g.count) for g in groups}  # noqa: SLF001


def _turned(level: Level | None) -> Level:
    size, count = level or _NOTHING
    return count, size
