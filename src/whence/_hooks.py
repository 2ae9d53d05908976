"""The hooks of a recording: put in when it starts, taken out when it ends.

Each is a pair of functions. What somebody else has put in its place since then stays.
"""

import gc
import threading

from whence import _core

_thread_hook: object = None
_thread_original: object = None
_names: dict[int, str] = {}  # by native id


def watch_gc() -> None:
    """Have the collector tell when it runs."""
    if _core.gc_event not in gc.callbacks:
        gc.callbacks.append(_core.gc_event)


def ignore_gc() -> None:
    if _core.gc_event in gc.callbacks:
        gc.callbacks.remove(_core.gc_event)


def watch_threads() -> None:
    """Meet and name the threads that run, and each new one before it does."""
    global _thread_hook, _thread_original
    if threading.Thread.__dict__.get("_bootstrap") is not _thread_hook:
        _thread_original = threading.Thread.__dict__["_bootstrap"]
        _thread_hook = _core.make_thread_hook(_thread_original)
        threading.Thread._bootstrap = _thread_hook  # type: ignore[attr-defined]  # noqa: SLF001
    _names.clear()
    name_threads()


def ignore_threads() -> None:
    """Take the hook out, if it is still ours, and tell names that have changed."""
    if _thread_hook is None:
        return
    if threading.Thread.__dict__.get("_bootstrap") is _thread_hook:
        threading.Thread._bootstrap = _thread_original  # type: ignore[attr-defined]  # noqa: SLF001
    name_threads()


def name_threads() -> None:
    """Tell the names of the threads that run, as far as they are not told yet."""
    own = threading.current_thread()
    for thread in threading.enumerate():
        # After a fork the object still has the number that it had in the parent.
        os_id = threading.get_native_id() if thread is own else thread.native_id
        if os_id is not None and _names.get(os_id) != thread.name:
            _names[os_id] = thread.name
            _core.name_thread(os_id, thread.name)
