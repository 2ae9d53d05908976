"""pprof: gzipped protocol buffers, as github.com/google/pprof/proto/profile.proto says.

A sample is a path: how often it was called, and how long it took on its own; or, as in
heap profiles of Go, blocks and bytes that were taken, and that are in use. The same
recording always gives the same bytes.
"""

from __future__ import annotations

import gzip
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from whence._text import printable
from whence.export import _protobuf
from whence.export._memory import MemoryPaths
from whence.export._metrics import has_history, resolve
from whence.export._names import labels_of_paths
from whence.export._paths import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    from whence._recording import Recording
    from whence._tree import CallTree
    from whence.export._names import Label

# Fields of Profile
_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRING_TABLE = 1, 2, 4, 5, 6
_TIME_NANOS, _DURATION_NANOS, _PERIOD_TYPE, _PERIOD = 9, 10, 11, 12
_COMMENT, _DEFAULT_SAMPLE_TYPE = 13, 14
# Fields of Sample, Location, Line, Function; ids are their first
_SAMPLE_LOCATION_ID, _SAMPLE_VALUE = 1, 2
_LOCATION_LINE = 4
_LINE_FUNCTION_ID, _LINE_LINE = 1, 2
_FUNCTION_NAME, _FUNCTION_FILENAME, _FUNCTION_START_LINE = 2, 4, 5

_LARGEST = 2**63 - 1
_OF_CALLS = (("calls", "count"), ("time", "nanoseconds"))
_TAKEN = (("alloc_objects", "count"), ("alloc_space", "bytes"))
_IN_USE = (("inuse_objects", "count"), ("inuse_space", "bytes"))
# What is shown unless the reader chooses; of others, what is in use.
_SHOWN = {"own": "time", "calls": "calls", "allocated": "alloc_space"}


class _Strings(dict[str, int]):
    """The table of strings: a string is its place."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]


class _Places(NamedTuple):
    """What paths are made of: labels, and where the functions around them begin."""

    labels: list[Label]
    starts: list[int]


def write(recording: Recording, file: BinaryIO, metric: str | None = None) -> str:
    """Write all samples, then what they refer to; return the metric that is shown."""
    metric, tree = resolve(recording, metric)
    strings = _Strings({"": 0})
    rows: Iterator[tuple[Sequence[int], tuple[int, ...]]]
    types: tuple[tuple[str, str], ...] = _OF_CALLS
    if tree is None:
        memory = MemoryPaths(recording)
        places = _Places(memory.stacks.labels, memory.stacks.starts)
        rows = memory.with_allocated("leaks" if metric == "leaks" else "peak")
        types = _TAKEN + _IN_USE
        if not has_history(recording):  # each state tells of blocks as if it took them
            rows = ((path, values[len(_TAKEN) :]) for path, values in rows)
            types = _IN_USE
    else:
        labels = labels_of_paths(tree)
        places = _Places(labels, [label.line for label in labels])
        rows = ((path, (calls, own)) for path, calls, own in paths(tree))
    # Without a name and a time, so that the bytes depend on the recording alone.
    with gzip.GzipFile("", "wb", 6, file, mtime=0) as out:
        _write_about(recording, tree, types, out, strings)
        shown = strings[_SHOWN.get(metric, "inuse_space")]
        out.write(_protobuf.number(_DEFAULT_SAMPLE_TYPE, shown))
        ids: list[bytes] = []
        for path, values in rows:
            new = range(len(ids) + 1, len(places.labels) + 1)
            ids += map(_protobuf.varint, new)  # they may be met while paths are
            if any(values):
                innermost_first = b"".join([ids[place] for place in reversed(path)])
                capped = [min(value, _LARGEST) for value in values]
                sample = _protobuf.data(_SAMPLE_LOCATION_ID, innermost_first)
                sample += _protobuf.packed(_SAMPLE_VALUE, capped)
                out.write(_protobuf.data(_SAMPLE, sample))
        _write_places(out, places, strings)
        for text in strings:
            out.write(_protobuf.text(_STRING_TABLE, text))
    return metric


def _write_about(
    recording: Recording,
    tree: CallTree | None,
    types: tuple[tuple[str, str], ...],
    out: gzip.GzipFile,
    strings: _Strings,
) -> None:
    info = recording.info
    read = info.duration if tree is None or tree.until is None else tree.until
    start, end = recording._bounds.stretch(read)  # noqa: SLF001
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017
    micros = (info.start - epoch) // timedelta(microseconds=1)
    for type_ in types:
        out.write(_protobuf.data(_SAMPLE_TYPE, _value_type(strings, *type_)))
    period = ("space", "bytes") if tree is None else types[-1]
    out.write(_protobuf.number(_TIME_NANOS, micros * 1000 + start))
    out.write(_protobuf.number(_DURATION_NANOS, end - start))
    out.write(_protobuf.data(_PERIOD_TYPE, _value_type(strings, *period)))
    out.write(_protobuf.number(_PERIOD, 1))
    if info.program:
        comment = strings[printable(info.program)]
        out.write(_protobuf.packed(_COMMENT, [comment]))


def _value_type(strings: _Strings, type_: str, unit: str) -> bytes:
    return _protobuf.number(1, strings[type_]) + _protobuf.number(2, strings[unit])


def _write_places(out: gzip.GzipFile, places: _Places, strings: _Strings) -> None:
    """Write a location for each place, and each function once."""
    functions: dict[tuple[str, str | None, int], int] = {}
    for number, label in enumerate(places.labels, 1):
        key = label.name, label.filename, places.starts[number - 1]
        function = functions.setdefault(key, len(functions) + 1)
        line = _protobuf.number(_LINE_FUNCTION_ID, function)
        line += _protobuf.number(_LINE_LINE, label.line)
        location = _protobuf.number(1, number) + _protobuf.data(_LOCATION_LINE, line)
        out.write(_protobuf.data(_LOCATION, location))
    for (name, filename, start), number in functions.items():
        # No system name: pprof would take it for C++ and cut <module> and <lambda> out.
        function_ = _protobuf.number(1, number)
        function_ += _protobuf.number(_FUNCTION_NAME, strings[name])
        function_ += _protobuf.number(_FUNCTION_FILENAME, strings[filename or ""])
        function_ += _protobuf.number(_FUNCTION_START_LINE, start)
        out.write(_protobuf.data(_FUNCTION, function_))
