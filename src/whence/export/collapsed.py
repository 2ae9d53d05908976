"""Collapsed stacks: lines of ``outermost;...;innermost number``.

A function is ``name (file:line)``, as other Python profilers write it, since a line has
no other place for where it is. The number is the path's own time in nanoseconds, how
often it was called, or bytes of memory, where the line is the one that ran; lines with
0 would say nothing, and are left out.
"""

from __future__ import annotations

import os

from whence.export._memory import MemoryPaths
from whence.export._metrics import resolve
from whence.export._names import labels_of_paths
from whence.export._paths import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    from whence._recording import Recording
    from whence.export._names import Label


def write(recording: Recording, file: BinaryIO, metric: str | None = None) -> str:
    """Write a line for every path that has something of the metric; return that."""
    metric, tree = resolve(recording, metric)
    rows: Iterator[tuple[Sequence[int], int]]
    if tree is None:
        memory = MemoryPaths(recording)
        labels = memory.stacks.labels
        rows = memory.of(metric)
    else:
        labels = labels_of_paths(tree)
        of_calls = metric == "calls"
        rows = ((path, calls if of_calls else own) for path, calls, own in paths(tree))
    names: list[str] = []
    for path, number in rows:
        names += [_name(recording, label) for label in labels[len(names) :]]
        if number:
            line = ";".join([names[place] for place in path])
            file.write(f"{line} {number}\n".encode())
    return metric


def _name(recording: Recording, label: Label) -> str:
    name = label.name
    if label.filename is not None:
        place = recording.shorten(label.filename)
        # Of native code mostly the library is known, and no more.
        known = f"{place}:{label.line}" if label.line else os.path.basename(place)  # noqa: PTH119
        name += f" ({known})"
    return name.replace(";", ":")
