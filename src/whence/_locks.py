"""Locks that are free in a forked child, whoever held them in its parent.

What they guard is replaced as a whole, or mended by whoever comes next, so a child may
find it in the middle of a change. No hook is needed for that: each process has a lock
of its own, made when it is first asked for.
"""

import os
from _thread import RLock, allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable


class ForkedLock:
    """A lock for a ``with`` statement in which nobody forks."""

    __slots__ = ("_by_process", "_make")

    def __init__(self, *, reentrant: bool = False) -> None:
        make = RLock if reentrant else allocate_lock
        self._make: Callable[[], LockType | RLock] = make
        self._by_process = {os.getpid(): make()}

    def __enter__(self) -> None:
        self._mine().acquire()

    def __exit__(self, *_: object) -> None:
        self._mine().release()

    def _mine(self) -> "LockType | RLock":
        process = os.getpid()
        if (lock := self._by_process.get(process)) is not None:
            return lock
        # Threads that come at the same time get the same one: this is one step.
        return self._by_process.setdefault(process, self._make())
