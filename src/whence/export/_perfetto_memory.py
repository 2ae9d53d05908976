"""Memory in a Perfetto trace: counters of what is in use, and large allocations.

Every allocation would be too much to look at. So there is an event for each of the
largest, and the others are in the counters; the trace says how many that are.
"""

from __future__ import annotations

import struct

from whence._memory_names import MemoryNames
from whence._recording import has_memory
from whence.export._perfetto_trace import ALLOCATIONS, MEMORY
from whence.export._stacks import NOWHERE, Stacks
from whence.export._usage import series_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whence.export._names import Label
    from whence.export._perfetto_trace import Trace
    from whence.export._timeline import Timeline

_BLOCK = struct.Struct("=qqQQQQQ")
_IN_USE = 2**63 - 1
_MOST_FRAMES = 8  # of a stack, the innermost


def write(trace: Trace, timeline: Timeline, limit: int) -> None:
    """Write counters, and so many of the largest allocations of a process."""
    recording = timeline.recording
    if not has_memory(recording):
        return
    for series in series_of(recording):
        for time, value in series.points:
            trace.count(series.name, time, value, in_bytes=True)
    bounds = tuple(recording._bounds)  # noqa: SLF001
    answer, _, _ = timeline.reader.memory_largest(bounds, False, limit)  # noqa: FBT003
    blocks, left_out, bytes_left_out = answer
    title = _say_what_is_shown(trace, blocks, left_out, bytes_left_out)
    stacks, names = Stacks(timeline.reader), MemoryNames(timeline.reader)
    for start, end, address, size, domain, stack, thread in _BLOCK.iter_unpack(blocks):
        frames = stacks.innermost(stacks.number(stack), _MOST_FRAMES)
        notes: dict[str | None, object] = {
            "size": size,
            "address": hex(address),
            "domain": names.domain(domain),
            **({"freed_after_ns": end - start} if end != _IN_USE else {"freed": False}),
            **{f"frame_{n}": _text(frame) for n, frame in enumerate(frames)},
        }
        track = trace.track(ALLOCATIONS + thread, title, thread)
        trace.instant(track, (frames or [NOWHERE])[0].name, start, notes)


def _say_what_is_shown(
    trace: Trace, blocks: bytes, left_out: int, bytes_left_out: int
) -> str:
    """Say it once on a track of the process; return what the others are called."""
    rows = list(_BLOCK.iter_unpack(blocks))
    if not rows:
        return ""
    least = min(size for _, _, _, size, *_ in rows)
    notes: dict[str | None, object] = {
        "shown": len(rows),
        "least_size": least,
        "left_out": left_out,
        "bytes_left_out": bytes_left_out,
    }
    name = f"allocations: {len(rows):,} shown, {left_out:,} smaller ones left out"
    trace.instant(trace.track(MEMORY, "memory"), name, rows[0][0], notes)
    return f"allocations from {least:,} bytes on" if left_out else "allocations"


def _text(frame: Label) -> str:
    return f"{frame.name} ({frame.filename}:{frame.line})"
