"""``whence.record``: the recording that this process makes of itself."""

import os
import sys
from _thread import RLock

from whence import _chunk_size, _core, _units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Self

    from whence._calls import NativeCalls
    from whence._triggers import Triggers

    Path = str | os.PathLike[str]

MOST_DUMPS = 16  # of its own accord
_FILE_EXISTS = 17  # the errno; the module is not imported for it

_MOST_NUMBERS = 10_000  # of files beside each other

_lock = RLock()  # start, stop and dump take turns
_current: "record | None" = None
_process = os.getpid()  # whose the two are
_watching = False


class record:  # noqa: N801
    """Record this process into one file, from ``start()`` to ``stop()``.

    A context manager and a decorator. The file is valid at every instant: if the
    program is killed, what it recorded until then is there.

    ``path`` is the file, ``whence-<pid>.whence`` in the current directory by default;
    an existing one is kept unless ``overwrite``. ``max_size`` (bytes, or ``"200MB"``)
    and ``keep`` (seconds, or ``"30s"``) make it a ring that keeps the newest events.
    ``gc`` records runs of the garbage collector. ``pack`` packs the file when it is
    closed. ``dump_on`` is a list of ``"exception"``, names of signals, and spans like
    ``"span>500ms"``: each leaves a copy beside the file. ``chunk_size`` is what a
    thread takes of the file at a time.
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
        keep: float | str | None = None,
        max_size: int | str | None = None,
        pack: bool = True,
        dump_on: "Iterable[str]" = (),
        include: "Iterable[str]" = (),
        exclude: "Iterable[str]" = (),
        max_depth: int | None = None,
        min_duration: float | str | None = None,
        chunk_size: int | str | None = None,
    ) -> None:
        self._wanted = None if path is None else os.fsdecode(path)
        self._overwrite = overwrite
        self._gc = gc
        self._tracer = _make_tracer(
            calls=calls,
            c_calls=c_calls,
            exceptions=exceptions,
            include=include,
            exclude=exclude,
            max_depth=max_depth,
            min_duration=min_duration,
        )
        self._keep = 0 if keep is None else _units.nanoseconds(keep, "keep")
        self._max_size = 0 if max_size is None else _units.size(max_size, "max_size")
        self._chunk_size = _chunk_size.choose(chunk_size, self._max_size)
        self._pack = pack
        self._triggers = _make_triggers(dump_on)
        self._last: dict[str, Any] = {}  # status, once it has stopped
        self._dumps: list[str] = []  # that it made of its own accord
        self.path: str | None = None

    def start(self) -> "Self":
        """Begin to record.

        Raises ``RuntimeError`` if this process records already, and ``OSError`` for a
        path that cannot be used. If the machine is out of something, the program goes
        on, and ``reason`` says what.
        """
        global _current
        _detach_if_forked()
        with _lock:
            if _current is not None:
                message = f"already recording to {_current.path}; stop() that first"
                raise RuntimeError(message)
            if self._pack:
                _prepare_to_pack()
            self._last, self._dumps = {}, []
            self.path = self._open_file()
            if self._last:
                return self
            _current = self
            try:
                self._tell()
                self._put_hooks_in()
            except BaseException:
                self._give_up()
                raise
        return self

    def stop(self) -> None:
        """End the recording and close its file; once is enough, twice is no error."""
        global _current
        _detach_if_forked()
        with _lock:
            if _current is not self:
                return
            try:
                self._take_hooks_out()
            finally:
                _current = None
                file = _core.stop_recording()
                self._last = {**_core.recording_status(), "state": "idle"}
                self._finish(file)

    def dump(self, path: "Path", *, overwrite: bool = False) -> None:
        """Write a copy of what the recording holds now; it goes on meanwhile."""
        _detach_if_forked()
        with _lock:
            if _current is not self:
                message = "there is nothing to dump: this recording is not running"
                raise RuntimeError(message)
            _core.dump_recording(os.fsencode(path), overwrite)
            if self._pack:
                _pack_path(os.fsdecode(path))

    @property
    def state(self) -> str:
        """``"idle"``, ``"on"``, or ``"ended"`` early, for ``reason``."""
        return str(self._status().get("state", "idle"))

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

    def __enter__(self) -> "Self":
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __call__(self, function: "Callable[..., Any]") -> "Callable[..., Any]":
        """Return ``function`` with a recording of each outermost call of it."""
        import functools  # noqa: PLC0415

        @functools.wraps(function)
        def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
            with _lock:
                outermost = _current is not self
                if outermost:
                    self.start()
            try:
                return function(*args, **kwargs)
            finally:
                if outermost:
                    self.stop()

        return wrapper

    def __repr__(self) -> str:
        return f"<whence.record {self.state} {self.path or self._wanted!r}>"

    def _status(self) -> "dict[str, Any]":
        return _core.recording_status() if _current is self else self._last

    def _open_file(self) -> str:
        """Make the file. A name of our own choosing gives way to one that is there."""
        for number in range(1, _MOST_NUMBERS):
            path = self._wanted or _default_path(number)
            try:
                reason = _core.start_recording(
                    os.fsencode(path),
                    self._overwrite,
                    self._chunk_size,
                    self._max_size,
                    self._keep,
                )
            except FileExistsError as problem:
                if self._wanted is None and not self._overwrite:
                    continue
                message = f"{path} is there already: pass overwrite=True to replace it"
                if self._overwrite:
                    message = f"{path} is no file that could be replaced"
                raise FileExistsError(problem.errno, message) from None
            if reason is not None:
                self._last = {"state": "ended", "reason": reason}
            return os.path.abspath(path)  # noqa: PTH100
        message = "there are too many recordings here: give this one a name"
        raise FileExistsError(message)

    def _tell(self) -> None:
        """Facts about the program: its name, not its arguments."""
        import whence  # noqa: PLC0415

        name = sys.argv[0] if getattr(sys, "argv", None) else ""
        facts = {
            "program": os.path.basename(name),  # noqa: PTH119
            "python": sys.version.split()[0],
            "implementation": sys.implementation.name,
            "whence": whence.__version__,
            "platform": f"{sys.platform}-{os.uname().machine}",
        }
        for key, value in facts.items():
            _core.tell(key, value.encode("utf-8", "replace").decode())

    def _put_hooks_in(self) -> None:
        from whence import _hooks  # noqa: PLC0415

        _watch_process()
        if self._gc:
            _hooks.watch_gc()
        _hooks.watch_threads()
        if self._triggers:
            self._triggers.put_in(self._dump_by_itself)
        if self._tracer:
            self._tracer.start()

    def _take_hooks_out(self) -> None:
        if self._tracer:
            self._tracer.stop()
        from whence import _hooks  # noqa: PLC0415

        if self._triggers:
            self._triggers.take_out()
        _hooks.ignore_threads()
        _hooks.ignore_gc()

    def _dump_by_itself(self, why: str) -> None:
        """Leave a copy beside the file, to be packed later.

        What goes wrong with that is not heard of. There is no ``try`` for it: that
        would catch what a signal handler of the program's raises in here, too.
        """
        if len(self._dumps) >= MOST_DUMPS or not _lock.acquire(blocking=False):
            return
        try:
            if _current is self and self.path is not None:
                _core.mark(f"dump: {why}")
                stem = self.path.removesuffix(".whence")
                for number in range(len(self._dumps) + 1, _MOST_NUMBERS):
                    path = f"{stem}-dump-{number}.whence"
                    error = _core.try_dump(os.fsencode(path), False)  # noqa: FBT003
                    if error != _FILE_EXISTS:
                        break
                self._dumps.append("" if error else path)
        finally:
            _lock.release()

    def _finish(self, file: int) -> None:
        """Pack what is closed now: the recording, and the copies that it made."""
        try:
            if self._pack:
                for path in filter(None, self._dumps):
                    _pack_path(path)
            if self._pack and self.path is not None and file >= 0:
                _pack(file, self.path, self._keep)
        finally:
            if file >= 0:
                os.close(file)

    def _give_up(self) -> None:
        """Stop before it has begun, and leave nothing behind."""
        if self.path is not None and os.path.exists(self.path):  # noqa: PTH110
            os.unlink(self.path)  # noqa: PTH108
        self.stop()


def _make_triggers(dump_on: "Iterable[str]") -> "Triggers | None":
    if not dump_on:
        return None
    from whence._triggers import Triggers  # noqa: PLC0415

    return Triggers(dump_on)


def _make_tracer(*, calls: bool, **options: "Any") -> "NativeCalls | None":
    if not calls:
        return None
    from whence._calls import NativeCalls  # noqa: PLC0415

    return NativeCalls(**options)


def _default_path(number: int) -> str:
    suffix = "" if number == 1 else f"-{number}"
    return f"whence-{os.getpid()}{suffix}.whence"


def _prepare_to_pack() -> None:
    """Import what packing needs, now.

    A child that is forked while a thread imports it could never import it.
    """
    from whence import _packing  # noqa: PLC0415

    _packing.prepare()


def _pack(file: int, path: str, keep: int = 0) -> None:
    from whence import _packing  # noqa: PLC0415

    _packing.pack(file, path, keep)


def _pack_path(path: str) -> None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return  # somebody was faster, and has taken it away
    try:
        _pack(file, path)
    finally:
        os.close(file)


def _watch_process() -> None:
    """Stop at exit, while that is still safe; detach in forked children."""
    global _watching
    if _watching:
        return
    _watching = True
    import atexit  # noqa: PLC0415

    atexit.register(_stop_at_exit)
    os.register_at_fork(after_in_child=_detach)


def _stop_at_exit() -> None:
    """Stop, and wait for a stop() that another thread is in."""
    _detach_if_forked()
    with _lock:
        if _current is not None:
            _current.stop()


def _detach_if_forked() -> None:
    """Notice a fork that Python was not told of."""
    if os.getpid() != _process:
        _detach()


def _detach() -> None:
    """In a forked child: nothing is recorded here, and no hook of ours is left."""
    global _current, _lock, _process
    _lock = RLock()
    _process = os.getpid()
    recorder, _current = _current, None
    if recorder is not None:
        recorder._last = {}  # noqa: SLF001
        if recorder._tracer:  # noqa: SLF001
            _core.forget_calls()
        recorder._take_hooks_out()  # noqa: SLF001
