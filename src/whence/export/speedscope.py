"""speedscope's own format: paths and how long each took, for all threads and for each.

Or how often each was called; or, for all threads together, how many bytes it took.

Its schema is https://www.speedscope.app/file-format-schema.json.
"""

from __future__ import annotations

import json

from whence._text import printable
from whence.export._memory import TITLES, MemoryPaths
from whence.export._metrics import resolve
from whence.export._names import UNKNOWN, labels_of_paths
from whence.export._paths import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, BinaryIO

    from whence._recording import Recording
    from whence._tree import CallTree
    from whence.export._names import Label

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
# Each thread is one more reading of the recording.
_MOST_THREADS = 64
_UNITS = {"own": "nanoseconds", "calls": "none"}


def write(recording: Recording, file: BinaryIO, metric: str | None = None) -> str:
    """Write a profile of all threads and, if there are several, one for each.

    Returns the metric of its numbers.
    """
    import whence  # noqa: PLC0415

    metric, everything = resolve(recording, metric)
    frames: dict[Label, int] = {}
    name = printable(recording.info.program or UNKNOWN)
    start = {
        "$schema": _SCHEMA,
        "exporter": f"whence@{whence.__version__}",
        "name": name,
        "activeProfileIndex": 0,
    }
    file.write(_json(start)[:-1] + b',"profiles":[')
    if everything is None:
        _write_memory(file, recording, metric, frames)
    else:
        _write_tree(file, "all threads", everything, metric, frames)
        for thread, tree in _threads(recording) if everything.complete else ():
            file.write(b",")
            _write_tree(file, thread, tree, metric, frames)
    shared = {"frames": [_frame(label) for label in frames]}
    file.write(b'],"shared":' + _json(shared) + b"}\n")
    return metric


def _threads(recording: Recording) -> list[tuple[str, CallTree]]:
    threads = recording.threads
    if not 1 < len(threads) <= _MOST_THREADS:
        return []
    processes = recording.processes
    pids = {p.id: f"process {p.pid}: " if len(processes) > 1 else "" for p in processes}
    found = [
        (
            printable(f"{pids[thread.process]}{thread.name or 'thread'} ({thread.id})"),
            recording.slice(threads=[thread.id]).call_tree(),
        )
        for thread in threads
    ]
    found = [(name, tree) for name, tree in found if len(tree)]
    return found if len(found) > 1 else []


def _write_tree(
    file: BinaryIO, name: str, tree: CallTree, metric: str, frames: dict[Label, int]
) -> None:
    labels = labels_of_paths(tree)
    of_calls = metric == "calls"
    rows = ((path, calls if of_calls else own) for path, calls, own in paths(tree))
    _write_profile(file, (name, _UNITS[metric]), rows, labels, frames)


def _write_memory(
    file: BinaryIO, recording: Recording, metric: str, frames: dict[Label, int]
) -> None:
    memory = MemoryPaths(recording)
    title, labels = (TITLES[metric], "bytes"), memory.stacks.labels
    _write_profile(file, title, memory.of(metric), labels, frames)


def _write_profile(
    file: BinaryIO,
    title: tuple[str, str],
    rows: Iterator[tuple[Sequence[int], int]],
    labels: list[Label],
    frames: dict[Label, int],
) -> None:
    name, unit = title
    start = {"type": "sampled", "name": name, "unit": unit, "startValue": 0}
    file.write(_json(start)[:-1] + b',"samples":[')
    numbers: list[str] = []
    weights: list[int] = []
    for path, weight in rows:
        numbers += [  # places may be met while paths are
            str(frames.setdefault(label, len(frames)))
            for label in labels[len(numbers) :]
        ]
        if weight:
            sample = ",".join([numbers[place] for place in path])
            file.write(f"{',' if weights else ''}[{sample}]".encode())
            weights.append(weight)
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
