"""What goes to the terminal. Names in a recording may hold escape sequences."""

from __future__ import annotations

import contextlib
import sys

_UNITS = ("bytes", "KB", "MB", "GB", "TB")
_STEP = 1000


def printable(text: str) -> str:
    """Write everything that is not a printable character as an escape."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def say(text: str, style: str = "") -> None:
    """Print one line, whatever is in it, without breaking it."""
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    console.print(Text(printable(text), style=style))


def complain(message: str) -> None:
    """Print one line about what cannot be done, if there is anybody to read it."""
    if sys.stderr is None:  # which print() would take for the standard output
        return
    with contextlib.suppress(OSError, ValueError):
        print(printable(message), file=sys.stderr)  # noqa: T201


def size(number: float) -> str:
    """Write a number of bytes for people."""
    for unit in _UNITS:
        if number < _STEP or unit == _UNITS[-1]:
            break
        number /= _STEP
    return f"{number:.0f} {unit}" if unit == _UNITS[0] else f"{number:.1f} {unit}"
