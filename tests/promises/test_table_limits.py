"""A full table keeps what it can, and says what it could not."""

import json
import pickle
import time

import pytest

import whence
from whence import _core


@pytest.fixture
def full_table():
    whence.capture()  # the frames below the test are kept beforehand
    cap = whence.statistics().stacks_cap
    _core.set_stacks_cap(whence.statistics().stacks)
    yield
    _core.set_stacks_cap(cap)


def new_function(name):
    namespace = {"capture": whence.capture}
    exec(f"def {name}():\n    return capture()\n", namespace)
    return namespace[name]


def test_a_truncated_stack_shows_it_and_keeps_its_outer_part(full_table):
    before = whence.statistics().stacks_truncated
    stack = new_function("too_many")()
    assert stack.frames[0].kind == "truncated"
    assert stack.frames[0].name == "<truncated>"
    assert stack.frames[0].line is None
    assert "too_many" not in {frame.name for frame in stack.frames}
    assert stack.depth == len(stack.frames)
    assert "<truncated>" in str(stack)
    assert json.loads(whence.to_json([stack]))[0][0]["kind"] == "truncated"
    assert whence.statistics().stacks_truncated == before + 1
    assert hash(stack) == hash(stack)


def test_a_truncated_stack_survives_a_pickle(full_table):
    stack = new_function("cut")()
    again = pickle.loads(pickle.dumps(stack))
    assert stack.frames[0].kind == "truncated"
    assert again == stack
    assert hash(again) == hash(stack)


def test_every_truncated_capture_is_counted(full_table):
    function = new_function("again")
    before = whence.statistics().stacks_truncated
    for _ in range(100):
        function()
    assert whence.statistics().stacks_truncated == before + 100


def test_captures_are_whole_again_when_there_is_room():
    function = new_function("later")
    cap = whence.statistics().stacks_cap
    whence.capture()
    _core.set_stacks_cap(whence.statistics().stacks)
    try:
        cut = function()
    finally:
        _core.set_stacks_cap(cap)
    whole = function()
    assert cut.frames[0].kind == "truncated"
    assert whole.frames[0].name == "later"
    assert cut != whole


def test_captures_are_as_quick_as_before_after_a_truncation():
    def again(times):
        start = time.perf_counter_ns()
        for _ in range(times):
            whence.capture()
        return time.perf_counter_ns() - start

    def dive(depth):
        if depth:
            return dive(depth - 1)
        before = min(again(1000) for _ in range(5))
        cap = whence.statistics().stacks_cap
        _core.set_stacks_cap(whence.statistics().stacks)
        try:
            assert new_function("once")().frames[0].kind == "truncated"
        finally:
            _core.set_stacks_cap(cap)
        return before, min(again(1000) for _ in range(5))

    before, after = dive(500)
    assert after < 5 * before
