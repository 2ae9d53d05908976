"""What goes to the terminal. Names in a recording may hold escape sequences."""

from __future__ import annotations

import contextlib
import sys

from whence._text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_UNITS = ("bytes", "KB", "MB", "GB", "TB")
_STEP = 1000


def say(text: str, style: str = "") -> None:
    """Print one line, whatever is in it, without breaking it."""
    from rich.text import Text  # noqa: PLC0415

    from whence.cli._console import LineConsole  # noqa: PLC0415

    LineConsole().print(Text(printable(text), style=style))


def complain(message: str) -> None:
    """Print one line about what cannot be done, if there is anybody to read it."""
    if sys.stderr is None:  # which print() would take for the standard output
        return
    with contextlib.suppress(OSError, ValueError):
        print(printable(message), file=sys.stderr)  # noqa: T201


@contextlib.contextmanager
def working(text: str) -> Iterator[None]:
    """Show on a terminal that something is under way."""
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(stderr=True, highlight=False)
    shown = console.is_terminal
    with console.status(Text(printable(text))) if shown else contextlib.nullcontext():
        yield


def size(number: float) -> str:
    """Write a number of bytes for people."""
    for unit in _UNITS:
        if number < _STEP or unit == _UNITS[-1]:
            break
        number /= _STEP
    return f"{number:.0f} {unit}" if unit == _UNITS[0] else f"{number:.1f} {unit}"


def duration(nanoseconds: float) -> str:
    """Write a time for people, in three digits."""
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if nanoseconds >= 0.9995 * unit:  # so that no unit has four digits
            number = nanoseconds / unit
            digits = 2 if number < 9.995 else 1 if number < 99.95 else 0  # noqa: PLR2004
            return f"{number:,.{digits}f} {name}"
    return f"{nanoseconds:.0f} ns"


def several(number: int, one: str, more: str = "") -> str:
    """Write how many there are of something."""
    return f"{number:,} {one if number == 1 else more or f'{one}s'}"
