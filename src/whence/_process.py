"""The one recording of this process, and what becomes of it at exit and fork."""

import os
from _thread import RLock

from whence import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whence._record import record

lock = RLock()  # whoever starts, stops, pauses or dumps a recording takes turns
current: "record | None" = None
_process = os.getpid()  # whose the two are
_watching = False


def watch() -> None:
    """Stop at exit, while that is still safe; detach in forked children."""
    global _watching
    if _watching:
        return
    _watching = True
    import atexit  # noqa: PLC0415

    atexit.register(_stop_at_exit)
    os.register_at_fork(after_in_child=_detach)


def detach_if_forked() -> None:
    """Notice a fork that Python was not told of."""
    if os.getpid() != _process:
        _detach()


def _stop_at_exit() -> None:
    """Stop, and wait for a stop() that another thread is in."""
    before = _core.set_answering(True)  # what is taken for this is not the program's
    try:
        detach_if_forked()
        with lock:
            if current is not None:
                current.stop()
    finally:
        _core.set_answering(before)


def _detach() -> None:
    """In a forked child: nothing is recorded here, and no hook of ours is left."""
    global current, lock, _process
    lock = RLock()
    _process = os.getpid()
    recorder, current = current, None
    if recorder is not None:
        recorder._detach()  # noqa: SLF001
