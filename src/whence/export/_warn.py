"""Warnings about what an export does not have."""

from __future__ import annotations

import sys
import warnings

_PACKAGE = __name__.partition(".")[0] + "."


def warn(message: str) -> None:
    """Warn whoever called into this package, however deep in it this is."""
    level = 1
    frame = sys._getframe()  # noqa: SLF001
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(message, stacklevel=level)
