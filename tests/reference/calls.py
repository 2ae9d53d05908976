"""Calls counted by a profile function in Python, which knows nothing of the tracer."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

Key = tuple[str, str, int]  # file, qualified name, first line


def count(run: Callable[[], object], wanted: Callable[[str], bool]) -> Counter[Key]:
    """Run it, and return how often each function was entered, resumed or thrown into.

    Only those of files that are wanted count.
    """
    counts: Counter[Key] = Counter()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and wanted(code.co_filename):
            counts[code.co_filename, code.co_qualname, code.co_firstlineno] += 1

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return counts
