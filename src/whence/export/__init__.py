"""Recordings as files for other tools.

A format is one line of ``FORMATS`` and one module, imported only when it is used. Its
``write(recording, file)`` gets a binary file to write to, or, if the format is a
directory, the name of one to make; of a format with metrics, also ``metric``, and of
one with a limit, ``limit``. It returns the metric, if there is a choice. Recordings are
all that a writer reads.
"""

from __future__ import annotations

import importlib
import os
from typing import NamedTuple

from whence import _new_file
from whence._recording import Recording
from whence.export import _output
from whence.export._output import ExportError

__all__ = ["FORMATS", "ExportError", "Format", "choose", "export"]


class Format(NamedTuple):
    """A format: its ``--format`` name, the suffixes that choose it, what it is for.

    ``opening`` says how to open what was written, ``{}`` being its name. ``suffix``, if
    it is a directory, is what all files in it end in. ``metrics`` are what its numbers
    may be, and their units, ``{unit}`` in ``opening``; the first unless one is chosen,
    or nothing but memory was recorded. ``limit`` is how many events or blocks of memory
    one has that cannot hold all, unless another number is chosen.
    """

    name: str
    suffixes: tuple[str, ...]
    purpose: str
    opening: str
    module: str
    suffix: str | None = None
    writer: str = "write"
    metrics: tuple[tuple[str, str], ...] = ()
    limit: int | None = None

    def unit(self, metric: str | None) -> str:
        """Return the unit of a metric; "" if there is none to choose."""
        if metric is None:
            return self.metrics[0][1] if self.metrics else ""
        if not self.metrics:
            message = f"{self.name} has no choice of metric: leave {metric!r} out"
            raise ExportError(message)
        units = dict(self.metrics)
        if metric not in units:
            *names, last = units
            listed = f"{', '.join(names)} or {last}"
            message = f"{self.name} has no metric {metric!r}: choose {listed}"
            raise ExportError(message)
        return units[metric]

    def expect_limit(self, limit: int | None) -> None:
        """Refuse a limit that it does not have, or that is none."""
        if limit is None:
            return
        if self.limit is None:
            message = f"{self.name} has no limit: leave {limit!r} out"
            raise ExportError(message)
        if not isinstance(limit, int) or not 1 <= limit <= _LARGEST_LIMIT:
            message = f"the limit must be a number from 1 to {_LARGEST_LIMIT:,}, not "
            raise ExportError(message + repr(limit))


_LARGEST_LIMIT = 1_000_000
# Of formats with paths: time, calls, and memory.
_METRICS = (
    ("own", "ns"),
    ("calls", "calls"),
    ("peak", "bytes"),
    ("leaks", "bytes"),
    ("allocated", "bytes"),
)

FORMATS = (
    Format(
        name="perfetto",
        suffixes=(".pftrace",),
        purpose="the timeline of all threads, also of very long recordings",
        opening="open it at https://ui.perfetto.dev",
        module="whence.export.perfetto",
        limit=20_000,
    ),
    Format(
        name="chrome",
        suffixes=(".json",),
        purpose="the same for tools that read Chrome's JSON",
        opening="open it at https://ui.perfetto.dev or chrome://tracing",
        module="whence.export.chrome",
    ),
    Format(
        name="chrome",
        suffixes=(".json.gz",),
        purpose="the same, packed",
        opening="open it at https://ui.perfetto.dev",
        module="whence.export.chrome",
        writer="write_packed",
    ),
    Format(
        name="parquet",
        suffixes=(".parquet",),
        purpose="tables for DuckDB, Polars, pandas and the like",
        opening="look into it with: duckdb -c \"from '{}/call.parquet'\"",
        module="whence.export.parquet",
        suffix=".parquet",
    ),
    Format(
        name="speedscope",
        suffixes=(".speedscope.json",),
        purpose="flame graphs in the browser, all threads and each",
        opening="open it at https://www.speedscope.app",
        module="whence.export.speedscope",
        metrics=_METRICS,
    ),
    Format(
        name="pprof",
        suffixes=(".pb.gz",),
        purpose="pprof and services that take its profiles",
        opening="open it with: go tool pprof {}",
        module="whence.export.pprof",
        metrics=_METRICS,
    ),
    Format(
        name="collapsed",
        suffixes=(".collapsed",),
        purpose="flamegraph.pl and tools that read lines of stacks",
        opening="open it with: flamegraph.pl --countname={unit} {} > flame.svg",
        module="whence.export.collapsed",
        metrics=_METRICS,
    ),
    Format(
        name="pstats",
        suffixes=(".pstats",),
        purpose="the standard library's pstats, and tools for cProfile",
        opening="open it with: python -m pstats {}",
        module="whence.export.pstats",
    ),
    Format(
        name="callgrind",
        suffixes=(".callgrind",),
        purpose="KCachegrind and callgrind_annotate",
        opening="open it with: callgrind_annotate {}",
        module="whence.export.callgrind",
    ),
    Format(
        name="torch-memory",
        suffixes=(".torch.json",),
        purpose="memory as PyTorch's memory snapshots have it",
        opening="open it as JSON; https://pytorch.org/memory_viz shows it as a pickle",
        module="whence.export.torch_memory",
        limit=20_000,
    ),
)


def choose(path: str | os.PathLike[str], name: str | None = None) -> Format:
    """Find a format by its name, or by the longest suffix that the file's name has.

    Raises ``ExportError``, which lists the formats, if there is none.
    """
    named = [format_ for format_ in FORMATS if name in (None, format_.name)]
    if not named:
        message = f"there is no format {name!r}: {_listed()}"
        raise ExportError(message)
    file = os.fsdecode(path).rstrip("/").lower()
    fitting = [
        (len(suffix), format_)
        for format_ in named
        for suffix in format_.suffixes
        if file.endswith(suffix)
    ]
    if not fitting and name is not None:
        return named[0]
    if not fitting:
        message = f"{os.fsdecode(path)} does not say which format: {_listed()}"
        raise ExportError(message)
    return max(fitting)[1]


def export(  # noqa: PLR0913
    recording: Recording,
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    *,
    force: bool = False,
    metric: str | None = None,
    limit: int | None = None,
) -> str | None:
    """Write a recording, or a slice of one, to a file for another tool.

    The format is that of the name, or of the suffix of ``path``. The file appears there
    when it is complete; one that exists is replaced only with ``force``. ``metric`` is
    for formats that have a choice: ``"own"`` or ``"calls"``, or, of memory, ``"peak"``,
    ``"leaks"`` or ``"allocated"``; it is returned, and None for other formats.
    ``limit`` is how many events or blocks of memory formats have that cannot hold all.
    Raises ``ExportError``, a ``ValueError``, for what cannot be done as asked, and
    ``OSError``.
    """
    if not isinstance(recording, Recording):
        message = f"pass a Recording, as in whence.open(path), not {recording!r}"
        raise TypeError(message)
    chosen = choose(path, format)
    chosen.unit(metric)  # refuses a metric that it does not have
    chosen.expect_limit(limit)
    given = {"metric": metric, "limit": limit or chosen.limit}
    options = {key: value for key, value in given.items() if value is not None}
    target = os.fsdecode(path).rstrip("/")
    if _new_file.same_file(recording.info.path, target):
        message = f"{target} is the recording itself"
        raise ExportError(message)
    write = getattr(importlib.import_module(chosen.module), chosen.writer)
    if chosen.suffix is not None:
        with _output.new_directory(target, chosen.suffix, force=force) as directory:
            write(recording, directory, **options)
        return None
    with _new_file.new_file(target, force=force) as file:
        used: str | None = write(recording, file, **options)
        return used


def _listed() -> str:
    formats = (f"{f.name} ({', '.join(f.suffixes)})" for f in FORMATS)
    return f"the formats are {', '.join(formats)}"
