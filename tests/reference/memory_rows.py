"""Rows that exports of memory are made of, by the slow twin: blocks, and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reference.memory import ALL, Block, Groups, Memory, Slice, group, wanted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reference.memory import Change


class Row(NamedTuple):
    start: int
    end: int | None  # None: it is in use at the end
    address: int
    size: int
    domain: str
    stack: int
    thread: int


class EventRow(NamedTuple):
    action: str
    time: int
    thread: int
    domain: str
    address: int
    size: int
    stack: int


def changes_in(memory: Memory, slice_: Slice) -> list[Change]:
    """Return the changes in the time of a slice to blocks of its threads."""
    return [
        change
        for change in memory.until(slice_[1])
        if (slice_[0] is None or change.event.time >= slice_[0])
        and change.block is not None
        and not change.of_segment
        and wanted(change.block, slice_)
    ]


def taken(memory: Memory, slice_: Slice = ALL) -> Groups:
    """Return all blocks that were taken, by origin.

    A state in the slice also tells of blocks that were taken before it.
    """
    changes = changes_in(memory, slice_)
    new = [c.block for c in changes if c.what == "taken" and not c.is_rest and c.block]
    return group(b for b in new if slice_[0] is None or b.taken.time >= slice_[0])


def blocks(memory: Memory, slice_: Slice = ALL) -> list[Row]:
    """Return the blocks that were in use in a slice, with their whole lives."""
    ends: dict[int, int | None] = {}
    seen: dict[int, Block] = {}
    left: dict[int, int] = {}  # bytes of a mapping that are still there
    last = 0
    for change in memory.until(slice_[1]):
        block = change.block
        if block is None or change.of_segment or not wanted(block, slice_):
            continue
        seen[id(block)] = block
        ended = change.what == "ended"
        ends[id(block)] = change.event.time if ended else None
        if change.is_rest:
            left[last] = left.get(last, 0) + block.taken.size
        else:
            last = id(block)
    start = slice_[0]
    rows = [_row(b, ends[key], left.get(key, 0)) for key, b in seen.items()]
    return sorted(
        (r for r in rows if start is None or r.end is None or r.end >= start), key=repr
    )


def _row(block: Block, end: int | None, left: int) -> Row:
    b = block.taken
    size = b.size - left
    return Row(b.time, end, b.address, size, str(b.domain), b.stack, b.thread)


def segments(memory: Memory, slice_: Slice = ALL) -> list[Row]:
    """Return the segments that pools hold at the end."""
    live: dict[int, Row] = {}
    for change in memory.until(slice_[1]):
        if change.block is None or not change.of_segment:
            continue
        live.pop(id(change.block), None)
        if change.what == "taken" and wanted(change.block, slice_):
            live[id(change.block)] = _row(change.block, None, 0)
    return sorted(live.values(), key=repr)


def events(memory: Memory, slice_: Slice = ALL) -> Iterator[EventRow]:
    """Give what happened such that it fits together: taken, freed, taken again."""
    for change in memory.until(slice_[1]):
        event, block = change.event, change.block
        if slice_[0] is not None and event.time < slice_[0]:
            continue
        if event.action == "out_of_memory":
            if slice_[2] is None or event.thread in slice_[2]:
                values = event.time, event.thread, "?", 0, event.size, event.stack
                yield EventRow("out_of_memory", *values)
        elif block is not None and wanted(block, slice_):
            b, ended = block.taken, change.what == "ended"
            thread = event.thread if ended else b.thread
            stack = event.stack if event.action in ("freed", "segment_freed") else 0
            what = "segment_" if change.of_segment else ""
            yield EventRow(
                what + ("freed" if ended else "taken"),
                *(event.time, thread, str(b.domain), b.address, b.size),
                stack if ended else b.stack,
            )
