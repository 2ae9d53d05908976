"""What a Stack is: a value."""

import copy
import pickle
import sys

import pytest

import whence


def here():
    return whence.capture()


def twice():
    return [here() for _ in range(2)]


def test_the_same_stack_is_equal_and_has_one_hash():
    first, second = twice()
    assert first == second
    assert not first != second
    assert hash(first) == hash(second)
    assert len({first, second}) == 1


def test_code_made_twice_from_one_source_is_the_same_place():
    def made():
        namespace = {"capture": whence.capture}
        exec("def f(): return capture()", namespace)
        return namespace.pop("f")()

    first, second = [made() for _ in range(2)]
    unpickled = pickle.loads(pickle.dumps(first))
    assert first == second == unpickled == first
    assert len({first, second, unpickled}) == 1


def test_equality_is_what_the_frames_say():
    class Twice:
        def __enter__(self):
            self.stacks = [whence.capture(skip=1)]
            return self

        def __exit__(self, *_):
            self.stacks.append(whence.capture(skip=1))

    with Twice() as twice:
        pass
    first, second = twice.stacks
    assert (first == second) == (first.frames == second.frames)
    assert (hash(first) == hash(second)) == (first.frames == second.frames)


def test_stacks_differ_where_an_instruction_differs():
    first, second = (here(), here())
    assert first != second
    assert first.frames[0] == second.frames[0]
    assert first.frames[1].column != second.frames[1].column


def test_origin_is_part_of_the_value():
    one, other = here(), whence.capture()
    plain, first, same, second = [
        whence.capture(origin=origin) for origin in (None, one, one, other)
    ]
    assert first == same
    assert plain != first
    assert first != second
    assert first.frames == second.frames == plain.frames


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_unpickled_stack_compares_by_its_frames(protocol):
    first, second = twice()
    other = whence.capture()
    again = [pickle.loads(pickle.dumps(s, protocol)) for s in (first, second, other)]
    assert again[0] == again[1] == first
    assert again[0] != again[2]
    assert hash(again[0]) == hash(again[1]) == hash(first)
    assert again[0].frames == first.frames
    assert again[0].depth == first.depth
    assert str(again[0]) == str(first)
    assert repr(again[0]) == repr(first)
    assert pickle.loads(pickle.dumps(again[0])) == again[0]


def test_copies_are_equal():
    stack = whence.capture(origin=here())
    assert copy.copy(stack) == stack
    assert copy.deepcopy(stack) == stack


def test_a_stack_is_not_equal_to_anything_else():
    stack = here()
    assert stack != 1
    assert stack != stack.frames
    assert (stack == None) is False  # noqa: E711


def test_generated_frames_do_not_change_what_a_stack_is():
    namespace = {"capture": whence.capture}
    exec(compile("def f():\n    return capture()\n", "<value>", "exec"), namespace)
    stack = namespace["f"]()
    plain = pickle.loads(pickle.dumps(stack))
    whence.generated.register("<value>", {2: ("origin.py", 1)})
    try:
        annotated = pickle.loads(pickle.dumps(stack))
    finally:
        whence.generated.unregister("<value>")
    assert annotated.frames[1].kind == "generated"
    assert annotated == plain == stack
    assert hash(annotated) == hash(plain) == hash(stack)
    assert annotated.depth == stack.depth


def test_repr_says_where():
    stack = here()
    line = stack.frames[0].line
    assert (
        repr(stack)
        == f"<whence.Stack, {stack.depth} frames: here at {__file__}:{line}>"
    )
    single = whence.capture(limit=1)
    assert repr(single).startswith("<whence.Stack, 1 frame: test_repr_says_where at ")


def test_a_live_stack_is_32_bytes():
    assert sys.getsizeof(here()) == 32


def test_limit_and_skip_accept_what_counts_as_an_int():
    class Two:
        def __index__(self):
            return 2

    assert whence.capture(limit=Two()).depth == 2
    assert whence.capture(limit=True).depth == 1
    assert whence.capture(limit=10**30).depth == here().depth - 1
    assert whence.capture(skip=10**30).frames == ()
    for name in ("skip", "limit"):
        with pytest.raises(ValueError, match=f"'{name}' must not be negative"):
            whence.capture(**{name: -1})

    class Broken:
        def __index__(self):
            raise LookupError("broken")

    with pytest.raises(LookupError, match="broken"):
        whence.capture(skip=Broken())


def test_errors_say_what_to_do():
    with pytest.raises(TypeError, match=r"write symbolize\(\[stack\]\)"):
        whence.symbolize(here())
    with pytest.raises(TypeError, match=r"item 1 must be a whence\.Stack, not int"):
        whence.symbolize([here(), 5])
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
        whence.capture(depth=1)
    with pytest.raises(TypeError, match="only keyword arguments"):
        whence.capture(1)


def test_a_restored_stack_gives_its_frames_back():
    frames = (whence.Frame("f", "f.py", len("f")),)  # not a constant of this code
    before = sys.getrefcount(frames)
    stack = whence._core.restore(frames, None)
    assert sys.getrefcount(frames) == before + 1
    del stack
    assert sys.getrefcount(frames) == before


def test_unpickled_stacks_of_one_batch_are_told_apart():
    stacks = [whence.capture(), whence.capture(skip=1)]
    again = pickle.loads(pickle.dumps(stacks))
    assert whence.symbolize(again) == whence.symbolize(stacks)


@pytest.mark.parametrize("native", [False, True])
def test_a_copy_is_the_stack_itself(native):
    stack = whence.capture(native=native, origin=whence.capture())
    assert copy.copy(stack) is stack
    assert copy.deepcopy([stack])[0] is stack
