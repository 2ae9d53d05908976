"""Settings from environment variables, read once, when whence is imported."""

import os
import sys

from whence import _core


def apply() -> None:
    """Obey ``WHENCE_FRAMES``: ``fast`` (the default) or ``public``."""
    if sys.flags.ignore_environment:
        return
    choice = os.environ.get("WHENCE_FRAMES", "fast")
    if choice not in ("fast", "public"):
        message = f"WHENCE_FRAMES must be 'fast' or 'public', not {choice!r}"
        raise ValueError(message)
    if choice == "public":
        _core.use_walk(choice)
