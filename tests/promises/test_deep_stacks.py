"""What an allocation costs does not depend on how deep the stack is.

Nothing that is proportional to the depth is done for each: a hundred times as deep
would be a hundred times as slow. The limit is far from that, and from what is measured.
"""

import os
import sys

import pytest

import whence
from harness import walks

pytestmark = [
    walks.fast_only("all frames are walked each time"),
    pytest.mark.skipif(
        bool(os.environ.get("WHENCE_SANITIZED")), reason="frames are too large"
    ),
]

WORK = """
import sys, time, whence
sys.setrecursionlimit(100_000)

def down(depth):
    around = [depth] * 10
    return down(depth - 1) if depth else 0

def measure(depth):
    found = []
    for _ in range(3):
        start = time.process_time_ns()
        for _ in range({deep} // depth):
            down(depth)
        found.append(time.process_time_ns() - start)
    return min(found)

with whence.record({path!r}, overwrite=True, {options}):
    measure({shallow})
    shallow = measure({shallow})
    deep = measure({deep})
print(deep / shallow)
"""


@pytest.mark.parametrize(
    "options",
    [
        "memory=True",
        "memory=True, calls=False",
        "memory=True, native=True",
        "memory=True, calls=False, native=True",
    ],
)
def test_a_recursion_that_allocates_at_every_level(run_python, tmp_path, options):
    if sys.version_info >= (3, 14):
        pytest.skip("frames have no marks there")
    path = str(tmp_path / "a.whence")
    code = WORK.format(path=path, options=options, shallow=160, deep=16_000)
    assert float(run_python(code)) < 12


def test_native_frames_of_a_stack_that_has_too_many(nested, rng):
    """Up and down around the end of what is kept: all Python frames, in their order."""

    def check():
        python = list(whence.capture(skip=1).frames)
        mixed = whence.capture(native=True, skip=1).frames
        assert [frame for frame in mixed if frame.kind == "python"] == python
        kinds = [frame.kind for frame in mixed]
        assert "unmerged" not in kinds
        last = len(kinds) - 1 - kinds[::-1].index("native")
        gap = kinds.index("truncated") if "truncated" in kinds else None
        gaps.append(gap is not None)
        if gap is not None:
            assert gap > last > 1000
            assert set(kinds[gap + 1 :]) == {"python"}

    def dive(left):
        if left % 100 == 0 or rng.random() < 0.01:
            check()
        if left:
            nested.call(lambda: dive(left - 1))
        if left % 100 == 0 or rng.random() < 0.01:
            check()
        if rng.random() < 0.005:
            nested.call(lambda: nested.call(check))

    gaps = []
    has_too_many = sys.version_info < (3, 12)  # later ones allow fewer calls from C
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        dive(2500 if has_too_many else 400)
    finally:
        sys.setrecursionlimit(limit)
    assert set(gaps) == {False, has_too_many}
