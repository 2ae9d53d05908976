"""Perfetto traces: calls, spans, counters and collections on one timeline.

A trace is a sequence of packets. Calls are packets of the native encoder, a thread's in
a sequence of its own; all the rest is written here, in one more.
"""

from __future__ import annotations

from whence.export import _protobuf as protobuf
from whence.export._names import UNKNOWN, printable
from whence.export._timeline import Timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from whence._events import Span
    from whence._recording import Recording

# Fields of Perfetto's TracePacket, TrackDescriptor and TrackEvent.
_PACKET, _TIMESTAMP, _SEQUENCE, _EVENT, _TRACK = 1, 8, 10, 11, 60
_UUID, _NAME, _PROCESS, _THREAD, _PARENT, _COUNTER = 1, 2, 3, 4, 5, 8
_TYPE, _EVENT_TRACK, _EVENT_NAME, _VALUE, _REAL, _NOTE = 9, 11, 23, 30, 44, 4
_BEGIN, _END, _INSTANT, _COUNT = 1, 2, 3, 4

_OWN_SEQUENCE = 1
_FIRST_SEQUENCE = 2  # of threads
_THREADS, _SPANS, _GC, _COUNTERS = (n << 32 for n in (1, 2, 3, 4))


def write(recording: Recording, file: BinaryIO) -> None:
    """Write all that happened, in no particular order: Perfetto sorts it."""
    timeline = Timeline(recording)
    trace = _Trace(timeline.start, timeline.pid << 40, file)
    trace.process(timeline.pid, timeline.program)
    for thread in timeline.threads:
        trace.thread(timeline.pid, thread.id, thread.os_id, thread.name)
    recording._reader.export_perfetto(  # noqa: SLF001
        file.write,
        tuple(recording._bounds),  # noqa: SLF001
        trace.start,
        trace.base + _THREADS,
        _FIRST_SEQUENCE,
    )
    for row, span in timeline.spans():
        trace.span(row, span)
    for run in recording.gc:
        track = trace.track(_GC + run.thread, "garbage collections", run.thread)
        notes: dict[str | None, object] = {
            "generation": run.generation,
            "collected": run.collected,
            "uncollectable": run.uncollectable,
        }
        name = f"generation {run.generation}"
        trace.slice(track, name, run.start, run.duration, notes)
    for counter in recording.counters:
        trace.count(counter.name, counter.time, counter.value)


class _Trace:
    def __init__(self, start: int, base: int, file: BinaryIO) -> None:
        self.start = start
        self.base = base
        self._file = file
        self._tracks: set[int] = set()
        self._counters: dict[str | None, int] = {}

    def _packet(self, content: bytes) -> None:
        content += protobuf.number(_SEQUENCE, _OWN_SEQUENCE)
        self._file.write(protobuf.data(_PACKET, content))

    def _describe(self, uuid: int, content: bytes) -> None:
        described = protobuf.number(_UUID, uuid) + content
        self._packet(protobuf.data(_TRACK, described))

    def process(self, pid: int, name: str) -> None:
        described = protobuf.number(1, pid) + protobuf.text(6, name)
        self._describe(self.base, protobuf.data(_PROCESS, described))

    def thread(self, pid: int, thread: int, os_id: int, name: str) -> None:
        described = protobuf.number(1, pid) + protobuf.number(2, os_id)
        described += protobuf.text(5, name)
        content = protobuf.number(_PARENT, self.base)
        content += protobuf.data(_THREAD, described)
        self._describe(self.base + _THREADS + thread, content)

    def track(self, number: int, name: str, thread: int) -> int:
        """Return a track beside those of calls, described when it is first used."""
        uuid = self.base + number
        if uuid not in self._tracks:
            self._tracks.add(uuid)
            parent = protobuf.number(_PARENT, self.base + _THREADS + thread)
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
        notes: Mapping[str | None, object],
    ) -> None:
        more = protobuf.text(_EVENT_NAME, name)
        for key, value in notes.items():
            more += protobuf.data(_NOTE, _note(key, value))
        self._event(start, _BEGIN, track, more)
        self._event(start + duration, _END, track)

    def span(self, row: int, span: Span) -> None:
        number = _SPANS + (row << 24) + span.thread
        track = self.track(number, "spans", span.thread)
        tags: dict[str | None, object] = dict(span.tags)
        if span.error:
            tags["error"] = True
        name = printable(span.name or UNKNOWN)
        self.slice(track, name, span.start, span.duration or 0, tags)

    def count(self, name: str | None, time: int, value: float) -> None:
        number = self._counters.setdefault(name, len(self._counters))
        uuid = self.base + _COUNTERS + number
        if uuid not in self._tracks:
            self._tracks.add(uuid)
            content = protobuf.number(_PARENT, self.base)
            content += protobuf.text(_NAME, printable(name or UNKNOWN))
            self._describe(uuid, content + protobuf.data(_COUNTER, b""))
        if isinstance(value, int):
            more = protobuf.varint(_VALUE << 3) + protobuf.varint(value)
        else:
            more = protobuf.double(_REAL, value)
        self._event(time, _COUNT, uuid, more)


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
