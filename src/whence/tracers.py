"""The seam behind which tracers stand.

A recorder does not know how calls are traced. It asks for a tracer by kind, and the
newest factory that was registered makes one. With none, or on an interpreter for which
there is none, it gets one that does nothing, and everything else works.

    class Mine(whence.tracers.CallTracer):
        def start(self, options, enter): ...

    whence.tracers.register("calls", Mine)
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, NamedTuple

    class Enter(NamedTuple):
        key: int  # whatever the tracer calls the thing that was entered
        thread: int  # the system's number
        ticks: int

    class Event(NamedTuple):
        name: str
        thread: int
        start: int  # nanoseconds since the recording began
        end: int

    Factory = Callable[[], "Any"]

__all__ = ["CallTracer", "MemoryTracer", "make", "register", "unregister"]


class CallTracer:
    """What traces calls; this one does nothing.

    A recorder calls ``start`` once, ``pause`` and ``resume`` in turns, and ``stop``
    once, which may follow ``pause``. ``stop`` and ``pause`` return when no event can
    come any more.
    """

    def start(
        self,
        options: "Any",  # noqa: ARG002
        enter: "Callable[[int], None]",  # noqa: ARG002
    ) -> str | None:
        """Begin to trace all threads. Return why not, or None.

        ``enter(key)`` notes that something was entered on this thread, now, for
        ``events``. ``options`` has what ``record()`` was asked for: ``c_calls``,
        ``exceptions``, ``include``, ``exclude``, ``max_depth`` and ``min_duration``
        (nanoseconds).
        """
        return None

    def stop(self) -> None:
        """Trace no more."""

    def pause(self) -> None:
        """Trace nothing until ``resume``."""

    def resume(self) -> None:
        """Go on after ``pause``."""

    def watch_gc(self, on: bool) -> None:  # noqa: FBT001
        """Trace runs of the garbage collector too, or no more."""

    def events(
        self,
        enters: "Sequence[Enter]",  # noqa: ARG002
        time: "Callable[[int], int]",  # noqa: ARG002
        end: int,  # noqa: ARG002
    ) -> "Iterable[Event]":
        """Return finished events, from raw enters and a function of ticks to time.

        ``enters`` are (key, thread, ticks) as ``enter`` noted them, ``time`` gives
        nanoseconds since the recording began, and ``end`` is when it ended. Whatever is
        returned is in ``record().events`` afterwards. A tracer that writes into the
        recording by itself, like the native one, returns nothing.
        """
        return ()

    def forget(self) -> None:
        """Be one that does nothing: this is a forked child, and nothing is traced."""


class MemoryTracer:
    """What traces allocations; this one does nothing."""

    def start(self, options: "Any") -> str | None:  # noqa: ARG002
        """Begin. Return why not, or None."""
        return None

    def stop(self) -> None:
        """Trace no more."""

    def export_history(self, path: str) -> None:
        """Write the history so far to ``path``."""


_BASES: "dict[str, type]" = {"calls": CallTracer, "memory": MemoryTracer}
_factories: "dict[str, list[Factory]]" = {kind: [] for kind in _BASES}


def register(kind: str, factory: "Factory") -> None:
    """Have tracers of that kind made by ``factory()`` from now on."""
    _check(kind)
    if not callable(factory):
        message = f"a factory must be something to call, not {factory!r}"
        raise TypeError(message)
    _factories[kind].append(factory)


def unregister(kind: str, factory: "Factory") -> None:
    """Forget a factory; the one before it is used again."""
    _check(kind)
    if factory not in _factories[kind]:
        message = f"{factory!r} is not registered for {kind!r}"
        raise ValueError(message)
    _factories[kind].reverse()
    _factories[kind].remove(factory)
    _factories[kind].reverse()


def make(kind: str) -> "Any":
    """Return a tracer of the newest registration, or one that does nothing."""
    _check(kind)
    factories = _factories[kind]
    return factories[-1]() if factories else _BASES[kind]()


def _check(kind: str) -> None:
    if kind not in _BASES:
        message = f"there are tracers of 'calls' and of 'memory', not of {kind!r}"
        raise ValueError(message)
