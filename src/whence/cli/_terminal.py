"""What goes to the terminal. Names in a recording may hold escape sequences."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

_UNITS = ("bytes", "KB", "MB", "GB", "TB")
_STEP = 1000


def printable(text: str) -> str:
    """Write everything that is not a printable character as an escape."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def say(text: str, style: str = "") -> None:
    """Print one line, whatever is in it, without breaking it."""
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    console.print(Text(printable(text), style=style))


def size(number: float) -> str:
    """Write a number of bytes for people."""
    for unit in _UNITS:
        if number < _STEP or unit == _UNITS[-1]:
            break
        number /= _STEP
    return f"{number:.0f} {unit}" if unit == _UNITS[0] else f"{number:.1f} {unit}"
