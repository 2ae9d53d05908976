"""The native tracer of calls, which writes straight into the recording."""

import os

from whence import _core, tracers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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
        )

    def stop(self) -> None:
        _core.stop_calls()

    def pause(self) -> None:
        _core.pause_calls()

    def resume(self) -> None:
        _core.resume_calls()

    def forget(self) -> None:
        _core.forget_calls()


tracers.register("calls", NativeCalls)
