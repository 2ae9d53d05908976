"""When memory runs out, a capture says what it lost and remembers nothing wrong."""

from pathlib import Path

import pytest

import whence
from whence import _core


@pytest.fixture
def fast_walk():
    before = whence.statistics().walk
    _core.use_walk("fast")
    yield
    _core.use_walk(before)


def test_code_without_a_slot_is_lost_once_and_not_remembered(rude, fast_walk):
    out = []
    namespace = {"capture": whence.capture, "out": out, "rude": rude}
    exec(
        "def lost():\n"
        "    for first in (0, 9999):\n"
        "        rude.fail_allocations(first, first + 1)\n"
        "        stack = capture()\n"
        "        rude.allow_allocations()\n"
        "        out.append(stack)\n",
        namespace,
    )
    whence.capture()  # outer codes have their slots
    before = whence.statistics().codes_lost
    namespace["lost"]()
    assert [stack.frames[0].name for stack in out] == ["<unknown>", "lost"]
    assert whence.statistics().codes_lost == before + 1


@pytest.mark.parametrize("innermost_is_there", [True, False])
def test_a_public_walk_cut_short_says_so(run_python, rude, innermost_is_there):
    out = run_python(
        f"""
        import sys
        sys.path.insert(0, {str(Path(rude.__file__).parent)!r})
        import rude, whence

        def inner(first):
            own = sys._getframe() if {innermost_is_there} else None
            rude.fail_allocations(first, first + 1)
            stack = whence.capture()
            rude.allow_allocations()
            return [frame.kind for frame in stack.frames]

        def outer(first):
            return inner(first)

        outer(9999)  # the codes are known from here on
        print(outer(0), whence.statistics().stacks_truncated)
        """,
        env={"WHENCE_FRAMES": "public"},
    )
    assert out == "['truncated'] 1\n"


def test_any_one_allocation_may_fail(run_python, rude):
    """The first capture of new code, with each of its allocations failing in turn."""
    out = run_python(
        f"""
        import sys
        sys.path.insert(0, {str(Path(rude.__file__).parent)!r})
        import rude, whence

        def attempt(number, failing):
            namespace = {{"capture": whence.capture}}
            exec(f"def made_{{number}}(): return capture()", namespace)
            function = namespace[f"made_{{number}}"]
            rude.fail_allocations(failing, failing + 1)
            try:
                stack = function()
            except MemoryError:
                stack = None
            rude.allow_allocations()
            return stack and stack.frames[0].name

        seen = [attempt(number, number) for number in range(60)]
        good = [f"made_{{number}}" for number in range(60)]
        assert seen[-1] == good[-1]
        allowed = (None, "<unknown>", "<truncated>")
        print([s for s, g in zip(seen, good) if s != g and s not in allowed])
        """
    )
    assert out == "[]\n"
