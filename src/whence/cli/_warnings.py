"""What is warned of while a verb reads a recording."""

from __future__ import annotations

import contextlib
import warnings

from whence import _recording
from whence._text import shell_word
from whence.cli import _reasons
from whence.cli._terminal import complain, several

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from whence._recording import Recording


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Say on stderr, in one line each, what was warned of in the meantime."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    told: set[str] = set()
    for warning in caught:
        # Several readings may end by one time limit, each at a time of its own.
        what = str(warning.message).partition(",")[0]
        if what not in told:
            told.add(what)
            complain(f"whence: {warning.message}")


def complain_of_losses(path: str, recording: Recording) -> None:
    """Say in one line that something is missing. Reads the whole recording."""
    problems = names = 0
    dropped: dict[str, int] = {}
    for part in _recording.parts_of(recording):
        totals = part.reader.totals()
        problems += len(totals["problems"])
        names += totals["names"] + totals["names_left_out"]
        for reason, events in totals["dropped"].items():
            dropped[reason] = dropped.get(reason, 0) + events
    found = ["it is damaged"] if problems else []
    found += [
        f"{several(events, 'event')} dropped ({reason})"
        for reason, events in dropped.items()
    ]
    found += _reasons.unnamed(names)
    if found:
        look = f"whence verify {shell_word(path)}"
        complain(f"whence: not all is in it: {', '.join(found)}: {look}")
