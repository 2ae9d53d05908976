"""What ``whence summary`` says about memory."""

from __future__ import annotations

import os.path

from whence._memory_names import DOMAINS, has_c_library, history_of
from whence._recording import parts_of
from whence.cli._branches import is_library_file
from whence.cli._terminal import duration, say, several, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from whence import _core
    from whence._frame import Frame
    from whence._memory import Memory, MemoryCounts, UsagePoint
    from whence._memory_groups import MemoryGroups
    from whence._recording import Recording

_MOST = 5
_MOST_PROCESSES = 20
_MUCH_MORE, _SOME = 2, 16_000_000  # bytes that nobody wonders about
_NOWHERE = "no Python code"
_IMPORTER = "<frozen importlib."  # the module that imports others
_NO_LINES = ("native", "truncated", "unmerged")  # kinds of frames


def say_memory(recording: Recording) -> None:
    """Say of each process how much was in use, what stayed, and what went at once."""
    processes = recording.processes
    for process in processes[:_MOST_PROCESSES]:
        whose = f"memory of {process.pid}" if len(processes) > 1 else "memory"
        _say_process(recording.slice(processes=[process.id]), whose)


def as_far_as(history: str) -> str:
    """Say that what is said of memory is said of a part of it, if that is so."""
    if history == "ring":
        return ", of what the ring has kept"
    return ", as far as a history was kept" if history == "partly" else ""


def resident(reader: _core.Reader, memory: Memory) -> list[str]:
    """Say what the system held for the process, and who took more than was recorded."""
    held = [point.bytes for point in memory.usage().resident]
    if not held:
        return []
    lines = [f"resident memory: at most {size(max(held))}, as the system counts it"]
    grown = max(held) - held[0]
    if grown > _MUCH_MORE * (memory.peak.bytes + _SOME) and not has_c_library(reader):
        more = f"it grew by {size(grown)}: what C libraries take is not in this"
        lines.append(f"{more}; --memory-all records that, too")
    return lines


def _say_process(recording: Recording, whose: str) -> None:
    (part,) = parts_of(recording)
    history = history_of(part.reader)
    memory = recording.memory
    if history == "none":
        _say_state(recording, memory, whose)
        return
    peak, counts = memory.peak, memory.counts
    if not counts.allocated and not counts.freed and not peak.bytes:
        return
    say("")
    most = f"at most {size(peak.bytes)}, after {duration(peak.time)}"
    say(f"{whose}: {most}{as_far_as(history)}", "bold")
    say(", ".join(_taken(counts) + _amiss(counts)))
    for sentence in resident(part.reader, memory):
        say(sentence)
    _say_groups(recording, peak.groups, "in use then")
    _say_groups(recording, memory.leaks(), "in use at the end")
    _say_groups(recording, memory.churn(), "given back at once")


def _say_state(recording: Recording, memory: Memory, whose: str) -> None:
    """Say what was in use when that was told, and nothing of the time in between."""
    points, counts, left = memory.usage().points, memory.counts, memory.leaks()
    say("")
    if not points:
        say(f"{whose}: what was in use was never told", "bold")
        return
    told = _told(points)
    # It is told at the end, if the program gets there, and so does who reads.
    to_end = recording.processes[0].info.closed and recording._bounds.end is None  # noqa: SLF001
    when = "in use at the end" if to_end else "in use when it was last told"
    after = "" if to_end or not told else f", after {duration(told[-1][0])}"
    say(f"{whose}: {size(left.total.bytes)} {when}{after}", "bold")
    about = ["no history was kept: there is no peak"]
    if counts.allocated or counts.freed:
        taken, *more = _taken(counts)
        about += [f"of pools {taken}", *more]
    say(", ".join(about + _amiss(counts)))
    if before := told[:-1][-_MOST:]:
        each = (f"{size(level)} after {duration(time)}" for time, level in before)
        say(f"in use before: {', '.join(each)}")
    _say_groups(recording, left, when)
    _say_groups(recording, memory.churn(), "given back at once")


def _told(points: list[UsagePoint]) -> list[tuple[int, int]]:
    """Return when it was told what the process has in use, and how much that was.

    Pools tell of each block of theirs, so what counts is that the others change.
    """
    told: list[tuple[int, int]] = []
    for point in points:
        levels = (point.domains.get(name) for name in DOMAINS)
        own = sum(level.bytes for level in levels if level is not None)
        if own != (told[-1][1] if told else 0):
            told.append((point.time, own))
    return told


def _taken(counts: MemoryCounts) -> list[str]:
    return [
        several(counts.allocated, "allocation"),
        f"{several(counts.freed, 'free')}, {counts.before:,} of earlier blocks",
    ]


def _amiss(counts: MemoryCounts) -> list[str]:
    about = []
    if counts.contradictions:
        about += [several(counts.contradictions, "contradiction")]
    if counts.out_of_memory:
        about += [f"{several(counts.out_of_memory, 'request')} without success"]
    if counts.left_out:
        about += [f"no room for {several(counts.left_out, 'block')}: not all is told"]
    return about


def _say_groups(recording: Recording, groups: MemoryGroups, title: str) -> None:
    """List the lines of the program that most of it comes from.

    What modules took when they were imported is mostly there to stay, and often more
    than what is looked for: it comes last, as one.
    """
    sums: dict[str, list[int]] = {}
    modules = [0, 0]
    for group in groups:
        stack = group.stack
        if any(frame.filename.startswith(_IMPORTER) for frame in stack):
            entry = modules
        else:
            entry = sums.setdefault(_place(recording, stack), [0, 0])
        entry[0] += group.bytes
        entry[1] += group.count
    if not groups:
        return
    say("")
    say(f"{'bytes':>10} {'blocks':>12}  {title}", "bold")
    rows = sorted(sums.items(), key=lambda row: -row[1][0])[:_MOST]
    if modules[1]:
        rows.append(("modules, as they were imported", modules))
    for place, (total, count) in rows:
        say(f"{size(total):>10} {count:>12,}  {place}")


def _place(recording: Recording, stack: Sequence[Frame]) -> str:
    """Say which line it was, and which native function took the block for it."""
    line = _own_line(stack)
    taker = stack[0] if stack and stack[0].kind == "native" else None
    if taker is None:
        return _NOWHERE if line is None else _name(recording, line)
    if line is None:
        return f"{_name(recording, taker)}, {_NOWHERE}"
    return f"{_name(recording, line)}, by {_name(recording, taker)}"


def _own_line(stack: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame that is the program's own, or else the innermost."""
    lines = [frame for frame in stack if frame.kind not in _NO_LINES]
    own = (frame for frame in lines if not is_library_file(frame.filename))
    return next(own, lines[0] if lines else None)


def _name(recording: Recording, frame: Frame) -> str:
    if frame.kind == "native" and frame.line is None:
        return f"{frame.name} ({os.path.basename(frame.filename)})"
    line = "?" if frame.line is None else frame.line
    return f"{frame.name} ({recording.shorten(frame.filename)}:{line})"
