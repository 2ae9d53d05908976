"""Reading recordings.

Nothing that a recording names is opened, imported or run. What a recording says is
decoded in native/read; modules that only reading needs are imported by what needs them.
"""

from __future__ import annotations

import os

from whence import _core
from whence._bounds import Bounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Generic, Self, TypeVar

    from whence._call_table import Calls
    from whence._events import (
        Collection,
        Counter,
        ExceptionEvent,
        Function,
        Losses,
        Record,
        RecordingInfo,
        Span,
        Task,
        Thread,
    )
    from whence._tree import CallTree

    Item = TypeVar("Item")
else:  # a base class that needs no import of typing
    Item = None

    class Generic:
        __slots__ = ()
        __class_getitem__ = classmethod(lambda cls, _: cls)


_CLOCKS = {1: "monotonic", 2: "tsc", 3: "arm_counter"}
_REGULAR_FILE = 0o100000
_FILE_TYPE = 0o170000
_LEAST_PAIRS = 1 << 17


class RecordingError(ValueError):
    """A file is not a recording, or cannot be read."""


class Events(Generic[Item]):
    """Events of one kind. Each iteration reads the recording again, chunk by chunk."""

    __slots__ = ("_bounds", "_make", "_path", "_read", "_what")

    def __init__(
        self,
        path: str,
        what: str,
        read: Callable[[], Iterator[Any]],
        make: Any,
        bounds: Bounds | None = None,  # if they are not the reader's to heed
    ) -> None:
        self._path = path
        self._what = what
        self._read = read
        self._make = make
        self._bounds = bounds

    def __iter__(self) -> Iterator[Item]:
        events = map(self._make, self._read())
        return events if self._bounds is None else filter(self._bounds.has, events)

    def __repr__(self) -> str:
        return f"<{self._what} of {self._path}>"


class _File:
    """An open file, and how its chunks are unpacked.

    The native reader holds it, and iterators hold that: so a file stays open as long as
    anybody reads from it, and no longer.
    """

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def __call__(self, packed: bytes, size: int) -> bytes:
        plain: bytes = _zstd(self._path).unpack(packed, size)
        return plain

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


class Recording:
    """A recording, as ``whence.open()`` gives it.

    Iterating over it yields its records as they were written: metadata first, then
    chunk by chunk. What is damaged is left out, and counted in ``losses``. Times are
    nanoseconds since the recording began.
    """

    __slots__ = ("_bounds", "_file", "_path", "_reader")

    def __init__(self, path: str, file: int) -> None:
        self._path = path
        self._bounds = Bounds()
        self._file: _File | None = _File(path, file)
        self._reader = _core.Reader(file, self._file)
        reason = _explain(self._reader.header())
        if reason is not None:
            self.close()
            message = f"{path} {reason}"
            raise RecordingError(message)

    def close(self) -> None:
        """Close the file. What was read from it stays valid. A slice leaves it open."""
        if self._file is not None:
            self._reader.close()
            self._file.close()

    def slice(
        self,
        start: int | str | None = None,
        end: int | str | None = None,
        *,
        threads: Iterable[int] | None = None,
    ) -> Recording:
        """Return a part of the recording: a stretch of time, and some of its threads.

        Times are nanoseconds since the recording began, or texts like ``"1.5s"``. What
        is open at the beginning begins there, what is open at the end is cut there;
        ``threads`` has the ids of ``Recording.threads``. The part reads from the same
        file, and is closed with it.
        """
        part: Recording = object.__new__(type(self))
        part._path, part._reader, part._file = self._path, self._reader, None
        part._bounds = self._bounds.within(start, end, threads)
        return part

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<whence.Recording {self._path}>"

    @property
    def info(self) -> RecordingInfo:
        """What the recording says about itself."""
        from datetime import datetime, timedelta, timezone  # noqa: PLC0415

        from whence._events import RecordingInfo  # noqa: PLC0415

        header = self._reader.header()
        state = header["state"]
        start = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017
        return RecordingInfo(
            path=self._path,
            version="{}.{}".format(*header["version"]),
            file_id=header["file_id"].hex(),
            pid=header["pid"],
            program=self._reader.info("program"),
            python=self._reader.info("python"),
            whence=self._reader.info("whence"),
            start=start + timedelta(microseconds=header["start_wall"] // 1000),
            duration=header["duration"],
            clock=_CLOCKS.get(header["clock"], "unknown"),
            chunk_size=header["chunk_size"],
            size=header["size"],
            packed=header["packed"],
            closed=header["closed"],
            ended=header["reason"] if state == "ended" else None,
            error=(header["error"] or None) if state == "ended" else None,
            calls=self._reader.info("calls"),
        )

    @property
    def threads(self) -> list[Thread]:
        """The threads of the program, in the order in which they were seen."""
        from whence._events import Thread  # noqa: PLC0415

        wanted = self._bounds.threads
        threads = (Thread(*thread) for thread in self._reader.threads())
        return [t for t in threads if wanted is None or t.id in wanted]

    @property
    def tasks(self) -> list[Task]:
        """The tasks of event loops, as they were met. Reads the whole recording."""
        from whence._events import Task  # noqa: PLC0415

        known = self._reader.tasks()
        # A file can claim any number of them; a real one has no more than it has bytes.
        most = max(_LEAST_PAIRS, 2 * self._reader.header()["size"])
        pairs: dict[tuple[int, int], None] = {}  # each once, in their order
        for pair in self._reader.awaits() if known else ():
            if len(pairs) == most:
                break
            if all(pair):  # else a task that nobody has told of
                pairs[pair] = None
        awaits: dict[int, list[int]] = {}
        awaited_by: dict[int, list[int]] = {}
        for task, awaited in pairs:
            awaits.setdefault(task, []).append(awaited)
            awaited_by.setdefault(awaited, []).append(task)
        return [
            Task(
                *task,
                tuple(awaits.get(task[0], ())),
                tuple(awaited_by.get(task[0], ())),
            )
            for task in known
        ]

    def calls(self) -> Calls:
        """Read the calls of functions as they ended: a stream of batches."""
        from whence._call_table import Calls  # noqa: PLC0415

        return Calls(self._path, self._reader, self._bounds)

    def call_tree(self) -> CallTree:
        """Add up the calls by the path of functions that leads to them."""
        from whence._tree import CallTree  # noqa: PLC0415

        return CallTree(self._reader.tree(*self._bounds))

    @property
    def functions(self) -> list[Function]:
        """The functions that were called, those with most time of their own first."""
        functions = self.call_tree().functions
        return sorted(functions, key=lambda function: -function.own)

    def shorten(self, filename: str) -> str:
        """Return a file's name below the folder that the program imported it from."""
        longest = number = 0
        while folder := self._reader.info(f"import_path_{number}"):
            number += 1
            start = folder.rstrip("/") + "/"
            if filename.startswith(start):
                longest = max(longest, len(start))
        return filename[longest:]

    @property
    def exceptions(self) -> Events[ExceptionEvent]:
        """Where exceptions were raised and handled."""
        from whence._events import ExceptionEvent  # noqa: PLC0415

        read = self._reader.exceptions
        make = ExceptionEvent._make
        return Events(self._path, "exceptions", lambda: read(*self._bounds), make)

    @property
    def spans(self) -> Events[Span]:
        """The spans of each thread as they ended; last, those that never did."""
        from whence._events import Span  # noqa: PLC0415

        make = Span._make
        return Events(self._path, "spans", self._reader.spans, make, self._bounds)

    @property
    def counters(self) -> Events[Counter]:
        """The values that counters were given."""
        from whence._events import Counter  # noqa: PLC0415

        make = Counter._make
        return Events(self._path, "counters", self._reader.counters, make, self._bounds)

    @property
    def gc(self) -> Events[Collection]:
        """The runs of the garbage collector."""
        from whence._events import Collection  # noqa: PLC0415

        read, make = self._reader.collections, Collection._make
        return Events(self._path, "collections", read, make, self._bounds)

    @property
    def losses(self) -> Losses:
        """What became of every event. Reads the whole recording."""
        from whence._events import Losses  # noqa: PLC0415

        totals = self._reader.totals()
        names = totals["names"] + totals["names_left_out"]
        return Losses(totals["produced"], totals["recorded"], totals["dropped"], names)

    def __iter__(self) -> Iterator[Record]:
        from whence._events import Record  # noqa: PLC0415

        return map(Record._make, self._reader.records())


def open(path: str | os.PathLike[str]) -> Recording:  # noqa: A001
    """Open a recording.

    It may still be written to, may never have been closed and may be damaged: what can
    be read is read. Close it with ``close()``, or use it in a ``with`` statement.
    Raises ``RecordingError`` if the file is no recording, or cannot be read by this
    version.
    """
    name = os.fspath(path)
    if not isinstance(name, str):
        name = os.fsdecode(name)
    # Without waiting: whoever opens a pipe by mistake would wait for ever.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
    file = os.open(name, flags)
    try:
        _expect_regular_file(name, file)
    except BaseException:
        os.close(file)
        raise
    return Recording(name, file)


def _expect_regular_file(name: str, file: int) -> None:
    if os.fstat(file).st_mode & _FILE_TYPE != _REGULAR_FILE:
        message = f"{name} is not a recording: it is not a regular file"
        raise RecordingError(message)


def totals(recording: Recording) -> dict[str, Any]:
    """Count everything in a recording, and list its problems."""
    return recording._reader.totals()  # noqa: SLF001


def rewrite(
    recording: Recording, file: int, *, pack: bool = True, keep: int = 0
) -> dict[str, Any]:
    """Write what can be read to an empty file, closed; its totals.

    Chunks whose events all happened more than ``keep`` nanoseconds before the last one
    are left out, unless ``keep`` is 0.
    """
    packer = _zstd(recording._path).pack if pack else None  # noqa: SLF001
    return recording._reader.rewrite(file, packer, keep)  # noqa: SLF001


def _explain(header: dict[str, Any]) -> str | None:
    """Say why a file cannot be read, if so."""
    opened = header["opened"]
    if opened == "good":
        return None
    if opened == "not_a_recording":
        return "is not a recording" if header["size"] else "is not a recording: empty"
    if opened == "too_new":
        version = "{}.{}".format(*header["version"])
        return (
            f"was written by a newer whence (format {version}); "
            "upgrade whence to read it"
        )
    if opened == "cut_short":
        return "is a recording cut off within its header: nothing of it can be read"
    return "is a recording with a damaged header: nothing of it can be read"


def _zstd(path: str) -> Any:
    try:
        from whence import _zstd  # noqa: PLC0415
    except ImportError:
        import sys  # noqa: PLC0415

        need = "backports.zstd is not installed: pip install backports.zstd"
        if sys.version_info >= (3, 14):
            need = "this Python was built without it: use one that has compression.zstd"
        message = f"{path} is packed with zstd, and {need}"
        raise RecordingError(message) from None
    return _zstd
