"""The Chrome trace format: JSON, for chrome://tracing and everything that reads it."""

from __future__ import annotations

import gzip
import json
import math

from whence.export._names import UNKNOWN, printable
from whence.export._timeline import Timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from whence._recording import Recording

_SPAN_ROWS = 1_000_000  # threads of their own, as viewers see it
_FASTEST = 1


def write(recording: Recording, file: BinaryIO) -> None:
    """Write all that happened; packed, if that is what the file's name says."""
    _write(recording, file)


def write_packed(recording: Recording, file: BinaryIO) -> None:
    """Write the same, packed with gzip."""
    with gzip.GzipFile("", "wb", _FASTEST, file, mtime=0) as packed:
        _write(recording, packed)


def _write(recording: Recording, file: BinaryIO | gzip.GzipFile) -> None:
    timeline = Timeline(recording)
    pid: int = timeline.pid
    start: int = timeline.start

    def tell(**event: Any) -> None:
        file.write(json.dumps({"pid": pid, **event}).encode() + b",\n")

    def micro(nanoseconds: int) -> float:
        return (start + nanoseconds) / 1000

    file.write(b'{"displayTimeUnit":"ns","traceEvents":[\n')
    for thread in timeline.threads:
        named = {"name": thread.name}
        tell(ph="M", name="thread_name", tid=thread.id, args=named)
    recording._reader.export_chrome(  # noqa: SLF001
        file.write,
        tuple(recording._bounds),  # noqa: SLF001
        start,
        pid,
    )
    for row, span in timeline.spans():
        tags = {**span.tags, "error": True} if span.error else span.tags
        tell(
            ph="X",
            cat="span",
            name=printable(span.name or UNKNOWN),
            ts=micro(span.start),
            dur=(span.duration or 0) / 1000,
            tid=_SPAN_ROWS * (row + 1) + span.thread,
            args={printable(k or UNKNOWN): _plain(v) for k, v in tags.items()},
        )
    for run in recording.gc:
        tell(
            ph="X",
            cat="gc",
            name=f"generation {run.generation}",
            ts=micro(run.start),
            dur=run.duration / 1000,
            tid=2 * _SPAN_ROWS * 1000 + run.thread,
            args={"collected": run.collected, "uncollectable": run.uncollectable},
        )
    for counter in recording.counters:
        name = printable(counter.name or UNKNOWN)
        value = {"value": _plain(counter.value)}
        tell(ph="C", name=name, ts=micro(counter.time), args=value)
    program = json.dumps({"name": timeline.program})
    file.write(
        f'{{"ph":"M","name":"process_name","pid":{pid},"args":{program}}}\n]}}\n'.encode()
    )


def _plain(value: object) -> object:
    """Return what JSON has a word for."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return printable(str(value))
