"""From code that torch.compile generates back to the model: errors, stacks and time.

Inductor makes one Python function of the whole model, which calls kernels in C++. It
also keeps which lines of that came from where, and whence asks it.

    python examples/torch_model/compiled.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch._inductor.codecache import PyCodeCache

import kernels
import whence
from finite import NotFiniteError
from scorer import WORDS, Scorer
from sources import full_name
from spent import Spent
from whence import handles
from whence.handles import LoweredError, Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from whence.handles import HandleTable


class Compiled:
    """A compiled model whose errors lead to the model's lines."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.run: Callable[..., Any] = torch.compile(model, options=kernels.OPTIONS)
        self.top = full_name(type(model))
        self.table: HandleTable | None = None  # errors know it while it is kept

    def __call__(self, *inputs: Any) -> Any:
        """Run it. What fails is a ``LoweredError``."""
        try:
            return self.run(*inputs)
        except Exception as error:
            recorder = Recorder(top=self.top)
            handle = kernels.issue(recorder, error)
            self.table = handles.install(recorder.stop())
            message = f"{type(error).__name__}: {error}"
            raise LoweredError(message, handle) from error


def fail_in_a_kernel() -> LoweredError:
    """Run it on a word that does not exist: a kernel in C++ finds out."""
    model = Compiled(Scorer())
    with torch.no_grad():
        try:
            model(torch.tensor([1, 2, WORDS]))
        except LoweredError as error:
            return error
    message = "the embedding has room for that word"
    raise AssertionError(message)


def fail_in_an_operator() -> list[whence.Frame]:
    """Break a layer: an operator in Python, called by generated code, finds out.

    Return what its stack says of the model, innermost first.
    """
    model = Scorer()
    with torch.no_grad():
        model.first.scale.fill_(torch.nan)
        try:
            compiled = torch.compile(model, options=kernels.OPTIONS)
            compiled(torch.tensor([1, 2, 3]))
        except NotFiniteError as error:
            return [frame for frame in error.stack.frames if frame.kind == "generated"]
    message = "what is no number was not found"
    raise AssertionError(message)


def where_time_went(path: Path) -> list[Spent]:
    """Return the functions that ran for the model, the longest first.

    Those of the model, and those that were generated from it.
    """
    model = Compiled(Scorer())
    text = torch.tensor([1, 2, 3])
    with torch.no_grad():
        model(text)  # this compiles, which is not what we are after
        with whence.record(path, overwrite=True):
            for _ in range(100):
                model(text)
    files = {*PyCodeCache.linemaps, sys.modules[Scorer.__module__].__file__}
    with whence.open(path) as recording:
        spent = [
            Spent(f.filename, f.line, f.name or "?", f.calls, f.total)
            for f in recording.functions
            if f.filename is not None and f.filename in files
        ]
    return sorted(spent, key=lambda function: -function.time)


def main() -> None:
    error = fail_in_a_kernel()
    print(error)
    print(*error.__notes__, sep="\n")
    print("\nWhat is no number was found at")
    for frame in fail_in_an_operator():
        print(f"  {Path(frame.filename).name}:{frame.line}")
    with tempfile.TemporaryDirectory() as folder:
        print("\nTime in the model:")
        print(*where_time_went(Path(folder, "compiled.whence")), sep="\n")


if __name__ == "__main__":
    main()
