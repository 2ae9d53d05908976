"""A recording of each outermost call of a function."""

from whence import _process, _span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from whence._record import record


class Outermost:
    """Record until what is begun here has ended, unless that recorder does already."""

    __slots__ = ("_begun", "_recorder")

    def __init__(self, recorder: "record") -> None:
        self._recorder = recorder
        self._begun = False

    def __enter__(self) -> None:
        with _process.lock:
            if _process.current is not self._recorder:
                self._recorder.start()
                self._begun = True

    def __exit__(self, *exception: object) -> None:
        if self._begun:
            self._recorder.stop()


def decorate(
    recorder: "record", function: "Callable[..., Any]"
) -> "Callable[..., Any]":
    """Return ``function`` with a recording of what each outermost call of it does."""
    return _span.put_around(lambda: Outermost(recorder), function)
