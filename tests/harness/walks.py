"""Which walk of frames the tests run with."""

import pytest

import whence

IS_FAST = whence.statistics().walk == "fast"


def fast_only(reason):
    """Skip what there is not where frames are walked by the public API."""
    return pytest.mark.skipif(not IS_FAST, reason=f"by the public API, {reason}")


needs_stacks = pytest.mark.skipif(
    not IS_FAST, reason="memory has no stacks where frames are walked by the public API"
)
