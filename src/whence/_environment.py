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
        if _is_command():
            sys.stderr.write(f"whence: {message}\n")
            raise SystemExit(2)
        raise ValueError(message)
    if choice == "public":
        _core.use_walk(choice)


def _is_command() -> bool:
    """Say whether it is our command line that imports us, and not a program."""
    name = "".join(getattr(sys, "argv", ())[:1])
    if name == "-m":  # the module is still looked for
        given = "\0".join(sys.orig_argv) + "\0"
        return "\0-m\0whence\0" in given or "\0-mwhence\0" in given
    return os.path.basename(name) == "whence"  # noqa: PTH119
