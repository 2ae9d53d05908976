"""Recording of child processes: ``record(follow=True)``.

A forked child starts a recording of its own at once. A Python that is started anew, by
``subprocess`` or as a spawned process of ``multiprocessing``, finds the options in its
environment, when ``site`` reads ``whence-follow.pth``.
"""

import os
import sys

from whence import _process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whence._options import Options

_VARIABLE = "WHENCE_FOLLOW"
_announced: str | None = None


def announce(path: str, options: "Options") -> None:
    """Have programs that are started from here on record themselves, too."""
    global _announced
    import json  # noqa: PLC0415

    beside = _family(path, os.getpid())
    _announced = json.dumps({"beside": beside, **options.arguments})
    os.environ[_VARIABLE] = _announced


def withdraw() -> None:
    global _announced
    if _announced is not None and os.environ.get(_VARIABLE) == _announced:
        del os.environ[_VARIABLE]
    _announced = None


def start_in_child(path: str, options: "Options") -> None:
    """In a forked child of a recording in ``path``: begin another beside it."""
    recorder = _start(_family(path, os.getppid()), options.arguments)
    util = sys.modules.get("multiprocessing.util")
    if recorder is not None and util is not None:
        # Such a child ends without the functions of atexit.
        util.register_after_fork(
            recorder, lambda it: util.Finalize(None, it.stop, exitpriority=-1000)
        )


def start_by_environment() -> None:
    """In a program that was started by one that is followed. Raises nothing.

    Called once for each time that ``site`` finds our file, which may be twice.
    """
    text = os.environ.get(_VARIABLE)
    if not text or sys.flags.ignore_environment or _process.current is not None:
        return
    import json  # noqa: PLC0415

    try:
        arguments = json.loads(text)
        beside = arguments.pop("beside")
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return  # that is not what we have put there
    _start(beside, arguments)


def _start(beside: str, arguments: "dict[str, Any]") -> "Any":
    from whence._record import record  # noqa: PLC0415

    try:
        recorder = record(f"{beside}-{os.getpid()}.whence", follow=True, **arguments)
        return recorder.start()
    except (OSError, RuntimeError, TypeError, ValueError):
        return None  # a child is not stopped for its parent's recording


def _family(path: str, pid: int) -> str:
    """Return what the names of all files begin with, from that of one process."""
    return path.removesuffix(".whence").removesuffix(f"-{pid}")
