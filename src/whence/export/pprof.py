"""pprof: gzipped protocol buffers, as github.com/google/pprof/proto/profile.proto says.

A sample is a path: how often it was called, and how long it took on its own. The same
recording always gives the same bytes.
"""

from __future__ import annotations

import gzip
from datetime import datetime, timedelta, timezone

from whence.export import _protobuf
from whence.export._names import labels_of_paths, printable
from whence.export._paths import paths, tree_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from whence._recording import Recording
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


class _Strings(dict[str, int]):
    """The table of strings: a string is its place."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]


def write(recording: Recording, file: BinaryIO) -> None:
    """Write all samples, then what they refer to."""
    tree = tree_of(recording)
    strings = _Strings({"": 0})
    # Without a name and a time, so that the bytes depend on the recording alone.
    with gzip.GzipFile("", "wb", 6, file, mtime=0) as out:
        _write_about(recording, out, strings)
        names = labels_of_paths(tree)
        ids = [_protobuf.varint(number) for number in range(1, len(names) + 1)]
        for path, calls, own in paths(tree):
            if not calls and not own:
                continue
            innermost_first = b"".join([ids[function] for function in reversed(path)])
            values = min(calls, _LARGEST), min(own, _LARGEST)
            sample = _protobuf.data(_SAMPLE_LOCATION_ID, innermost_first)
            sample += _protobuf.packed(_SAMPLE_VALUE, values)
            out.write(_protobuf.data(_SAMPLE, sample))
        for number, label in enumerate(names, 1):
            _write_function(out, number, label, strings)
        for text in strings:
            out.write(_protobuf.text(_STRING_TABLE, text))


def _write_about(recording: Recording, out: gzip.GzipFile, strings: _Strings) -> None:
    info = recording.info
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017
    micros = (info.start - epoch) // timedelta(microseconds=1)
    calls = _value_type(strings, "calls", "count")
    time = _value_type(strings, "time", "nanoseconds")
    out.write(_protobuf.data(_SAMPLE_TYPE, calls))
    out.write(_protobuf.data(_SAMPLE_TYPE, time))
    out.write(_protobuf.number(_TIME_NANOS, micros * 1000))
    out.write(_protobuf.number(_DURATION_NANOS, info.duration))
    out.write(_protobuf.data(_PERIOD_TYPE, time))
    out.write(_protobuf.number(_PERIOD, 1))
    if info.program:
        comment = strings[printable(info.program)]
        out.write(_protobuf.packed(_COMMENT, [comment]))
    out.write(_protobuf.number(_DEFAULT_SAMPLE_TYPE, strings["time"]))


def _value_type(strings: _Strings, type_: str, unit: str) -> bytes:
    return _protobuf.number(1, strings[type_]) + _protobuf.number(2, strings[unit])


def _write_function(
    out: gzip.GzipFile, number: int, label: Label, strings: _Strings
) -> None:
    """Write a function, and the one location that it has."""
    id_ = _protobuf.number(1, number)
    # No system name: pprof would take it for C++ and cut <module> and <lambda> out.
    function = _protobuf.number(_FUNCTION_NAME, strings[label.name])
    function += _protobuf.number(_FUNCTION_FILENAME, strings[label.filename or ""])
    function += _protobuf.number(_FUNCTION_START_LINE, label.line)
    out.write(_protobuf.data(_FUNCTION, id_ + function))
    line = _protobuf.number(_LINE_FUNCTION_ID, number)
    line += _protobuf.number(_LINE_LINE, label.line)
    out.write(_protobuf.data(_LOCATION, id_ + _protobuf.data(_LOCATION_LINE, line)))
