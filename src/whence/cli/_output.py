"""Where the recording of a run goes."""

from __future__ import annotations

import os
import time

from whence.cli._settings import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from whence.cli._settings import Given

_MOST_NUMBERS = 10_000  # of files beside each other


def choose(given: Given, stem: str) -> Iterator[str]:
    """Give the names that it may have, the first one best.

    A name that was not asked for gives way to a file that is there: in containers each
    run may be of the same process.
    """
    if "output" in given:
        yield _expand(*given["output"])
        return
    first = f"{stem}-{os.getpid()}"
    yield f"{first}.whence"
    if "force" not in given or not given["force"][0]:
        yield from (f"{first}-{number}.whence" for number in range(2, _MOST_NUMBERS))


def _expand(template: str, source: str) -> str:
    """Put the process and the time into a name."""
    values = {"p": str(os.getpid()), "t": time.strftime("%Y%m%d-%H%M%S"), "%": "%"}
    name = ""
    rest = iter(template)
    for character in rest:
        if character != "%":
            name += character
        elif (letter := next(rest, "")) in values:
            name += values[letter]
        else:
            message = f"{source}: %{letter} is not %p, %t or %%"
            raise UsageError(message)
    if not name:
        message = f"{source}: a recording needs a name"
        raise UsageError(message)
    return name
