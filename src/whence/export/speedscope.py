"""speedscope's own format: paths and how long each took, for all threads and for each.

Its schema is https://www.speedscope.app/file-format-schema.json.
"""

from __future__ import annotations

import json

from whence.export._names import UNKNOWN, labels_of_paths, printable
from whence.export._paths import paths, tree_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from whence._recording import Recording
    from whence._tree import CallTree
    from whence.export._names import Label

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
# Each thread is one more reading of the recording.
_MOST_THREADS = 64


def write(recording: Recording, file: BinaryIO) -> None:
    """Write a profile of all threads and, if there are several, one for each."""
    import whence  # noqa: PLC0415

    frames: dict[Label, int] = {}
    name = printable(recording.info.program or UNKNOWN)
    start = {
        "$schema": _SCHEMA,
        "exporter": f"whence@{whence.__version__}",
        "name": name,
        "activeProfileIndex": 0,
    }
    file.write(_json(start)[:-1] + b',"profiles":[')
    _write_profile(file, "all threads", tree_of(recording), frames)
    for thread, tree in _threads(recording):
        file.write(b",")
        _write_profile(file, thread, tree, frames)
    shared = {"frames": [_frame(label) for label in frames]}
    file.write(b'],"shared":' + _json(shared) + b"}\n")


def _threads(recording: Recording) -> list[tuple[str, CallTree]]:
    threads = recording.threads
    if not 1 < len(threads) <= _MOST_THREADS:
        return []
    found = [
        (
            printable(f"{thread.name or 'thread'} ({thread.id})"),
            recording.slice(threads=[thread.id]).call_tree(),
        )
        for thread in threads
    ]
    found = [(name, tree) for name, tree in found if len(tree)]
    return found if len(found) > 1 else []


def _write_profile(
    file: BinaryIO, name: str, tree: CallTree, frames: dict[Label, int]
) -> None:
    numbers = [
        str(frames.setdefault(label, len(frames))) for label in labels_of_paths(tree)
    ]
    start = {"type": "sampled", "name": name, "unit": "nanoseconds", "startValue": 0}
    file.write(_json(start)[:-1] + b',"samples":[')
    weights: list[int] = []
    for path, _, own in paths(tree):
        if own:
            sample = ",".join([numbers[function] for function in path])
            file.write(f"{',' if weights else ''}[{sample}]".encode())
            weights.append(own)
    end = {"weights": weights, "endValue": sum(weights)}
    file.write(b"]," + _json(end)[1:])


def _frame(label: Label) -> dict[str, Any]:
    frame: dict[str, Any] = {"name": label.name}
    if label.filename is not None:
        frame["file"] = label.filename
    if label.line:
        frame["line"] = label.line
    return frame


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
