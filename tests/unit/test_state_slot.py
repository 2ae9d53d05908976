"""The thread's state is found where CPython keeps it, on every thread."""

import platform
import sys
import threading

import whence
from whence import _core

KNOWN = sys.version_info >= (3, 12) or platform.machine() == "x86_64"


def test_it_is_found():
    assert _core.state_slot_is_known() == KNOWN


def test_it_is_found_in_an_interpreter_that_is_asked_twice(run_python):
    check = "from whence import _core; print(_core.state_slot_is_known())"
    assert run_python(check) == f"{KNOWN}\n"


def test_threads_that_come_and_go_record_their_own_calls(tmp_path):
    def leaf():
        pass

    def work():
        for _ in range(10):
            leaf()

    with whence.record(tmp_path / "a.whence", gc=False) as recorder:
        for _ in range(20):
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    with whence.open(recorder.path) as recording:
        calls = [c for c in recording.calls().read() if c.function.endswith("leaf")]
    counts = {}
    for call in calls:
        counts[call.thread] = counts.get(call.thread, 0) + 1
    assert sorted(counts.values()) == [10] * 80
