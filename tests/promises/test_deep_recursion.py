"""A recursion that runs plain runs under recording, and all of it is recorded."""

import os

import pytest

# Frames of a sanitized build are many times larger.
DEEP = 20_000 if os.environ.get("WHENCE_SANITIZED") else 300_000

COUNT = """
def down(depth):
    return 0 if depth == 0 else 1 + down(depth - 1)

def counted(path):
    with whence.open(path) as recording:
        calls = [call for call in recording.calls().read() if call.function == "down"]
        assert recording.losses.dropped == {}
    assert {call.left for call in calls} == {"return"}
    return len(calls)
"""


@pytest.mark.timeout(600)
def test_deep_in_the_main_thread_and_in_another(run_python, tmp_path):
    path = str(tmp_path / "a.whence")
    out = run_python(
        f"""
import sys, threading, whence
{COUNT}
sys.setrecursionlimit(10**6)
with whence.record({path!r}, pack=False):
    print(down({DEEP}))
    thread = threading.Thread(target=lambda: print(down({DEEP})))
    thread.start()
    thread.join()
print(counted({path!r}))
""",
        timeout=500,
    )
    assert [int(line) for line in out.splitlines()] == [DEEP, DEEP, 2 * (DEEP + 1)]


def test_on_a_thread_with_a_small_stack(run_python, tmp_path):
    path = str(tmp_path / "a.whence")
    out = run_python(
        f"""
import threading, whence
{COUNT}
threading.stack_size(128 * 1024)
with whence.record({path!r}, pack=False):
    thread = threading.Thread(target=lambda: print(down(900)))
    thread.start()
    thread.join()
print(counted({path!r}))
"""
    )
    assert out.split() == ["900", "901"]


def test_the_limit_comes_at_the_same_depth(run_python, tmp_path):
    out = run_python(
        f"""
import whence

def depth():
    global reached
    reached += 1
    depth()

def measure():
    global reached
    reached = 0
    try:
        depth()
    except RecursionError:
        return reached

plain = measure()
with whence.record({str(tmp_path / "a.whence")!r}):
    recorded = measure()
print(plain, recorded, measure())
"""
    )
    assert len(set(out.split())) == 1


def test_an_exception_passes_through_all_of_it(run_python, tmp_path):
    path = str(tmp_path / "a.whence")
    out = run_python(
        f"""
import sys, whence
sys.setrecursionlimit(10**6)

def down(depth):
    if depth == 0:
        raise KeyError
    down(depth - 1)

with whence.record({path!r}, pack=False):
    try:
        down(50_000)
    except KeyError:
        print("caught")
with whence.open({path!r}) as recording:
    print(sum(call.left == "unwind" for call in recording.calls().read()))
"""
    )
    assert out.split() == ["caught", "50001"]


def test_of_code_that_is_excluded(run_python, tmp_path):
    """On 3.11 it takes C stack like any other; nothing else of it is recorded."""
    path = str(tmp_path / "a.whence")
    out = run_python(
        f"""
import sys, threading, whence
{COUNT}
sys.setrecursionlimit(10**6)
run = lambda: print(down(50_000))
with whence.record({path!r}, exclude=["*"], pack=False) as recorder:
    run()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
with whence.open({path!r}) as recording:
    print(len(list(recording.calls().read())))
"""
    )
    assert out.split() == ["50000", "50000", "0"]
