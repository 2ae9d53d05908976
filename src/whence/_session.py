"""One recording into one file: begun, paused, copied and ended.

What a recorder does between ``start()`` and ``stop()``, or a schedule in one cycle.
"""

import os
import sys

from whence import _core, _process, _running, generated
from whence._enters import Enters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whence._options import Options

_MEMORY_FACTS = {
    "no_stacks": "memory_stacks"
}  # a fact is told once: events may go, too
MOST_DUMPS = 16  # of its own accord
_FILE_EXISTS, _ITSELF = 17, 16  # as errno; the module is not imported for them
_MOST_NUMBERS = 10_000  # of files beside each other


def tell_memory_state() -> None:
    """Have what is in use written, where no history says it."""
    if not _core.tell_memory_state():
        message = "all that is in use is more than the ring holds: raise max_size"
        raise RuntimeError(message)


class Session:
    """A recording that is being made, or was."""

    def __init__(self, options: "Options", wanted: str | None) -> None:
        self._options = options
        self._wanted = wanted
        self._dumps: list[str] = []  # that it made of its own accord
        self._status: dict[str, Any] | None = None  # once it has ended
        self._tracer = options.make_tracer()
        self._enters: Enters | None = None
        self._hooks: Any = None  # the module, once begun: later nothing is imported
        self.paused = False
        self._memory_changed = False  # while it was paused
        self.events: list[Any] = []
        self.path = ""

    def begin(self) -> None:
        if self._options.pack:
            _prepare_to_pack()
        self.path = self._open_file()
        if self._status is not None:
            return
        try:
            self._tell()
            self._put_hooks_in()
        except BaseException:
            self.end(discard=True)
            raise

    @property
    def running(self) -> bool:
        return self._status is None

    def status(self) -> "dict[str, Any]":
        return _core.recording_status() if self._status is None else self._status

    def pause(self) -> None:
        if not self.paused:
            self.paused = True
            self._tracer.pause()
            _core.pause_memory()
            self._watch_gc(on=False)

    def resume(self) -> None:
        if self.paused:
            self.paused = False
            self._watch_gc(on=True)
            self._tracer.resume()
            if self._memory_changed:
                self.start_memory()
            else:
                _core.resume_memory()

    def start_memory(self) -> "str | None":
        """Record memory as the options say, or with others from now on."""
        options = self._options
        self._memory_changed = self.paused
        if self.paused or not options.memory:
            return None
        wanted = options.memory_detail, options.memory_events
        everywhere = options.memory == "all"
        return _core.start_memory(*wanted, everywhere, options.native)

    def dump(self, path: str, *, overwrite: bool) -> None:
        tell_memory_state()
        try:
            _core.dump_recording(os.fsencode(path), overwrite)
        except FileExistsError as error:
            if not overwrite:
                raise
            message = f"{path} is no file that could be replaced"
            raise FileExistsError(error.errno, message) from None
        except OSError as error:
            if error.errno != _ITSELF:
                raise
            message = f"{path} is the recording itself: dump it to another path"
            raise ValueError(message) from None
        if self._options.pack and not sys.is_finalizing():
            _pack_path(path)

    def end(self, *, discard: bool = False) -> None:
        """Close the file; ``discard`` takes it away again."""
        if self._status is not None:
            return
        try:
            self._take_hooks_out()
            self._collect_events()
            if not discard and not sys.is_finalizing():
                generated.keep_provided()
                if self._options.native:
                    self._name_native_frames()
        finally:
            file = _core.stop_recording()
            self._status = {**_core.recording_status(), "state": "idle"}
            if discard:
                _discard(file, self.path)
            else:
                self._finish(file)

    def _name_native_frames(self) -> None:
        from whence import _native  # noqa: PLC0415

        _native.keep_symbols()

    def forget(self) -> None:
        """In a forked child: the file is the parent's."""
        _core.forget_memory()
        self._tracer.forget()
        self._take_hooks_out()
        self._status = {}

    def _open_file(self) -> str:
        """Make the file. A name of our own choosing gives way to one that is there."""
        options = self._options
        for number in range(1, _MOST_NUMBERS):
            path = self._wanted or _default_path(number)
            try:
                reason = _core.start_recording(
                    os.fsencode(path),
                    options.overwrite,
                    options.chunk_size,
                    options.max_size,
                    options.keep,
                )
            except FileExistsError as problem:
                if self._wanted is None and not options.overwrite:
                    continue
                message = f"{path} is there already: pass overwrite=True to replace it"
                if options.overwrite:
                    message = f"{path} is no file that could be replaced"
                raise FileExistsError(problem.errno, message) from None
            if reason is not None:
                self._status = {"state": "ended", "reason": reason}
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
            "clock_cost": str(_core.clock()[1]),
            "options": self._options.told(),
            **_boot(),
            **_import_path(),
        }
        for key, value in facts.items():
            _core.tell(key, value.encode("utf-8", "replace").decode())

    def _put_hooks_in(self) -> None:
        """Put calls in last, so that none of what is done here is recorded."""
        from whence import _hooks  # noqa: PLC0415

        self._hooks = _hooks
        generated.keep_line_maps()
        if handles := sys.modules.get("whence.handles._installed"):
            handles.keep_all()
        self._watch_gc(on=True)
        _hooks.watch_threads()
        if self._options.triggers:
            self._options.triggers.put_in(self._dump_by_itself)
        self._enters = Enters()
        reason = self._tracer.start(self._options, self._enters.enter)
        if reason is not None:
            _core.tell("calls", reason)
        reason = self.start_memory()
        if reason is not None:
            _core.tell(_MEMORY_FACTS.get(reason, "memory"), reason)

    def _take_hooks_out(self) -> None:
        reason = _core.stop_memory()
        if reason is not None:
            _core.tell("memory", reason)
        self._tracer.stop()
        if self._hooks is None:
            return
        if self._options.triggers:
            self._options.triggers.take_out()
        self._hooks.ignore_threads()
        self._watch_gc(on=False)

    def _collect_events(self) -> None:
        if self._enters is not None:
            enters, self._enters = self._enters, None
            end = enters.end()
            self.events = list(self._tracer.events(enters.enters, enters.time, end))

    def _watch_gc(self, *, on: bool) -> None:
        if not on:
            self._hooks.ignore_gc()
        elif self._options.gc:
            self._hooks.watch_gc()
        self._tracer.watch_gc(on and self._options.gc)

    def _dump_by_itself(self, why: str) -> None:
        """Leave a copy beside the file, to be packed later.

        What goes wrong with that is not heard of. There is no ``try`` for it: that
        would catch what a signal handler of the program's raises in here, too.
        """
        lock = _process.lock
        if len(self._dumps) >= MOST_DUMPS or not lock.acquire(blocking=False):
            return
        try:
            if self._status is None:
                _core.mark(f"dump: {why}")
                stem = self.path.removesuffix(".whence")
                for number in range(len(self._dumps) + 1, _MOST_NUMBERS):
                    path = f"{stem}-dump-{number}.whence"
                    error = _core.try_dump(os.fsencode(path), False)  # noqa: FBT003
                    if error != _FILE_EXISTS:
                        break
                self._dumps.append("" if error else path)
        finally:
            lock.release()

    def _finish(self, file: int) -> None:
        """Pack what is closed now: the recording, and the copies that it made."""
        pack = self._options.pack and not sys.is_finalizing()
        try:
            if pack:
                for path in filter(None, self._dumps):
                    _pack_path(path)
            if pack and file >= 0:
                _pack(file, self.path, self._options.keep)
        finally:
            if file >= 0:
                os.close(file)


def _boot() -> dict[str, str]:
    boot = _running.boot()
    return {} if boot is None else {"boot": boot}


def _import_path() -> dict[str, str]:
    """Return the folders that modules are found in, for shorter names of files."""
    texts = [folder for folder in sys.path if isinstance(folder, str)]
    folders = dict.fromkeys(map(os.path.abspath, texts))
    return {f"import_path_{n}": str(folder) for n, folder in enumerate(folders)}


def _default_path(number: int) -> str:
    suffix = "" if number == 1 else f"-{number}"
    return f"whence-{os.getpid()}{suffix}.whence"


def _discard(file: int, path: str) -> None:
    if file >= 0:
        os.close(file)
    if os.path.exists(path):  # noqa: PTH110
        os.unlink(path)  # noqa: PTH108


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
