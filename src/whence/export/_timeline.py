"""What formats with a timeline show beside calls, in their words."""

from __future__ import annotations

from whence.export._names import UNKNOWN, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from whence._events import Span
    from whence._recording import Recording


class NamedThread:
    """A thread with a name that there is something to show of."""

    __slots__ = ("id", "name", "os_id")

    def __init__(self, id_: int, os_id: int, name: str) -> None:
        self.id = id_
        self.os_id = os_id
        self.name = name


class Timeline:
    """The process of a recording, its threads, and where its times begin."""

    def __init__(self, recording: Recording) -> None:
        info = recording.info
        self._recording = recording
        self.pid = info.pid
        self.program = printable(info.program or "") or UNKNOWN
        self.start = recording._reader.header()["start_monotonic"]  # noqa: SLF001
        chosen = recording._bounds.threads  # noqa: SLF001
        self.threads = [
            NamedThread(t.id, t.os_id, printable(t.name or f"thread {t.id}"))
            for t in recording.threads
            if chosen is None or t.id in chosen
        ]

    def spans(self) -> Iterator[tuple[int, Span]]:
        """Give each span a row of its thread in which it lies in others or beside them.

        Spans of one thread may end in any order, as those of tasks do. They come by
        their beginning, so that one that lies in another follows it.
        """
        end = self._recording.info.duration
        spans = sorted(
            self._recording.spans,
            key=lambda s: (s.start, -(s.duration or end)),
        )
        rows: dict[int, list[list[int]]] = {}  # the ends of those that are open
        for span in spans:
            until = span.start + (end - span.start if span.open else span.duration or 0)
            row = _row_for(span.start, until, rows.setdefault(span.thread, []))
            yield row, span._replace(duration=until - span.start)


def _row_for(start: int, until: int, rows: list[list[int]]) -> int:
    for number, ends in enumerate(rows):
        while ends and ends[-1] <= start:
            ends.pop()
        if not ends or until <= ends[-1]:
            ends.append(until)
            return number
    rows.append([until])
    return len(rows) - 1
