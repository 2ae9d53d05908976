"""Recordings as files for other tools.

A format is one line of ``FORMATS`` and one module, imported only when it is used. Its
``write(recording, file)`` gets a binary file to write to, or, if the format is a
directory, the name of one to make. Recordings are all that a writer reads.
"""

from __future__ import annotations

import importlib
import os
from typing import NamedTuple

from whence.export import _output
from whence.export._output import ExportError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whence._recording import Recording

__all__ = ["FORMATS", "ExportError", "Format", "choose", "export"]


class Format(NamedTuple):
    """A format: its ``--format`` name, the suffixes that choose it, what it is for.

    ``opening`` says how to open what was written, ``{}`` being its name. ``suffix``, if
    it is a directory, is what all files in it end in.
    """

    name: str
    suffixes: tuple[str, ...]
    purpose: str
    opening: str
    module: str
    suffix: str | None = None
    writer: str = "write"


FORMATS = (
    Format(
        name="perfetto",
        suffixes=(".pftrace",),
        purpose="the timeline of all threads, also of very long recordings",
        opening="open it at https://ui.perfetto.dev",
        module="whence.export.perfetto",
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
    ),
    Format(
        name="pprof",
        suffixes=(".pb.gz",),
        purpose="pprof and services that take its profiles",
        opening="open it with: go tool pprof {}",
        module="whence.export.pprof",
    ),
    Format(
        name="collapsed",
        suffixes=(".collapsed",),
        purpose="flamegraph.pl and tools that read lines of stacks",
        opening="open it with: flamegraph.pl --countname=ns {} > flame.svg",
        module="whence.export.collapsed",
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


def export(
    recording: Recording,
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    *,
    force: bool = False,
) -> None:
    """Write a recording, or a slice of one, to a file for another tool.

    The format is that of the name, or of the suffix of ``path``. The file appears there
    when it is complete; one that exists is replaced only with ``force``. Raises
    ``ExportError`` for what cannot be done as asked, and ``OSError``.
    """
    chosen = choose(path, format)
    target = os.fsdecode(path).rstrip("/")
    if _output.same_file(recording.info.path, target):
        message = f"{target} is the recording itself"
        raise ExportError(message)
    write = getattr(importlib.import_module(chosen.module), chosen.writer)
    if chosen.suffix is not None:
        with _output.new_directory(target, chosen.suffix, force=force) as directory:
            write(recording, directory)
        return
    with _output.new_file(target, force=force) as file:
        write(recording, file)


def _listed() -> str:
    formats = (f"{f.name} ({', '.join(f.suffixes)})" for f in FORMATS)
    return f"the formats are {', '.join(formats)}"
