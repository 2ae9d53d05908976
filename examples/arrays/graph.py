"""What is computed, without functions and names: values that other values are made of.

Nodes are compared by identity. A node that several others use is computed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

# How operations of two operands are written, in Python and in C.
SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """An array that the caller gives."""

    name: str
    is_array: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A number that stands in the source."""

    value: float
    is_array: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """What takes time and can fail, so it has a handle.

    "add", "sub", "mul" and "div" have two operands; "sum" has one. A number beside an
    array stands for as many equal elements.
    """

    op: str
    operands: tuple[Node, ...]
    handle: int
    is_array: bool


Node: TypeAlias = Input | Constant | Operation


@dataclass(frozen=True, slots=True)
class Graph:
    """A program. Operations stand behind their operands; some may be for nothing."""

    inputs: tuple[str, ...]
    operations: tuple[Operation, ...]
    result: Node
