"""What the processes of a recording come to together."""

from __future__ import annotations

from whence._events import Losses, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from whence._events import RecordingInfo
    from whence._part import Part
    from whence.handles import HandleTable

_LEAST_PAIRS = 1 << 17


def info_of(parts: Sequence[Part], size: int) -> RecordingInfo:
    """Describe a file of that size as a whole, by the process that began first."""
    infos = [part.info for part in parts]
    first = infos[0]
    if len(infos) == 1:
        return first._replace(size=size)
    early = next((info for info in infos if info.ended), first)
    return first._replace(
        duration=max(part.process.end for part in parts),
        size=size,
        packed=any(info.packed for info in infos),
        closed=all(info.closed for info in infos),
        ended=early.ended,
        error=early.error,
        calls=next((info.calls for info in infos if info.calls), None),
        memory=next((info.memory for info in infos if info.memory), None),
        handles=next((info.handles for info in infos if info.handles), None),
    )


def tasks_of(part: Part, bounds: tuple[Any, ...]) -> list[Task]:
    """Return the tasks of a process, and which of them waited for which."""
    known = part.reader.tasks()
    # A file can claim any number of pairs; a real one has no more than it has bytes.
    most = max(_LEAST_PAIRS, 2 * part.header["size"])
    pairs: dict[tuple[int, int], None] = {}  # each once, in their order
    for pair in part.reader.awaits(*bounds) if known else ():
        if len(pairs) == most:
            break
        if all(pair):  # else a task that nobody has told of
            pairs[pair] = None
    awaits: dict[int, list[int]] = {}
    awaited_by: dict[int, list[int]] = {}
    for task, awaited in pairs:
        awaits.setdefault(task, []).append(awaited)
        awaited_by.setdefault(awaited, []).append(task)
    return [
        Task(
            *task,
            tuple(awaits.get(task[0], ())),
            tuple(awaited_by.get(task[0], ())),
        )
        for task in known
    ]


def losses_of(each: Iterable[dict[str, Any]]) -> Losses:
    """Add up what became of the events of all processes, by the totals of each."""
    produced = recorded = names = 0
    dropped: dict[str, int] = {}
    for totals in each:
        produced += totals["produced"]
        recorded += totals["recorded"]
        names += totals["names"] + totals["names_left_out"]
        for reason, events in totals["dropped"].items():
            dropped[reason] = dropped.get(reason, 0) + events
    return Losses(produced, recorded, dropped, names)


def handles_of(parts: Sequence[Part], name: str) -> HandleTable:
    """Return what the tables of handles in all of them say."""
    from whence.handles._table import of_files  # noqa: PLC0415

    return of_files(
        (file for part in parts for file in part.reader.handle_tables()), name
    )
