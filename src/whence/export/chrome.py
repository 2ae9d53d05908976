"""The Chrome trace format: JSON, for chrome://tracing and everything that reads it.

Calls, spans and collections are complete events, in microseconds of the monotonic
clock. What the recording is of comes before them.
"""

from __future__ import annotations

import gzip
import json
import math

from whence._recording import wall_clock_of
from whence._text import printable
from whence.export._names import UNKNOWN
from whence.export._timeline import timelines
from whence.export._usage import series_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from whence._recording import Recording
    from whence.export._timeline import Timeline

# Viewers know nothing but threads: rows beside those of calls are threads of their own.
_SPAN_ROWS = 1_000_000
_COLLECTIONS = 2_000 * _SPAN_ROWS
_FASTEST = 1
_SCHEMA_VERSION = 1


def write_packed(recording: Recording, file: BinaryIO) -> None:
    """Write the same, packed with gzip."""
    with gzip.GzipFile("", "wb", _FASTEST, file, mtime=0) as packed:
        write(recording, packed)


def write(recording: Recording, file: BinaryIO | gzip.GzipFile) -> None:
    """Write all that happened, process by process."""
    file.write(json.dumps(_about(recording)).encode()[:-1] + b',"traceEvents":[\n')
    names = []
    for timeline in timelines(recording):
        _write_process(timeline, file)
        name = {"name": timeline.program}
        about = {"ph": "M", "name": "process_name", "pid": timeline.pid, "args": name}
        names.append(json.dumps(about, separators=(",", ":")))
    file.write(",\n".join(names).encode() + b"\n]}\n")


def _write_process(timeline: Timeline, file: BinaryIO | gzip.GzipFile) -> None:
    pid, start = timeline.pid, timeline.start

    def tell(**event: Any) -> None:
        file.write(json.dumps({"pid": pid, **event}).encode() + b",\n")

    def micro(nanoseconds: int) -> float:
        return (start + nanoseconds) / 1000

    named: set[int] = set()

    def row(tid: int, name: str) -> int:
        if tid not in named:
            named.add(tid)
            tell(ph="M", name="thread_name", tid=tid, args={"name": name})
        return tid

    names = {thread.id: thread.name for thread in timeline.threads}
    for id_, name in names.items():
        row(id_, name)
    bounds = timeline.bounds
    _, until = timeline.reader.export_chrome(file.write, bounds, start, pid)
    timeline.cut(until)
    for number, span in timeline.spans():
        tags = {**span.tags, "error": True} if span.error else span.tags
        tell(
            ph="X",
            cat="span",
            name=printable(span.name or UNKNOWN),
            ts=micro(span.start),
            dur=(span.duration or 0) / 1000,
            tid=row(
                _SPAN_ROWS * (number + 1) + span.thread,
                f"spans of {names.get(span.thread, span.thread)}",
            ),
            args={printable(k or UNKNOWN): _plain(v) for k, v in tags.items()},
        )
    for run in timeline.recording.gc:
        tell(
            ph="X",
            cat="gc",
            name=f"generation {run.generation}",
            ts=micro(run.start),
            dur=run.duration / 1000,
            tid=row(
                _COLLECTIONS + run.thread,
                f"collections of {names.get(run.thread, run.thread)}",
            ),
            args={"collected": run.collected, "uncollectable": run.uncollectable},
        )
    for name, time, values in _counted(timeline.recording):
        tell(ph="C", name=name, ts=micro(time), args=values)


def _counted(recording: Recording) -> Iterator[tuple[str, int, dict[str, object]]]:
    """Yield the values of counters, and the bytes of memory over time."""
    for counter in recording.counters:
        value: dict[str, object] = {"value": _plain(counter.value)}
        yield printable(counter.name or UNKNOWN), counter.time, value
    for series in series_of(recording):
        for time, size in series.points:
            yield series.name, time, {"bytes": size}


def _about(recording: Recording) -> dict[str, object]:
    """Say what the trace is of; base time and a time of an event are the wall clock."""
    info = recording.info
    texts = {"program": info.program, "python": info.python, "whence": info.whence}
    other = {key: printable(text) for key, text in texts.items() if text is not None}
    return {
        "schemaVersion": _SCHEMA_VERSION,
        "displayTimeUnit": "ns",
        "baseTimeNanoseconds": wall_clock_of(recording),
        "trace_id": info.file_id,
        "otherData": {**other, "pid": info.pid},
    }


def _plain(value: object) -> object:
    """Return what JSON has a word for."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return printable(str(value))
