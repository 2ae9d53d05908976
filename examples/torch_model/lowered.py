"""From a lowered model back to its source: errors and time of a program of registers.

A model is traced by torch.fx and lowered to a flat program, which knows nothing of
modules and lines. It carries handles: an error in it explains the model's line and
modules, and so does the time of each instruction, in a recording that may be read
anywhere.

    python examples/torch_model/lowered.py
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import torch

import whence
from lowering import lower
from program import BACKEND
from scorer import WORDS, Scorer
from spent import Spent
from whence.handles import LoweredError


def fail() -> LoweredError:
    """Run it on a word that does not exist."""
    program = lower(Scorer())
    try:
        program(torch.tensor([1, 2, WORDS]))
    except LoweredError as error:
        return error
    message = "the embedding has room for that word"
    raise AssertionError(message)


def record(path: Path, *, runs: int) -> None:
    """Record some runs of the program."""
    program = lower(Scorer(width=64))
    text = torch.randint(0, WORDS, (256,))
    with torch.no_grad(), whence.record(path, overwrite=True):
        for _ in range(runs):
            program(text)


def time_by_line(path: Path) -> list[Spent]:
    """Add up the work in a recording by lines of the model, the longest first.

    What was fused counts for the first of its lines.
    """
    times: Counter[tuple[str, int | None, str]] = Counter()
    calls: Counter[tuple[str, int | None, str]] = Counter()
    with whence.open(path) as recording:
        table = recording.handles
        for event in recording.handle_events:
            innermost = table.frames(event.handle)[0]
            place = innermost.filename, innermost.line, innermost.name
            times[place] += event.duration
            calls[place] += 1
    return [Spent(*place, calls[place], time) for place, time in times.most_common()]


def work(path: Path) -> list[Spent]:
    """Return the instructions as a recording shows them among its functions."""
    with whence.open(path) as recording:
        return [
            Spent(f.filename or "?", f.line, f.name, f.calls, f.total)
            for f in recording.functions
            if f.name and f"({BACKEND})" in f.name
        ]


def main() -> None:
    error = fail()
    print(error)
    print(*error.__notes__, sep="\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lowered.whence")
        record(path, runs=100)
        print("\nTime by lines of the model:")
        print(*time_by_line(path), sep="\n")
        print("\nWork among the functions:")
        print(*work(path), sep="\n")


if __name__ == "__main__":
    main()
