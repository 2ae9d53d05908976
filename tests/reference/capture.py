"""The slow twin of ``whence.capture()``: the same frames, through ``sys._getframe``."""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING

from whence import Frame

if TYPE_CHECKING:
    from types import CodeType, FrameType


def frames(skip: int = 0, limit: int | None = None) -> list[Frame]:
    """Return the caller's frames, innermost first."""
    found: list[Frame] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (limit is None or len(found) < limit):
        if skip:
            skip -= 1
        else:
            found.append(locate(frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return found


def locate(code: CodeType, offset: int) -> Frame:
    """Return the frame of a code object that is at an instruction."""
    line: int | None = code.co_firstlineno
    end_line, column, end_column = line, None, None
    if offset >= 0:
        positions = itertools.islice(code.co_positions(), offset // 2, None)
        line, end_line, column, end_column = next(positions)
    return Frame(
        code.co_name, code.co_filename, line, column, end_line, end_column, "python"
    )
