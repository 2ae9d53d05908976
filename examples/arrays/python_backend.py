"""Generated Python. Each line of it is mapped to the handle of what it is for."""

from __future__ import annotations

import itertools
import linecache
import weakref
from array import array
from collections.abc import Sequence
from typing import Any

import whence
from whence.handles import LoweredError

from .fusion import Kernel
from .graph import SYMBOLS
from .program import Program

_numbers = itertools.count(1)


class PythonBackend:
    """The kernels of a program as Python functions."""

    def __init__(self, program: Program) -> None:
        text = _Text()
        for kernel in program.kernels:
            _write(kernel, text)
        self.source = "".join(text.lines)
        # No two generated files have the same name, or one would have the other's map.
        self.filename = f"<arrays {next(_numbers)} of {program.filename}>"
        entry = (len(self.source), None, text.lines, self.filename)
        linecache.cache[self.filename] = entry
        program.table.line_map(self.filename, text.handles)
        weakref.finalize(self, _forget, self.filename)

        self._functions: dict[str, Any] = {"LoweredError": LoweredError}
        code = compile(self.source, self.filename, "exec")
        exec(code, self._functions)  # noqa: S102 - the text has only what is below

    def run(
        self,
        kernel: Kernel,
        count: int,
        out: array[float],
        operands: Sequence[array[float]],
    ) -> None:
        """Run a kernel over so many elements."""
        self._functions[kernel.name](count, out, *operands)


class _Text:
    """Lines, and the handle of each."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.handles: dict[int, int] = {}

    def add(self, line: str, handle: int) -> None:
        self.lines.append(f"{line}\n")
        self.handles[len(self.lines)] = handle


def _write(kernel: Kernel, text: _Text) -> None:
    parameters = ["n", "out", *(f"a{i}" for i in range(len(kernel.operands)))]
    text.add(f"def {kernel.name}({', '.join(parameters)}):", kernel.handle)
    is_sum = kernel.result.op == "sum"
    if is_sum:
        text.add("    total = 0.0", kernel.result.handle)
    text.add("    for i in range(n):", kernel.handle)
    for operation in kernel.operations:
        first, *others = map(kernel.reference, operation.operands)
        if operation.op == "sum":
            text.add(f"        total += {first}", operation.handle)
            continue
        (second,) = others
        if operation.op == "div":
            failure = f'raise LoweredError("division by zero", {operation.handle})'
            text.add(f"        if {second} == 0.0: {failure}", operation.handle)
        value = f"{first} {SYMBOLS[operation.op]} {second}"
        name = kernel.reference(operation)
        text.add(f"        {name} = {value}", operation.handle)
    if is_sum:
        text.add("    out[0] = total", kernel.handle)
    else:
        text.add(f"        out[i] = {kernel.reference(kernel.result)}", kernel.handle)


def _forget(filename: str) -> None:
    linecache.cache.pop(filename, None)
    whence.generated.unregister(filename)
