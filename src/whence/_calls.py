"""The native tracer of calls."""

import os

from whence import _core, _units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Code in here is never recorded.
_OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")  # noqa: PTH100, PTH118, PTH120


class NativeCalls:
    """Calls of Python functions, straight into the recording."""

    def __init__(
        self,
        *,
        c_calls: bool = False,
        exceptions: bool = False,
        include: "Iterable[str]" = (),
        exclude: "Iterable[str]" = (),
        max_depth: int | None = None,
        min_duration: float | str | None = None,
    ) -> None:
        self._c_calls = c_calls
        self._exceptions = exceptions
        self._include = _patterns(include, "include")
        self._exclude = _patterns(exclude, "exclude")
        self._max_depth = 0 if max_depth is None else max_depth
        self._min_duration = (
            0
            if min_duration is None
            else _units.nanoseconds(min_duration, "min_duration")
        )

    def start(self) -> str | None:
        """Begin; the reason if it cannot."""
        return _core.start_calls(
            self._include,
            self._exclude,
            _OWN,
            self._c_calls,
            self._exceptions,
            self._max_depth,
            self._min_duration,
        )

    def stop(self) -> None:
        _core.stop_calls()

    def pause(self) -> None:
        _core.pause_calls()

    def resume(self) -> str | None:
        return _core.resume_calls()


def _patterns(patterns: "Iterable[str]", name: str) -> tuple[str, ...]:
    if isinstance(patterns, str):
        message = f"{name} must be a list of patterns, not one string"
        raise TypeError(message)
    return tuple(patterns)
