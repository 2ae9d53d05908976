"""The native tracer of calls, which writes straight into the recording."""

import os
import sys

from whence import _core, tracers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from whence._options import Options

# Code in here is never recorded.
_OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")  # noqa: PTH100, PTH118, PTH120


class NativeCalls(tracers.CallTracer):
    """Calls of Python functions, of all threads."""

    def start(
        self,
        options: "Options",
        enter: "Callable[[int], None]",  # noqa: ARG002
    ) -> str | None:
        return _core.start_calls(
            options.include,
            options.exclude,
            _OWN,
            options.c_calls,
            options.exceptions,
            options.max_depth,
            options.min_duration,
            _tasks(),
        )

    def stop(self) -> None:
        reason = _core.stop_calls()
        if reason is not None:
            _core.tell("calls", reason)

    def pause(self) -> None:
        _core.pause_calls()

    def resume(self) -> None:
        _core.resume_calls(_tasks())

    def forget(self) -> None:
        _core.forget_calls()


def _tasks() -> "list[Any]":
    """Return the tasks of all event loops that run now."""
    if "asyncio" not in sys.modules:
        return []
    import asyncio  # noqa: PLC0415

    loops = {asyncio._get_running_loop()}  # noqa: SLF001
    run = asyncio.BaseEventLoop.run_forever.__code__
    for innermost in sys._current_frames().values():  # noqa: SLF001
        frame: FrameType | None = innermost
        while frame is not None:
            if frame.f_code is run:
                loops.add(frame.f_locals["self"])
            frame = frame.f_back
    return [task for loop in loops if loop for task in asyncio.all_tasks(loop)]


tracers.register("calls", NativeCalls)
