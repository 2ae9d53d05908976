"""A flat program: instructions on registers, which know no source but by a handle."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch.fx.node import map_aggregate

from whence import handles
from whence.handles import LoweredError

if TYPE_CHECKING:
    from collections.abc import Callable

    from whence.handles import HandleTable

BACKEND = "registers"


@dataclass(frozen=True, slots=True)
class Register:
    """Stands for a value that is there when the instruction runs."""

    number: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """Calls something; the result goes into the next register."""

    handle: int
    name: str
    run: Callable[..., Any]
    args: Any
    kwargs: Any


@dataclass(frozen=True, slots=True)
class Program:
    """What is run. It keeps the table, so its handles are known while it is there."""

    instructions: list[Instruction]
    result: Register
    table: HandleTable

    def __call__(self, *inputs: Any) -> Any:
        """Run it. A recording, if there is one, is told how long each step took."""
        registers = list(inputs)

        def value_of(operand: Any) -> Any:
            is_register = isinstance(operand, Register)
            return registers[operand.number] if is_register else operand

        for step in self.instructions:
            args = map_aggregate(step.args, value_of)
            kwargs = map_aggregate(step.kwargs, value_of)
            start = time.perf_counter_ns()
            try:
                registers.append(step.run(*args, **kwargs))
            except Exception as error:
                message = f"{type(error).__name__}: {error}"
                raise LoweredError(message, step.handle) from error
            end = time.perf_counter_ns()
            handles.event(step.handle, start, end, step.name, BACKEND)
        return registers[self.result.number]
