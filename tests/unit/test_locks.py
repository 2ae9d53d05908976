"""A forked child finds every lock of ours free."""

import os
import threading

import pytest

from whence import generated
from whence._locks import ForkedLock
from whence.handles import _error, _installed

LOCKS = [
    ForkedLock(),
    ForkedLock(reentrant=True),
    generated._changing,
    _installed._changing,
    _installed._keeping,
    _error._changing,
]


def is_free(lock):
    """Try it in another thread, which may have to wait for ever."""

    def take():
        with lock:
            taken.append(True)

    taken = []
    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    thread.join(0.5)
    return taken == [True]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork() with threads
@pytest.mark.parametrize("lock", LOCKS, ids=range(len(LOCKS)))
def test_what_another_thread_held_is_free_in_a_child(lock):
    held, release = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        with lock:
            os._exit(not isinstance(lock, ForkedLock))
    try:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert not is_free(lock)  # here it is as it was
    finally:
        release.set()
        thread.join()
    assert is_free(lock)


def test_one_that_may_be_taken_again_is():
    lock = ForkedLock(reentrant=True)
    with lock, lock:
        assert not is_free(lock)
    assert is_free(lock)
