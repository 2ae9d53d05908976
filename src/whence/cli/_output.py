"""Where the recording of a run goes."""

from __future__ import annotations

import os
import time

from whence.cli._settings import UsageError


def default(stem: str) -> str:
    """Return a name in the current folder."""
    return f"{stem}-{os.getpid()}.whence"


def expand(template: str, source: str) -> str:
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
