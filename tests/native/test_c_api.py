"""Native code that captures through whence.h."""

import threading
from pathlib import Path

import pytest

import whence


def test_capture_with_the_gil(rude):
    def inner():
        return rude.capture(), whence.capture()

    native, python = inner()
    assert [f.name for f in native.frames] == [f.name for f in python.frames]
    assert native.frames[1:] == python.frames[1:]


def test_skip_and_limit(rude):
    names = [frame.name for frame in rude.capture().frames]
    assert [frame.name for frame in rude.capture(1, 1).frames] == names[1:]
    assert [frame.name for frame in rude.capture(1, 0, 2).frames] == names[:2]
    assert rude.capture(1, 0, 0).frames == ()


def test_a_native_thread_that_attaches_has_only_its_own_frames(rude):
    def called():
        return [frame.name for frame in rude.capture().frames]

    assert rude.call_attached(called) == ["called"]


def test_a_number_that_is_no_stack_is_an_error(rude):
    with pytest.raises(ValueError, match="4294967295 is not a stack"):
        rude.stack_object(0xFFFFFFFF)
    assert rude.stack_object(0).frames == ()


def test_one_place_is_one_number_however_the_interpreter_runs_it(rude):
    """Cold and specialised instructions are at different offsets of one call."""
    seen = {}

    class Kinds:
        @property
        def value(self):
            seen.setdefault("property", set()).add(rude.capture_id())

        def __getitem__(self, key):
            seen.setdefault("item", set()).add(rude.capture_id())

        def __getattr__(self, name):
            seen.setdefault("attribute", set()).add(rude.capture_id())

        def __init__(self):
            seen.setdefault("init", set()).add(rude.capture_id())

    def generator():
        for _ in range(100):
            seen.setdefault("generator", set()).add(rude.capture_id())
            yield

    kinds = Kinds()
    seen.clear()
    for _ in range(100):
        seen.setdefault("call", set()).add(rude.capture_id())
        kinds.value
        kinds[0]
        kinds.missing
        Kinds()
    for _ in generator():
        pass
    assert {kind: len(ids) for kind, ids in seen.items()} == dict.fromkeys(
        ["call", "property", "item", "attribute", "init", "generator"], 1
    )


def test_no_alias_is_a_stack(rude):
    """Some numbers in between stand for others and are never given out."""
    for _ in range(50):
        whence.capture()
    refused = 0
    for number in range(1, whence.statistics().stacks + 1):
        try:
            stack = rude.stack_object(number)
        except ValueError:
            refused += 1
        else:
            assert stack.depth < 1 << 20
    assert refused


def test_a_subinterpreter_has_no_python_part(run_python, rude):
    out = run_python(
        f"""
        import sys
        sys.path.insert(0, {str(Path(rude.__file__).parent)!r})
        import rude
        print(rude.in_subinterpreter(), rude.capture_id() != 0)
        """
    )
    assert out == "[0, 0] True\n"


def test_threads_capture_while_they_end_and_leave_nothing(rude):
    stacks = []

    def mapped():
        return int(Path("/proc/self/statm").read_text().split()[0])

    def function():
        stacks.append(whence.capture())

    rude.ending_threads(50, function)
    before = mapped()
    rude.ending_threads(500, function)
    assert mapped() - before < 300  # pages
    assert len(stacks) == 1100
    assert {frame.name for stack in stacks for frame in stack.frames} == {"function"}


def test_captures_under_a_lock_with_and_without_the_gil_while_others_destroy(rude):
    stop = threading.Event()
    kept = []

    def churn(number):
        namespace = {"capture": whence.capture}
        while not stop.is_set():
            exec(f"def made_{number}(): return capture()", namespace)
            kept.append(namespace.pop(f"made_{number}")())
            if len(kept) > 100:
                kept.clear()

    def called():
        return whence.capture()

    threads = [threading.Thread(target=churn, args=[i]) for i in range(4)]
    for thread in threads:
        thread.start()
    try:
        assert rude.storm(4, 300, called) == (0, 0)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert all(stack.frames[0].name.startswith("made_") for stack in list(kept))
