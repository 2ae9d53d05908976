"""Tracebacks of exceptions in which generated code shows its source."""

from __future__ import annotations

from traceback import FrameSummary, TracebackException

from whence._stack import Summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from whence._frame import Frame
    from whence.generated import Expansion


def format_exception(error: BaseException, expansion: Expansion | None) -> str:
    """Return what ``traceback`` would, with what generated frames came from.

    Outermost first, so that stands before the frame that was generated from it.
    """
    shown = TracebackException.from_exception(error)
    if expansion is not None:
        waiting = [shown]
        while waiting:
            each = waiting.pop()
            each.stack = Summary(
                f for frame in each.stack for f in _expanded(frame, expansion)
            )
            inside = [each.__cause__, each.__context__]
            waiting += filter(
                None, [*inside, *(getattr(each, "exceptions", None) or ())]
            )
    return "".join(shown.format())


def _expanded(frame: FrameSummary, expansion: Expansion) -> Iterator[FrameSummary]:
    if frame.lineno is not None:
        for origin in reversed(expansion.origins(frame.filename, frame.lineno)):
            yield _summary(origin)
    yield frame


def _summary(frame: Frame) -> FrameSummary:
    return FrameSummary(
        frame.filename,
        frame.line,
        frame.name,
        end_lineno=frame.end_line,
        colno=frame.column,
        end_colno=frame.end_column,
    )
