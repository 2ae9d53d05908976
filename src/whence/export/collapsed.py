"""Collapsed stacks: lines of ``outermost;...;innermost nanoseconds``.

A function is ``name (file:line)``, as other Python profilers write it, since a line has
no other place for where it is.
"""

from __future__ import annotations

from whence.export._names import labels_of_paths
from whence.export._paths import paths, tree_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from whence._recording import Recording
    from whence.export._names import Label


def write(recording: Recording, file: BinaryIO) -> None:
    """Write a line for every path that took time of its own."""
    tree = tree_of(recording)
    names = [_name(recording, label) for label in labels_of_paths(tree)]
    for path, _, own in paths(tree):
        if own:
            line = ";".join([names[function] for function in path])
            file.write(f"{line} {own}\n".encode())


def _name(recording: Recording, label: Label) -> str:
    name = label.name
    if label.filename is not None:
        name += f" ({recording.shorten(label.filename)}:{label.line})"
    return name.replace(";", ":")
