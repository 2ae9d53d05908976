"""Stacks with native frames: every Python frame in its true place."""

import operator
import pickle
import sys
import threading
from pathlib import Path

import pytest

import whence
from harness import walks

pytestmark = walks.fast_only("the two kinds of frames are not brought together")

PYTHON, NATIVE = 1, 2
NO_LIMIT = 2**32 - 1
ROUNDS = 100  # after which the interpreter has specialised all that it will


def told(stack, module="nested"):
    """The Python functions of these tests and the native ones of the extension."""
    return [
        frame.name
        for frame in stack.frames
        if (frame.kind == "python" and frame.filename == __file__)
        or (frame.kind == "native" and frame.name.startswith(f"{module}_"))
    ]


def outside(stack):
    """The same from the first frame of a test on."""
    names = told(stack)
    (first,) = (i for i, name in enumerate(names) if name.startswith("test_"))
    return names[: first + 1]


def keep(stacks):
    stacks.append(whence.capture(native=True))


def test_python_calls_c_calls_python_calls_qsort_calls_python_three_deep(nested):
    stacks = []

    def generate(depth):
        yield nested.sort(lambda: down(depth - 1))

    def delegate(depth):
        yield from generate(depth)

    def down(depth):
        if depth == 0:
            return keep(stacks)
        return nested.call(lambda: list(delegate(depth)))

    down(3)
    level = [
        *("<lambda>", "nested_compare", "nested_sort", "generate", "delegate"),
        *("<lambda>", "nested_inner", "nested_call", "down"),
    ]
    here = "test_python_calls_c_calls_python_calls_qsort_calls_python_three_deep"
    assert outside(stacks[0]) == ["keep", "down", *level, *level, *level, here]
    kinds = {frame.kind for frame in stacks[0].frames}
    assert kinds == {"python", "native"}


def test_functions_that_call_one_another_without_c_stay_together(nested):
    stacks = []

    class Thing:
        def __init__(self):
            inner(self)

        @property
        def value(self):
            return nested.call(lambda: keep(stacks))

        def __getitem__(self, _):
            return self.value

    def inner(thing):
        return thing[0]

    Thing()
    names = outside(stacks[0])
    assert names[:4] == ["keep", "<lambda>", "nested_inner", "nested_call"]
    assert names[4:-1] == ["value", "__getitem__", "inner", "__init__"]


def test_exceptions_on_their_way_and_context_managers(nested):
    stacks = []

    class Manager:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            nested.call(lambda: keep(stacks))
            return True

    def work():
        with Manager():
            nested.sort(lambda: 1 / 0)

    work()
    assert outside(stacks[0])[:-1] == [
        *("keep", "<lambda>", "nested_inner", "nested_call", "__exit__", "work")
    ]


def test_a_coroutine_that_is_run_by_hand(nested):
    stacks = []

    class Awaitable:
        def __await__(self):
            nested.call(lambda: keep(stacks))
            yield

    async def leaf():
        await Awaitable()

    async def main():
        await leaf()

    main().send(None)
    assert outside(stacks[0])[:-1] == [
        *("keep", "<lambda>", "nested_inner", "nested_call"),
        *("__await__", "leaf", "main"),
    ]


def test_the_same_place_again_is_the_same_stack(nested):
    stacks = []
    for _ in range(100):  # the interpreter's way into a function may change
        nested.call(lambda: keep(stacks))
    assert stacks[-3] == stacks[-2] == stacks[-1]
    assert len({hash(stack) for stack in stacks[-3:]}) == 1
    assert stacks[0] != whence.capture(native=True)


def test_what_changes_between_two_captures_is_seen(nested):
    """Native frames stay where they are while Python frames below them change."""
    stacks = []

    def one():
        nested.call(lambda: keep(stacks))

    def two():
        nested.call(lambda: keep(stacks))

    def three():
        one()

    for function in (one, two, three, two, one):
        function()
        function()
    callers = [outside(stack)[4:-1] for stack in stacks]
    expected = [["one"], ["two"], ["one", "three"], ["two"], ["one"]]
    assert callers == [names for names in expected for _ in range(2)]


@pytest.mark.parametrize("calls", [True, False])
def test_python_frames_at_the_same_places_called_by_other_c(tmp_path, calls):
    """Nothing has been captured in between that would have shown the change."""
    stacks = []

    def inner(_):
        stacks.append(whence.capture(native=True))
        return 0

    class Operand:
        def __and__(self, other):
            max((1,), key=inner)
            return self

        __or__ = __xor__ = __and__

    one = Operand()

    def run(functions, look):
        for function in functions:
            function(one, one)
            if look:
                whence.capture(native=True)

    with whence.record(tmp_path / "a.whence", calls=calls):
        for look in (True, False):
            run([operator.and_, operator.or_, operator.xor] * ROUNDS, look)
    first, then = stacks[: 3 * ROUNDS], stacks[3 * ROUNDS :]
    assert len(set(first[-3:])) == 3
    assert first[-6:-3] == first[-3:]
    assert then[-3:] == first[-3:]


def test_a_thread_of_its_own(nested):
    stacks = []

    def work():
        nested.call(lambda: keep(stacks))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert told(stacks[0]) == [
        *("keep", "<lambda>", "nested_inner", "nested_call", "work")
    ]


def test_a_thread_that_python_does_not_know(nested):
    stack = nested.capture_elsewhere(0)
    assert told(stack) == ["nested_capture", "nested_thread"]
    assert {frame.kind for frame in stack.frames} == {"native"}
    skipped = nested.capture_elsewhere(1)
    assert told(skipped) == ["nested_thread"]


def test_native_frames_alone_by_the_c_api(nested):
    stack = nested.capture(NATIVE, 0, NO_LIMIT)
    assert told(stack) == ["nested_capture"]
    both = nested.capture(PYTHON | NATIVE, 0, NO_LIMIT)
    assert told(both)[:2] == [
        *("nested_capture", "test_native_frames_alone_by_the_c_api")
    ]
    assert told(nested.capture(PYTHON, 0, NO_LIMIT))[0].startswith("test_")


def test_our_own_frames_are_not_shown():
    frames = whence.capture(native=True).frames
    assert not [f for f in frames if f.kind == "native" and "/whence/" in f.filename]


def test_a_pickle_carries_the_names(nested):
    stacks = []
    nested.call(lambda: keep(stacks))
    again = pickle.loads(pickle.dumps(stacks[0]))
    assert again.frames == stacks[0].frames
    assert "nested_call" in str(again)


def test_as_json(nested):
    stacks = []
    nested.call(lambda: keep(stacks))
    text = whence.to_json(stacks)
    assert '"nested_call"' in text
    assert '"kind": "native"' in text


def test_deep_recursion_is_whole(nested):
    stacks = []
    depth = sys.getrecursionlimit() // 2

    def down(left):
        return down(left - 1) if left else nested.call(lambda: keep(stacks))

    down(depth)
    assert outside(stacks[0]).count("down") == depth + 1
    assert stacks[0].depth == len(whence.symbolize(stacks, symbols="off")[0])


def test_code_that_the_interpreter_has_compiled_or_specialised(nested):
    """A loop that is hot, by PYTHON_JIT=1 where there is a compiler."""
    stacks = []

    def leaf(number):
        if number >= 19_990:
            nested.call(lambda: keep(stacks))
        return number + 1

    def loop():
        total = 0
        for number in range(20_000):
            total += leaf(number) * 2
        return total

    loop()
    names = {tuple(outside(stack)[:-1]) for stack in stacks}
    inner = "keep", "<lambda>", "nested_inner", "nested_call", "leaf", "loop"
    assert names == {inner}
    assert {f.kind for s in stacks for f in s.frames} == {"python", "native"}


@pytest.mark.skipif(sys.version_info < (3, 13), reason="it has no compiler")
def test_all_of_this_with_the_compiler_of_the_interpreter_on(nested, run_python):
    program = f"""
        import sys
        sys.path.insert(0, {str(Path(nested.__file__).parent)!r})
        import nested, whence

        def capture():
            return whence.capture(native=True)

        def inner(n):
            for _ in range(n):
                stack = nested.call(capture)  # from code that was made at run time
            return stack

        stacks = [inner(2_000) for _ in range(50)]
        made = [f for f in stacks[-1].frames if f.filename.startswith("[anonymous")]
        known = ("capture", "nested_inner", "nested_call", "inner", "<module>")
        for stack in stacks:
            frames = stack.frames
            assert {{f.kind for f in frames}} <= {{"python", "native"}}, frames
            names = [f.name for f in frames if f.name in known]
            assert names == list(known), names
        jit = getattr(sys, "_jit", None)
        assert bool(made) == bool(jit and jit.is_enabled()), stacks[-1].frames
        print("each in its place")
    """
    assert run_python(program, env={"PYTHON_JIT": "1"}) == "each in its place\n"


@pytest.mark.parametrize("skip", range(7))
def test_what_is_skipped_is_python_frames_with_the_native_ones_inside(nested, skip):
    stacks = []

    def take():
        stacks.append(whence.capture(native=True, skip=skip))

    def middle():
        nested.call(take)

    nested.sort(middle)
    here = "test_what_is_skipped_is_python_frames_with_the_native_ones_inside"
    whole = [
        *("take", "nested_inner", "nested_call", "middle"),
        *("nested_compare", "nested_sort", here),
    ]
    starts = [0, 1, 4, 7]  # after that many Python frames
    expected = whole[starts[skip] :] if skip < len(starts) else []
    assert told(stacks[0])[: len(expected)] == expected
    assert whole[0] not in told(stacks[0]) or skip == 0
    if skip >= len(starts):
        assert here not in told(stacks[0])


@pytest.mark.parametrize("limit", [0, 1, 2, 5, 9])
def test_what_is_kept_is_frames_of_either_kind(nested, limit):
    stacks = []

    def take(most):
        stacks.append(whence.capture(native=True, limit=most))

    for most in (None, limit) * 50:  # the interpreter's way into a function may change
        nested.call(lambda most=most: take(most))
    whole, part = (whence.symbolize([s], symbols="off")[0] for s in stacks[-2:])
    assert part == whole[:limit]
    assert stacks[-1].depth == limit


@pytest.mark.skipif(sys.version_info >= (3, 15), reason="there may be no numpy yet")
def test_a_library_without_debug_information_shows_its_functions():
    import numpy as np

    stacks = []

    class Thing:
        def __lt__(self, _):
            keep(stacks)
            return False

    np.sort(np.array([Thing(), Thing()], dtype=object))
    frames = [f for f in stacks[0].frames if "numpy" in f.filename]
    inside = [f for f in frames if f.kind == "native"]
    assert inside
    assert not [f for f in inside if f.name.startswith("<")]
    assert any("sort" in f.name.lower() for f in inside)


def test_statistics(nested):
    before = whence.statistics()
    for _ in range(10):
        nested.call(lambda: whence.capture(native=True))
    after = whence.statistics()
    assert after.native_hits >= before.native_hits + 100
    assert after.native_truncated == before.native_truncated
    assert after.native_unsupported == before.native_unsupported
    assert after.native_misses >= before.native_misses
    assert after.modules >= 2
