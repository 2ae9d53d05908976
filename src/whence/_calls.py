"""The native tracer of calls, which writes straight into the recording."""

import os
import sys

from whence import _core, tracers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
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
        _core.see_code(_code_of_greenlets())
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
        _core.see_code(_code_of_greenlets())
        _core.resume_calls(_tasks())

    def forget(self) -> None:
        _core.forget_calls()


def _code_of_greenlets() -> "list[CodeType]":
    """Return the code of frames that wait in greenlets, where that has to be seen."""
    greenlet = getattr(sys.modules.get("greenlet"), "greenlet", None)
    if sys.version_info < (3, 15) or not isinstance(greenlet, type):
        return []
    import gc  # noqa: PLC0415

    found = []
    for each in gc.get_objects():
        if not issubclass(type(each), greenlet):  # asks nothing of the object
            continue
        frame: FrameType | None = each.gr_frame
        while frame is not None:
            found.append(frame.f_code)
            frame = frame.f_back
    return found


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
    every = asyncio.all_tasks
    # From 3.14, what is written in C does not know of tasks written in Python.
    ways = {every, getattr(asyncio.tasks, "_py_all_tasks", every)}
    return [task for loop in loops if loop for all_of in ways for task in all_of(loop)]


tracers.register("calls", NativeCalls)
