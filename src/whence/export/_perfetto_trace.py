"""Packets of a Perfetto trace, and the tracks that they are on."""

from __future__ import annotations

from whence._text import printable
from whence.export import _protobuf as protobuf
from whence.export._names import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from whence._events import Span

    Notes = Mapping[str | None, object]

# Fields of Perfetto's TracePacket, TrackDescriptor and TrackEvent.
_PACKET, _TIMESTAMP, _SEQUENCE, _EVENT, _TRACK = 1, 8, 10, 11, 60
_UUID, _NAME, _PROCESS, _THREAD, _PARENT, _COUNTER = 1, 2, 3, 4, 5, 8
_TYPE, _EVENT_TRACK, _EVENT_NAME, _VALUE, _REAL, _NOTE = 9, 11, 23, 30, 44, 4
_UNIT, _BYTES = 3, 3  # of a CounterDescriptor
_BEGIN, _END, _INSTANT, _COUNT = 1, 2, 3, 4

_OWN_SEQUENCE = 1
FIRST_SEQUENCE = 2  # of threads
# Where the numbers of tracks begin, each plus that of a thread.
THREADS, _SPANS, GC, _COUNTERS, ALLOCATIONS, MEMORY = (
    n << 32 for n in (1, 2, 3, 4, 5, 6)
)


class Trace:
    """Packets about one process, beside those of its calls."""

    def __init__(self, start: int, base: int, file: BinaryIO) -> None:
        self.start = start
        self.base = base
        self._file = file
        self._tracks: set[int] = set()
        self._counters: dict[tuple[str | None, bool], int] = {}

    def _packet(self, content: bytes) -> None:
        content += protobuf.number(_SEQUENCE, _OWN_SEQUENCE)
        self._file.write(protobuf.data(_PACKET, content))

    def _describe(self, uuid: int, content: bytes) -> None:
        described = protobuf.number(_UUID, uuid) + content
        self._packet(protobuf.data(_TRACK, described))

    def process(self, pid: int, name: str) -> None:
        """Describe the process."""
        described = protobuf.number(1, pid) + protobuf.text(6, name)
        self._describe(self.base, protobuf.data(_PROCESS, described))

    def thread(self, pid: int, thread: int, os_id: int, name: str) -> None:
        """Describe a thread."""
        described = protobuf.number(1, pid) + protobuf.number(2, os_id)
        described += protobuf.text(5, name)
        content = protobuf.number(_PARENT, self.base)
        content += protobuf.data(_THREAD, described)
        self._describe(self.base + THREADS + thread, content)

    def track(self, number: int, name: str, thread: int | None = None) -> int:
        """Return a track beside those of calls, described when it is first used.

        It belongs to a thread, or else to the process.
        """
        uuid = self.base + number
        if uuid not in self._tracks:
            self._tracks.add(uuid)
            around = 0 if thread is None else THREADS + thread
            parent = protobuf.number(_PARENT, self.base + around)
            self._describe(uuid, parent + protobuf.text(_NAME, name))
        return uuid

    def _event(self, time: int, kind: int, track: int, more: bytes = b"") -> None:
        content = protobuf.number(_TYPE, kind) + protobuf.number(_EVENT_TRACK, track)
        stamp = protobuf.number(_TIMESTAMP, max(self.start + time, 0))
        self._packet(stamp + protobuf.data(_EVENT, content + more))

    def slice(
        self,
        track: int,
        name: str,
        start: int,
        duration: int,
        notes: Notes,
    ) -> None:
        """Write a stretch of time, with annotations."""
        self._event(start, _BEGIN, track, _named(name, notes))
        self._event(start + duration, _END, track)

    def instant(self, track: int, name: str, time: int, notes: Notes) -> None:
        """Write a moment, with annotations."""
        self._event(time, _INSTANT, track, _named(name, notes))

    def span(self, row: int, span: Span) -> None:
        """Write a span, in a row of its thread."""
        number = _SPANS + (row << 24) + span.thread
        track = self.track(number, "spans", span.thread)
        tags: dict[str | None, object] = dict(span.tags)
        if span.error:
            tags["error"] = True
        name = printable(span.name or UNKNOWN)
        self.slice(track, name, span.start, span.duration or 0, tags)

    def count(
        self, name: str | None, time: int, value: float, *, in_bytes: bool = False
    ) -> None:
        """Write the value of a counter from a time on."""
        number = self._counters.setdefault((name, in_bytes), len(self._counters))
        uuid = self.base + _COUNTERS + number
        if uuid not in self._tracks:
            self._tracks.add(uuid)
            content = protobuf.number(_PARENT, self.base)
            content += protobuf.text(_NAME, printable(name or UNKNOWN))
            unit = protobuf.number(_UNIT, _BYTES) if in_bytes else b""
            self._describe(uuid, content + protobuf.data(_COUNTER, unit))
        if isinstance(value, int):
            more = protobuf.varint(_VALUE << 3) + protobuf.varint(value)
        else:
            more = protobuf.double(_REAL, value)
        self._event(time, _COUNT, uuid, more)


def _named(name: str, notes: Notes) -> bytes:
    named = protobuf.text(_EVENT_NAME, name)
    for key, value in notes.items():
        named += protobuf.data(_NOTE, _note(key, value))
    return named


def _note(key: str | None, value: object) -> bytes:
    """Encode a debug annotation."""
    note = protobuf.text(10, printable(key or UNKNOWN))
    if isinstance(value, bool):
        return note + protobuf.varint(2 << 3) + protobuf.varint(int(value))
    if isinstance(value, int):
        return note + protobuf.varint(4 << 3) + protobuf.varint(value)
    if isinstance(value, float):
        return note + protobuf.double(5, value)
    return note + protobuf.text(6, printable(str(value)))
