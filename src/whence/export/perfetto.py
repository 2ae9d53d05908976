"""Perfetto traces: calls, spans, counters, collections and memory on one timeline.

A trace is a sequence of packets. Calls are packets of the native encoder, a thread's in
a sequence of its own; all the rest is written here, in one more. No two threads of a
recording have the same number, whatever processes they belong to.
"""

from __future__ import annotations

from whence.export import _perfetto_memory
from whence.export._perfetto_trace import FIRST_SEQUENCE, GC, THREADS, Trace
from whence.export._timeline import timelines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from whence._recording import Recording
    from whence.export._timeline import Timeline


def write(recording: Recording, file: BinaryIO, limit: int) -> None:
    """Write all that happened, in no particular order: Perfetto sorts it.

    Of allocations so many for each process, the largest.
    """
    for timeline in timelines(recording):
        _write_process(timeline, file, limit)


def _write_process(timeline: Timeline, file: BinaryIO, limit: int) -> None:
    trace = Trace(timeline.start, timeline.pid << 40, file)
    trace.process(timeline.pid, timeline.program)
    for thread in timeline.threads:
        trace.thread(timeline.pid, thread.id, thread.os_id, thread.name)
    _, until = timeline.reader.export_perfetto(
        file.write,
        timeline.bounds,
        trace.start,
        trace.base + THREADS,
        FIRST_SEQUENCE,
    )
    timeline.cut(until)
    for row, span in timeline.spans():
        trace.span(row, span)
    for run in timeline.recording.gc:
        track = trace.track(GC + run.thread, "garbage collections", run.thread)
        notes: dict[str | None, object] = {
            "generation": run.generation,
            "collected": run.collected,
            "uncollectable": run.uncollectable,
        }
        name = f"generation {run.generation}"
        trace.slice(track, name, run.start, run.duration, notes)
    for counter in timeline.recording.counters:
        trace.count(counter.name, counter.time, counter.value)
    _perfetto_memory.write(trace, timeline, limit)
