"""``whence.record``: the recording that this process makes of itself."""

import os
import sys

from whence import _core, _process
from whence._options import Options
from whence._session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Literal, Self

    from whence._cycles import Cycles
    from whence._schedule import Schedule

    Path = str | os.PathLike[str]


class record:  # noqa: N801
    """Record this process into one file, from ``start()`` to ``stop()``.

    A context manager and a decorator. The file is valid at every instant: if the
    program is killed, what it recorded until then is there.

    ``path`` is the file, ``whence-<pid>.whence`` in the current directory by default;
    an existing one is kept unless ``overwrite``. ``max_size`` (bytes, or ``"200MB"``)
    and ``keep`` (seconds, or ``"30s"``) make it a ring that keeps the newest events.
    ``pack`` packs the file when it is closed, ``chunk_size`` is what a thread takes of
    it at a time. ``dump_on`` is a list of ``"exception"``, names of signals, and spans
    like ``"span>500ms"``: each leaves a copy beside the file. ``follow`` records child
    processes too, into files beside this one.

    ``calls`` records every call of a Python function, ``c_calls`` those of C functions
    by them, ``exceptions`` where exceptions are raised and handled, ``gc`` runs of the
    garbage collector. ``memory`` records every block that Python's allocators give and
    take back, with the stack that asked for it, ``"all"`` also what libraries take from
    the C library and the system; ``memory_detail="full"`` adds the stacks of what gives
    back, ``"state"`` keeps what is in use and no history. ``memory_skip`` leaves out
    ``"allocated"``, ``"moved"``, ``"freed"``, ``"out_of_memory"`` or ``"segments"``.
    ``native`` adds the frames of C, C++ and the like to the stacks of memory.

    ``include`` and ``exclude`` are globs for files and qualified names of calls,
    ``max_depth`` is how deep calls are recorded, and calls shorter than
    ``min_duration`` that call nothing are counted instead.

    ``schedule`` chooses among the steps of a program, told by ``step()``; ``on_ready``
    is called with this recorder when a cycle of it is in its file.
    """

    def __init__(  # noqa: PLR0913
        self,
        path: "Path | None" = None,
        *,
        overwrite: bool = False,
        calls: bool = True,
        c_calls: bool = False,
        exceptions: bool = False,
        gc: bool = True,
        memory: "bool | Literal['all']" = False,
        memory_detail: str = "alloc",
        memory_skip: "Iterable[str]" = (),
        native: bool = False,
        keep: float | str | None = None,
        max_size: int | str | None = None,
        pack: bool = True,
        follow: bool = False,
        dump_on: "Iterable[str]" = (),
        include: "Iterable[str]" = (),
        exclude: "Iterable[str]" = (),
        max_depth: int | None = None,
        min_duration: float | str | None = None,
        schedule: "Schedule | None" = None,
        on_ready: "Callable[[record], object] | None" = None,
        chunk_size: int | str | None = None,
    ) -> None:
        self._wanted = None if path is None else os.fsdecode(path)
        self._options = Options(
            overwrite=overwrite,
            calls=calls,
            c_calls=c_calls,
            exceptions=exceptions,
            gc=gc,
            memory=memory,
            memory_detail=memory_detail,
            memory_skip=memory_skip,
            native=native,
            keep=keep,
            max_size=max_size,
            pack=pack,
            follow=follow,
            dump_on=dump_on,
            include=include,
            exclude=exclude,
            max_depth=max_depth,
            min_duration=min_duration,
            chunk_size=chunk_size,
        )
        self._cycles = _make_cycles(schedule)
        self._on_ready = _checked(on_ready, schedule)
        self._session: Session | None = None

    def start(self) -> "Self":
        """Begin to record.

        Raises ``RuntimeError`` if this process records already, or is past the
        functions of ``atexit``, and ``OSError`` for a path that cannot be used. If the
        machine is out of something, the program goes on, and ``reason`` says what.
        """
        _process.detach_if_forked()
        if sys.is_finalizing():
            message = "the interpreter is shutting down: nothing can be recorded now"
            raise RuntimeError(message)
        with _process.lock:
            if _process.current is not None:
                where = _process.current.path
                message = f"already recording to {where}; stop() that first"
                raise RuntimeError(message)
            _process.watch()
            if self._cycles is not None:
                _process.current = self
                self._cycles.begin(self)
            else:
                self._begin(self._wanted)
        return self

    def stop(self) -> None:
        """End the recording and close its file; once is enough, twice is no error."""
        # What is taken for this is not the program's.
        before = _core.set_answering(True)
        try:
            _process.detach_if_forked()
            with _process.lock:
                if _process.current is not self:
                    return
                try:
                    if self._cycles is not None:
                        _core.set_answering(before)
                        self._cycles.end(self)
                finally:
                    self._end()
        finally:
            _core.set_answering(before)

    def pause(self) -> None:
        """Record no calls and collections until ``resume()``; what is open ends."""
        _process.detach_if_forked()
        with _process.lock:
            if (session := self._running()) is not None:
                session.pause()

    def resume(self) -> None:
        """Go on after ``pause()``; what is open then, begins."""
        _process.detach_if_forked()
        with _process.lock:
            if (session := self._running()) is not None:
                session.resume()

    def step(self) -> None:
        """Tell that a step of the program is over: see ``whence.schedule``."""
        _process.detach_if_forked()
        with _process.lock:
            going = _process.current is self and not sys.is_finalizing()
            if going and self._cycles is not None:
                self._cycles.step(self)

    def dump(self, path: "Path", *, overwrite: bool = False) -> None:
        """Write a copy of what the recording holds now; it goes on meanwhile.

        Raises ``RuntimeError`` if it is not running, or if it is to tell what memory is
        in use and the ring is too small for that.
        """
        _process.detach_if_forked()
        with _process.lock:
            if (session := self._running()) is None:
                message = "there is nothing to dump: this recording is not running"
                raise RuntimeError(message)
            session.dump(os.fsdecode(path), overwrite=overwrite)

    @property
    def memory_detail(self) -> str:
        """What is recorded of memory: may be changed, and the history so far stays.

        But not from or to ``"state"`` while memory is recorded: that has no history.
        """
        return str(self._options.arguments["memory_detail"])

    @memory_detail.setter
    def memory_detail(self, detail: str) -> None:
        _process.detach_if_forked()
        with _process.lock:
            before, session = self.memory_detail, self._running()
            self._options.detail_memory(detail)
            if session is None or not self.memory or detail == before:
                return
            if "state" in (before, detail):
                self._options.detail_memory(before)
                message = "'state' has no history: stop() before it is changed"
                raise ValueError(message)
            session.start_memory()

    @property
    def memory(self) -> bool | str:
        """Whether memory is recorded, or ``"all"`` of it, as was asked for."""
        return self._options.memory

    @property
    def memory_skip(self) -> tuple[str, ...]:
        """The kinds of events of memory that are left out."""
        return tuple(self._options.arguments["memory_skip"])

    @property
    def path(self) -> str | None:
        """Where the recording is, or the last one was."""
        return None if self._session is None else self._session.path

    @property
    def state(self) -> str:
        """``"idle"``, ``"on"``, ``"paused"``, or ``"ended"`` early, for ``reason``.

        With a schedule, ``"waiting"`` for a step that is recorded.
        """
        if _process.current is self and self._running() is None:
            return "waiting"
        state = str(self._status().get("state", "idle"))
        paused = self._session is not None and self._session.paused
        return "paused" if state == "on" and paused else state

    @property
    def reason(self) -> str | None:
        """Why the recording ended early: ``"disk"``, ``"quota"``, ``"io"``..."""
        reason = self._status().get("reason")
        return None if reason is None else str(reason)

    @property
    def recorded(self) -> int:
        """How many events are in the recording."""
        return int(self._status().get("recorded", 0))

    @property
    def dropped(self) -> dict[str, int]:
        """How many events are not, by reason."""
        return dict(self._status().get("dropped", {}))

    @property
    def events(self) -> "list[Any]":
        """What a tracer that is not whence's own has found; see ``whence.tracers``."""
        return [] if self._session is None else self._session.events

    def __enter__(self) -> "Self":
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __call__(self, function: "Callable[..., Any]") -> "Callable[..., Any]":
        """Return ``function`` with a recording of each outermost call of it.

        That of a generator lasts from its first item to its end, that of a coroutine
        from its start to its result.
        """
        from whence import _outermost  # noqa: PLC0415

        return _outermost.decorate(self, function)

    def __repr__(self) -> str:
        return f"<whence.record {self.state} {self.path or self._wanted!r}>"

    def _status(self) -> "dict[str, Any]":
        return {} if self._session is None else self._session.status()

    def _running(self) -> Session | None:
        """Return the session, unless it is over or has not begun."""
        session = self._session if _process.current is self else None
        return session if session is not None and session.running else None

    def _begin(self, path: str | None) -> None:
        """Begin a session. One that failed for lack of something is not current."""
        # What is taken for this is not the program's, once memory is recorded, too.
        before = _core.set_answering(True)
        try:
            session = Session(self._options, path)
            session.begin()
            self._session = session
            if session.running:
                _process.current = self
                if self._options.follow:
                    from whence import _follow  # noqa: PLC0415

                    _follow.announce(session.path, self._options)
        finally:
            _core.set_answering(before)

    def _end(self) -> None:
        _process.current = None
        if self._session is not None:
            if self._options.follow:
                from whence import _follow  # noqa: PLC0415

                _follow.withdraw()
            self._session.end()

    def _discard(self) -> None:
        if self._session is not None:
            self._session.end(discard=True)

    def _finish_cycle(self) -> None:
        """Close the file of a cycle, and tell that it is there."""
        if self._session is not None:
            self._session.end()
        if self._on_ready is not None:
            self._on_ready(self)

    def _detach(self) -> None:
        session, self._session = self._session, None
        if session is None or not session.running:
            return
        path = session.path
        session.forget()
        if self._options.follow:
            from whence import _follow  # noqa: PLC0415

            _follow.start_in_child(path, self._options)


def _make_cycles(schedule: "Schedule | None") -> "Cycles | None":
    if schedule is None:
        return None
    from whence._cycles import Cycles  # noqa: PLC0415
    from whence._schedule import Schedule  # noqa: PLC0415

    if not isinstance(schedule, Schedule):
        message = f"schedule must be what whence.schedule() gives, not {schedule!r}"
        raise TypeError(message)
    return Cycles(schedule)


def _checked(on_ready: "Any", schedule: "Schedule | None") -> "Any":
    if on_ready is not None and not callable(on_ready):
        message = f"on_ready must be a function, not {on_ready!r}"
        raise TypeError(message)
    if on_ready is not None and schedule is None:
        message = "on_ready is for the cycles of a schedule: pass schedule, too"
        raise ValueError(message)
    return on_ready
