"""Generated C, compiled by the system's compiler and called through ctypes.

C has no exceptions. A kernel returns the handle of the operation that failed: one
integer, from which the table knows file, line, columns and calls.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path

from whence import handles
from whence.handles import LoweredError

from .fusion import Kernel
from .graph import SYMBOLS
from .program import Program

_WENT_WELL = -1  # no operation has a negative handle
# A multiplication and an addition are two roundings, as in Python, not one.
_FLAGS = ("-O2", "-shared", "-fPIC", "-ffp-contract=off")


class CBackend:
    """The kernels of a program as functions of a shared library."""

    def __init__(self, program: Program) -> None:
        head = "#include <stdint.h>\n"
        self.source = head + "".join(map(_function, program.kernels))
        library = _compile(self.source)
        self._functions: dict[str, Callable[..., int]] = {}
        for kernel in program.kernels:
            pointers = [ctypes.c_void_p] * (1 + len(kernel.operands))
            function = library[kernel.name]
            function.argtypes = [ctypes.c_int64, *pointers]
            function.restype = ctypes.c_int64
            self._functions[kernel.name] = function

    def run(
        self,
        kernel: Kernel,
        count: int,
        out: array[float],
        operands: Sequence[array[float]],
    ) -> None:
        """Run a kernel over so many elements, and tell a recording how long it took."""
        addresses = [values.buffer_info()[0] for values in (out, *operands)]
        function = self._functions[kernel.name]
        start = time.perf_counter_ns()
        failed = function(count, *addresses)
        end = time.perf_counter_ns()
        handles.event(kernel.handle, start, end, kernel.name, "c")
        if failed != _WENT_WELL:
            message = "division by zero"
            raise LoweredError(message, failed)


def _function(kernel: Kernel) -> str:
    operands = [f"const double *a{i}" for i in range(len(kernel.operands))]
    parameters = ", ".join(["int64_t n", "double *out", *operands])
    is_sum = kernel.result.op == "sum"
    result = kernel.reference(kernel.result)
    lines = [f"\nint64_t {kernel.name}({parameters}) {{"]
    if is_sum:
        lines.append("  double total = 0.0;")
    lines.append("  for (int64_t i = 0; i < n; i++) {")
    for operation in kernel.operations:
        first, *others = map(kernel.reference, operation.operands)
        if operation.op == "sum":
            lines.append(f"    total += {first};")
            continue
        (second,) = others
        if operation.op == "div":
            lines.append(f"    if ({second} == 0.0) return {operation.handle};")
        value = f"{first} {SYMBOLS[operation.op]} {second}"
        lines.append(f"    double {kernel.reference(operation)} = {value};")
    if not is_sum:
        lines.append(f"    out[i] = {result};")
    lines.append("  }")
    if is_sum:
        lines.append("  out[0] = total;")
    return "\n".join([*lines, f"  return {_WENT_WELL};", "}\n"])


def _compile(source: str) -> ctypes.CDLL:
    compiler = shutil.which("cc")
    if compiler is None:
        message = "there is no C compiler: install one that is called cc"
        raise RuntimeError(message)
    # What is preloaded is for this program, not for the compiler.
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    with tempfile.TemporaryDirectory() as folder:
        text, library = Path(folder, "kernels.c"), Path(folder, "kernels.so")
        text.write_text(source)
        command = [compiler, *_FLAGS, "-o", str(library), str(text)]
        subprocess.run(command, check=True, env=environment)  # noqa: S603
        return ctypes.CDLL(str(library))  # stays mapped without its file
