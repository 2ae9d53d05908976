"""A layout that is not this interpreter's is found out, without a crash."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import whence
from harness.command import one_line_of
from whence import _core


def test_the_layout_of_this_interpreter_is_trusted(run_python):
    out = run_python(
        "import whence; s = whence.statistics(); print(s.walk, s.walk_reason)",
        env={"WHENCE_FRAMES": "fast"},
    )
    assert out == "fast None\n"


def test_100_wrong_layouts_are_refused(rng):
    assert _core.test_layout(0, 0, 0, 0, 0, 0) is None
    for _ in range(100):
        moves = [rng.choice([-8, 0, 0, 8, 16, 64, 4096, 1 << 30]) for _ in range(4)]
        if not any(moves):
            moves[rng.randrange(4)] = 8
        reason = _core.test_layout(*moves, 0, 0)
        assert isinstance(reason, str), moves


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="there are no marks")
def test_a_stack_that_lies_elsewhere_is_refused():
    """Where a mark would go must be known for certain: there something is written."""
    for moves in [
        (-8, 0),
        (-4, 0),
        (64, 0),
        (0, -8),
        (0, -16),
        (0, 4096),
        (0, 1 << 30),
    ]:
        assert isinstance(_core.test_layout(0, 0, 0, 0, *moves), str), moves


def test_walks_can_be_switched_and_see_the_same():
    before = whence.statistics().walk

    def both():
        captured = []
        for walk in ("fast", "public"):
            _core.use_walk(walk)
            captured.append(whence.capture())
        return captured

    try:
        first, second = both()
        assert whence.statistics().walk == "public"
        assert whence.statistics().walk_reason == "asked for"
        assert first == second
    finally:
        _core.use_walk(before)


@pytest.mark.parametrize(("value", "walk"), [("public", "public"), ("fast", "fast")])
def test_whence_frames_chooses_the_walk(run_python, value, walk):
    out = run_python(
        "import whence; print(whence.statistics().walk)", env={"WHENCE_FRAMES": value}
    )
    assert out == walk + "\n"


def test_whence_frames_is_ignored_with_the_environment(run_python):
    out = run_python(
        "import whence; print(whence.statistics().walk)",
        args=["-E"],
        env={"WHENCE_FRAMES": "nonsense"},
    )
    assert out == "fast\n"


def test_a_bad_value_is_an_error(run_python):
    with pytest.raises(AssertionError, match="must be 'fast' or 'public', not 'slow'"):
        run_python("import whence", env={"WHENCE_FRAMES": "slow"})


def test_a_bad_value_is_one_line_of_the_command_line():
    script = Path(sys.executable).with_name("whence")
    for command in ([sys.executable, "-m", "whence"], [script]):
        done = subprocess.run(
            [*command, "doctor"],
            capture_output=True,
            text=True,
            env={**os.environ, "WHENCE_FRAMES": "slow"},
        )
        message = "WHENCE_FRAMES must be 'fast' or 'public', not 'slow'"
        assert one_line_of(done) == message
