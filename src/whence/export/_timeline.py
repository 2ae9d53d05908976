"""What formats with a timeline show beside calls, in their words."""

from __future__ import annotations

from whence._bounds import partly
from whence._recording import parts_of, start_of
from whence._text import printable
from whence.export._names import UNKNOWN
from whence.export._warn import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from whence._core import Reader
    from whence._events import Process, Span
    from whence._recording import Recording


_NO_PID = 1 << 22  # Linux has none from here on


class NamedThread:
    """A thread with a name that there is something to show of."""

    __slots__ = ("id", "name", "os_id")

    def __init__(self, id_: int, os_id: int, name: str) -> None:
        self.id = id_
        self.os_id = os_id
        self.name = name


class Timeline:
    """One process of a recording, its threads, and where its times begin.

    ``pid`` is another one if a process before it has the same, as in containers.
    """

    def __init__(
        self, recording: Recording, process: Process, bounds: Any, pid: int, start: int
    ) -> None:
        self.recording = recording.slice(processes=[process.id])
        self.bounds = bounds
        self.pid = pid
        self.program = printable(process.program or "") or UNKNOWN
        self.start = start
        self._end = process.end
        self.threads = [
            NamedThread(t.id, t.os_id, printable(t.name or f"thread {t.id}"))
            for t in self.recording.threads
        ]

    @property
    def reader(self) -> Reader:
        """The native reader of the process."""
        (part,) = parts_of(self.recording)
        return part.reader

    def cut(self, until: int | None) -> None:
        """Go no further than calls were read before the time was over; warn of that."""
        if until is not None:
            warn(partly(until))
            self.recording = self.recording.slice(end=until)

    def spans(self) -> Iterator[tuple[int, Span]]:
        """Give each span a row of its thread in which it lies in others or beside them.

        Spans of one thread may end in any order, as those of tasks do. They come by
        their beginning, so that one that lies in another follows it.
        """
        end = self._end
        spans = sorted(
            self.recording.spans,
            key=lambda s: (s.start, -(s.duration or end)),
        )
        rows: dict[int, list[list[int]]] = {}  # the ends of those that are open
        for span in spans:
            until = span.start + (end - span.start if span.open else span.duration or 0)
            row = _row_for(span.start, until, rows.setdefault(span.thread, []))
            yield row, span._replace(duration=until - span.start)


def timelines(recording: Recording) -> Iterator[Timeline]:
    """Give the processes of a recording, each with a pid of its own."""
    used: set[int] = set()
    start = start_of(recording)
    bounds = tuple(recording._bounds)  # noqa: SLF001
    for process in recording.processes:
        pid = process.pid if process.pid not in used else _NO_PID + process.id
        used.add(pid)
        yield Timeline(recording, process, bounds, pid, start)


def _row_for(start: int, until: int, rows: list[list[int]]) -> int:
    for number, ends in enumerate(rows):
        while ends and ends[-1] <= start:
            ends.pop()
        if not ends or until <= ends[-1]:
            ends.append(until)
            return number
    rows.append([until])
    return len(rows) - 1
