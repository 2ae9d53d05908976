"""A compiled program: its kernels, the table of their handles, and how they are run."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from whence import handles
from whence.handles import HandleTable, LoweredError, Recorder

from .fusion import Kernel, fuse
from .graph import Constant, Graph, Input, Node
from .inliner import inline
from .parser import parse
from .source import Source


class Backend(Protocol):
    """Runs kernels of the program that it was made for."""

    def run(
        self,
        kernel: Kernel,
        count: int,
        out: array[float],
        operands: Sequence[array[float]],
    ) -> None:
        """Run a kernel over so many elements.

        LoweredError with the handle of the operation that failed.
        """


@dataclass(frozen=True, slots=True)
class Program:
    """What backends need, and the table, which lives as long as what it explains."""

    filename: str
    graph: Graph
    kernels: tuple[Kernel, ...]
    table: HandleTable

    def run(self, backend: Backend, **arrays: Iterable[float]) -> list[float] | float:
        """Compute the result: a list if it is an array, else a number.

        LoweredError if that is not possible.
        """
        if arrays.keys() != set(self.graph.inputs):
            wanted, given = ", ".join(self.graph.inputs), ", ".join(arrays)
            message = f"{self.filename} takes {wanted or 'nothing'}, not {given}"
            raise TypeError(message)
        inputs = {name: array("d", values) for name, values in arrays.items()}
        memory: dict[Node, array[float]] = {}

        def read(node: Node) -> array[float]:
            match node:
                case Input(name):
                    return inputs[name]
                case Constant(value):
                    return array("d", [value])
                case _:
                    return memory[node]

        for kernel in self.kernels:
            operands = [read(node) for node in kernel.operands]
            memory[kernel.result] = _run(backend, kernel, operands)
        result = self.graph.result
        return read(result).tolist() if result.is_array else read(result)[0]


def compile_text(text: str, filename: str) -> Program:
    """Compile a program, and install its table for errors and recordings."""
    source = Source(text, filename)
    source.show()
    recorder = Recorder()
    graph = inline(parse(source), recorder)
    kernels = fuse(graph, recorder)
    return Program(filename, graph, kernels, handles.install(recorder.stop()))


def _run(
    backend: Backend, kernel: Kernel, operands: Sequence[array[float]]
) -> array[float]:
    try:
        count = _count(kernel, operands) if kernel.loops_over_arrays else 1
        out = array("d", [0.0]) * (count if kernel.result.is_array else 1)
        backend.run(kernel, count, out, operands)
    except LoweredError as error:
        if kernel.handle in error.handles:  # a kernel of one operation
            raise
        raise error.push(kernel.handle)  # noqa: B904 - it is the same error
    return out


def _count(kernel: Kernel, operands: Sequence[array[float]]) -> int:
    """Return how long the arrays are; LoweredError where two lengths meet."""
    lengths: dict[Node, int] = {
        node: len(values)
        for node, values in zip(kernel.operands, operands, strict=True)
        if node.is_array
    }
    for operation in kernel.operations:
        found = [lengths[each] for each in operation.operands if each in lengths]
        if len(set(found)) > 1:
            message = f"arrays of {found[0]} and {found[1]} elements do not fit"
            raise LoweredError(message, operation.handle)
        lengths[operation] = found[0]
    return lengths[kernel.result]
