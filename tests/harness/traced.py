"""A recording of the calls of one function, read back into lists."""

from threading import get_native_id
from typing import Any, NamedTuple

import whence
from whence._bounds import Bounds
from whence._call_table import Calls


class Traced(NamedTuple):
    """What a recording has, and what the function that was recorded gave back."""

    result: Any
    calls: list
    exceptions: list
    tasks: list
    threads: list
    gc: list
    spans: list
    records: list
    reason: str | None  # why calls are not recorded

    def of(self, *functions):
        """Return the calls of these functions, by the last part of their names."""
        return [c for c in self.calls if last(c.function) in functions]

    def count(self, function):
        """Return how often a function ran, short calls that were folded included."""
        return sum(call.count for call in self.of(function))

    def one(self, function):
        (call,) = self.of(function)
        return call

    def here(self):
        """Return the same with the calls of this thread alone.

        Other tests may have left threads behind, whose frames are open.
        """
        own = {t.id for t in self.threads if t.os_id == get_native_id()}
        return self._replace(calls=[c for c in self.calls if c.thread in own])

    def parent(self, call):
        """Return the call around a call."""
        (found,) = [
            c for c in self.calls if (c.thread, c.number) == (call.thread, call.parent)
        ]
        return found


def last(name):
    return (name or "").rpartition(".")[2]


def record(path, run, **options):
    """Record a call of ``run``, which is given the recorder if it takes one."""
    wanted = {"pack": False, "overwrite": True, "gc": False, **options}
    with whence.record(path, **wanted) as recorder:
        result = run(recorder) if run.__code__.co_argcount else run()
    assert recorder.dropped == {}
    return read(recorder.path, result)


def read(path, result=None):
    with whence.open(path) as recording:
        traced = Traced(
            result,
            list(recording.calls().read()),
            list(recording.exceptions),
            recording.tasks,
            recording.threads,
            list(recording.gc),
            list(recording.spans),
            list(recording),
            recording.info.calls,
        )
        losses = recording.losses
    assert losses.produced == losses.recorded + sum(losses.dropped.values())
    check_nesting(traced.calls)
    return traced


def check_nesting(calls):
    """Calls of one thread nest: each lies within the one around it."""
    places = {(call.thread, call.number): call for call in calls}
    for call in calls:
        around = places.get((call.thread, call.parent))
        assert call.duration >= call.own >= 0, call
        if around is None:
            assert call.parent is None, call
            assert call.depth == 0, call
            continue
        assert around.depth == call.depth - 1, (call, around)
        assert around.start <= call.start, (call, around)
        assert call.start + call.duration <= around.start + around.duration, call


def calls_of(reader, start=None, end=None, threads=None):
    """Return the calls that a native reader finds, the way a recording gives them."""
    bounds = Bounds(start, end, threads)
    return list(Calls("memory", lambda: iter([reader]), bounds).read())
