"""Time that was spent on a line of a model."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Spent(NamedTuple):
    """What ran for a line, how often, and how many nanoseconds it took in all."""

    filename: str
    line: int | None
    name: str
    calls: int
    time: int

    def __str__(self) -> str:
        where = f"{Path(self.filename).name}:{self.line}"
        took = f"{self.time / 1e6:.2f} ms"
        return f"{where:15} {took:>10} {self.calls:5} x {self.name}"
