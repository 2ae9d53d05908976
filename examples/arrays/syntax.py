"""What a text says: the tree that the parser makes. All parts know their places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from whence.handles import SourceRange

from .source import Source


@dataclass(frozen=True, slots=True)
class Number:
    """A literal."""

    value: float
    range: SourceRange


@dataclass(frozen=True, slots=True)
class Name:
    """An input, a parameter, or what a `let` has named."""

    name: str
    range: SourceRange


@dataclass(frozen=True, slots=True)
class Binary:
    """Two operands, element by element: "add", "sub", "mul" or "div"."""

    op: str
    left: Expression
    right: Expression
    range: SourceRange


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of the program, or of `sum`."""

    function: str
    arguments: tuple[Expression, ...]
    range: SourceRange


Expression: TypeAlias = Number | Name | Binary | Call


@dataclass(frozen=True, slots=True)
class Function:
    """A definition. It sees its parameters and nothing else."""

    parameters: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class Module:
    """A whole text. What is named is in the order of the text."""

    source: Source
    inputs: tuple[str, ...]
    functions: dict[str, Function]
    lets: dict[str, Expression]
    result: Expression
