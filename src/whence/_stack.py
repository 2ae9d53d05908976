"""What a stack says in words: the Python half of ``Stack``."""

from __future__ import annotations

import linecache
import traceback

from whence import _core
from whence._symbolize import symbolize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from whence._core import Stack
    from whence._frame import Frame


def frames(stack: Stack) -> tuple[Frame, ...]:
    return tuple(symbolize([stack])[0])


class Summary(traceback.StackSummary):
    """Says no line where none is known, as of native code and some handles."""

    def format_frame_summary(
        self, frame_summary: traceback.FrameSummary, **how: Any
    ) -> str:
        if frame_summary.lineno is not None:
            return super().format_frame_summary(frame_summary, **how)
        return f'  File "{frame_summary.filename}", in {frame_summary.name}\n'


def summary(stack: Stack) -> traceback.StackSummary:
    resolved = symbolize([stack])[0]
    for filename in {frame.filename for frame in resolved}:
        linecache.checkcache(filename)
    return Summary(_frame_summary(frame) for frame in reversed(resolved))


def _frame_summary(frame: Frame) -> traceback.FrameSummary:
    return traceback.FrameSummary(
        frame.filename,
        frame.line,
        frame.name,
        lookup_line=False,
        end_lineno=frame.end_line,
        colno=frame.column,
        end_colno=frame.end_column,
    )


def format_lines(stack: Stack) -> list[str]:
    return summary(stack).format()


def text(stack: Stack) -> str:
    return "".join(format_lines(stack))


def describe(stack: Stack) -> str:
    if stack.depth == 0:
        return "<whence.Stack, empty>"
    inner = _core.resolve([stack])[0][0]
    count = "1 frame" if stack.depth == 1 else f"{stack.depth} frames"
    place = inner.filename if inner.line is None else f"{inner.filename}:{inner.line}"
    return f"<whence.Stack, {count}: {inner.name} at {place}>"


def restore(frames: tuple[Frame, ...], origin: Stack | None) -> Stack:
    """Make a stack of frames resolved elsewhere. Pickles call this by name."""
    return _core.restore(frames, origin)


def reduce(
    stack: Stack,
) -> tuple[
    Callable[[tuple[Frame, ...], Stack | None], Stack],
    tuple[tuple[Frame, ...], Stack | None],
]:
    return restore, (frames(stack), stack.origin)
