"""Reading recordings.

Nothing that a recording names is opened, imported or run. What a recording says is
decoded in native/read; modules that only reading needs are imported by what needs them.
"""

from __future__ import annotations

import os
from itertools import chain, islice

from whence import _bounds
from whence._event_list import Events
from whence._part import Part, Place, Readers, RecordingError, zstd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Self

    from whence import _core
    from whence._call_table import Calls
    from whence._events import (
        Collection,
        Counter,
        ExceptionEvent,
        Function,
        HandleEvent,
        Losses,
        Process,
        Record,
        RecordingInfo,
        Span,
        Task,
        Thread,
    )
    from whence._memory import Memory
    from whence._tree import CallTree
    from whence.handles import HandleTable

_REGULAR_FILE = 0o100000
_FILE_TYPE = 0o170000
_LEAST_LISTED = 1 << 18
_BYTES_EACH = 14
_MERGED = b"PK\x03\x04"  # what a merged recording begins with


class Recording:
    """A recording of one process or more, as ``whence.open()`` gives it.

    Iterating over it yields its records as they were written: process by process,
    metadata first, then chunk by chunk. What is damaged is left out, and counted in
    ``losses``. Times are nanoseconds since the recording began.
    """

    __slots__ = (
        "_bounds",
        "_folders",
        "_parts",
        "_path",
        "_readers",
        "_unreadable",
        "_whole",
    )

    def __init__(self, path: str, file: int) -> None:
        self._path = path
        self._bounds = _bounds.Bounds()
        self._readers: Readers | None = Readers(path, file)
        self._folders: dict[str, None] | None = None
        try:
            parts = _open_parts(self._readers, _places(path, file))
        except BaseException:
            self.close()
            raise
        self._whole = tuple(part for part in parts if part.problem is None)
        self._parts = self._whole  # a slice may have fewer
        self._unreadable = [text for part in parts if (text := part.lacking)]

    def close(self) -> None:
        """Close the file. What was read from it stays valid. A slice leaves it open."""
        if self._readers is not None:
            self._readers.close()

    def slice(
        self,
        start: int | str | None = None,
        end: int | str | None = None,
        *,
        threads: Iterable[int] | None = None,
        processes: Iterable[int] | None = None,
        timeout: float | str | None = None,
    ) -> Recording:
        """Return a part of it: a stretch of time, some of its threads and processes.

        Times are nanoseconds since the recording began, or texts like ``"1.5s"``. What
        is open at the beginning begins there, what is open at the end is cut there;
        ``threads`` and ``processes`` have the ids of ``Recording.threads`` and
        ``.processes``. Each time that the part is read, ``timeout``, in seconds or like
        ``"5s"``, ends that before the end: a call tree is then not ``complete``, a
        stream ends with a ``UserWarning``. The part reads from the same file, and is
        closed with it.
        """
        part: Recording = object.__new__(type(self))
        part._path, part._readers, part._parts = self._path, None, self._parts
        part._folders, part._unreadable = self._folders, self._unreadable
        part._whole = self._whole
        part._bounds = self._bounds.within(start, end, threads, timeout)
        if processes is not None:
            chosen = set(_bounds.ids(processes, "processes"))
            part._parts = tuple(each for each in self._parts if each.id in chosen)
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
        from whence import _processes  # noqa: PLC0415

        return _processes.info_of(self._whole, self._whole[0].file_size)

    @property
    def processes(self) -> list[Process]:
        """The processes, in the order in which they began."""
        return [part.process for part in self._parts]

    @property
    def threads(self) -> list[Thread]:
        """The threads of each process, in the order in which they were seen."""
        from whence._events import Thread  # noqa: PLC0415

        wanted = self._bounds.threads
        threads = (
            Thread(*thread, part.id)
            for part in self._chosen()
            for thread in part.reader.threads()
            if wanted is None or thread[0] in wanted
        )
        return list(islice(threads, self._most()))

    @property
    def tasks(self) -> list[Task]:
        """The tasks of event loops, as they were met. Reads the whole recording."""
        from whence import _processes  # noqa: PLC0415

        bounds = tuple(self._bounds)
        tasks = (_processes.tasks_of(part, bounds) for part in self._parts)
        return list(islice(chain.from_iterable(tasks), self._most()))

    def calls(self) -> Calls:
        """Read the calls of functions as they ended: a stream of batches."""
        from whence._call_table import Calls  # noqa: PLC0415

        return Calls(self._path, self._each_reader, self._bounds)

    def call_tree(self, *, timeout: float | str | None = None) -> CallTree:
        """Add up the calls by the path of functions that leads to them.

        After ``timeout``, in seconds or like ``"5s"``, the tree is that of what was
        read until then, and not ``complete``.
        """
        from whence._tree import CallTree  # noqa: PLC0415

        bounds = tuple(self._bounds.within(None, None, None, timeout))
        tables = (reader.tree(*bounds) for reader in self._each_reader())
        return CallTree.of_tables(tables, self._size())

    @property
    def functions(self) -> list[Function]:
        """The functions that were called, those with most time of their own first."""
        functions = self.call_tree().functions
        return sorted(functions, key=lambda function: -function.own)

    def shorten(self, filename: str) -> str:
        """Return a file's name below the folder that the program imported it from."""
        if self._folders is None:
            each = (part.folders() for part in self._parts)
            self._folders = dict.fromkeys(chain.from_iterable(each))
        fitting = (len(f) for f in self._folders if filename.startswith(f))
        return filename[max(fitting, default=0) :]

    @property
    def exceptions(self) -> Events[ExceptionEvent]:
        """Where exceptions were raised and handled."""
        from whence._events import ExceptionEvent  # noqa: PLC0415

        read = self._chained(lambda reader, bounds: reader.exceptions(*bounds))
        return Events(self._path, "exceptions", read, ExceptionEvent._make)

    @property
    def spans(self) -> Events[Span]:
        """The spans of each thread as they ended; last, those that never did."""
        from whence._events import Span  # noqa: PLC0415

        read = self._chained(lambda reader, bounds: reader.spans(*bounds))
        return Events(self._path, "spans", read, Span._make, self._bounds)

    @property
    def counters(self) -> Events[Counter]:
        """The values that counters were given."""
        from whence._events import Counter  # noqa: PLC0415

        read = self._chained(lambda reader, bounds: reader.counters(*bounds))
        return Events(self._path, "counters", read, Counter._make, self._bounds)

    @property
    def gc(self) -> Events[Collection]:
        """The runs of the garbage collector."""
        from whence._events import Collection  # noqa: PLC0415

        read = self._chained(lambda reader, bounds: reader.collections(*bounds))
        return Events(self._path, "collections", read, Collection._make, self._bounds)

    @property
    def handle_events(self) -> Events[HandleEvent]:
        """The work of lowered programs, as it was told of."""
        from whence._events import HandleEvent  # noqa: PLC0415

        read = self._chained(lambda reader, bounds: reader.handle_events(*bounds))
        make = HandleEvent._make
        return Events(self._path, "handle events", read, make, self._bounds)

    @property
    def handles(self) -> HandleTable:
        """What the handles in it stand for: the tables that were installed."""
        from whence import _processes  # noqa: PLC0415

        return _processes.handles_of(self._parts, self._path)

    @property
    def memory(self) -> Memory:
        """Questions about memory: its peak, what was never given back, ...

        Of one process: addresses of several are not the same memory.
        """
        from whence._memory import Memory  # noqa: PLC0415

        if len(self._parts) != 1:
            message = (
                "memory is that of one process: choose one of .processes by its id, "
                "as in recording.slice(processes=[1]).memory"
            )
            raise ValueError(message)
        return Memory(self._parts[0].reader, self._bounds)

    @property
    def losses(self) -> Losses:
        """What became of every event. Reads the whole recording."""
        from whence import _processes  # noqa: PLC0415

        return _processes.losses_of(part.reader.totals() for part in self._parts)

    def __iter__(self) -> Iterator[Record]:
        from whence._events import Record  # noqa: PLC0415

        readers = (part.reader for part in self._parts)
        records = chain.from_iterable(reader.records() for reader in readers)
        return map(Record._make, records)

    def _chosen(self) -> Iterator[Part]:
        """Give the parts that may have any of the threads that are asked for."""
        wanted = self._bounds.threads
        for part in self._parts:
            if wanted is None or any(map(part.place.has_thread, wanted)):
                yield part

    def _each_reader(self) -> Iterator[_core.Reader]:
        return (part.reader for part in self._chosen())

    def _chained(
        self, read: Callable[[_core.Reader, tuple[Any, ...]], Iterator[Any]]
    ) -> Callable[[], Iterator[Any]]:
        """Return what reads all processes, one after the other, within one limit."""

        def read_all() -> Iterator[Any]:
            bounds = tuple(self._bounds)
            readers = self._each_reader()
            return chain.from_iterable(read(reader, bounds) for reader in readers)

        return read_all

    def _most(self) -> int:
        """Return how many threads, or tasks, are listed: as a file of one has room for.

        Small parts can claim as many as large ones, and there may be thousands.
        """
        return max(_LEAST_LISTED, self._size() // _BYTES_EACH)

    def _size(self) -> int:
        return sum(part.header["size"] for part in self._whole)


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


def open_descriptor(name: str, descriptor: int) -> Recording:
    """Open a recording by another descriptor of its file, wherever that is now."""
    return Recording(name, os.dup(descriptor))


def _expect_regular_file(name: str, file: int) -> None:
    if os.fstat(file).st_mode & _FILE_TYPE != _REGULAR_FILE:
        message = f"{name} is not a recording: it is not a regular file"
        raise RecordingError(message)


def parts_of(recording: Recording) -> tuple[Part, ...]:
    """Return the recordings of single processes that it consists of."""
    return recording._parts  # noqa: SLF001


def has_memory(recording: Recording) -> bool:
    """Say whether memory was recorded, in one of its processes at least."""
    return any(part.reader.memory_starts() for part in recording._parts)  # noqa: SLF001


def start_of(recording: Recording) -> int:
    """Return the reading of the monotonic clock at which its times begin."""
    start: int = recording._whole[0].header["start_monotonic"]  # noqa: SLF001
    return start - recording._whole[0].place.time_shift  # noqa: SLF001


def wall_clock_of(recording: Recording) -> int:
    """Return what the monotonic clock lacks to the wall clock, in nanoseconds."""
    header = recording._whole[0].header  # noqa: SLF001
    lack: int = header["start_wall"] - header["start_monotonic"]
    return lack


def unreadable(recording: Recording) -> list[str]:
    """Say which parts of the file, or ends of them, cannot be read, and why."""
    return recording._unreadable  # noqa: SLF001


def rewrite(  # noqa: PLR0913
    recording: Recording,
    file: int,
    *,
    pack: bool = True,
    keep: int = 0,
    symbols: list[tuple[int, int, bytes, bytes, int]] | None = None,
    close: bool = True,
) -> dict[str, Any]:
    """Write what can be read of one process to an empty file; its totals.

    Chunks whose events all happened more than ``keep`` nanoseconds before the last one
    are left out, unless ``keep`` is 0. ``symbols`` name native frames anew. Without
    ``close``, the copy of one that was never closed is none that was.
    """
    (part,) = parts_of(recording)
    packer = zstd(recording._path).pack if pack else None  # noqa: SLF001
    return part.reader.rewrite(file, packer, keep, symbols or [], close)


def _places(path: str, file: int) -> list[Place]:
    if os.pread(file, len(_MERGED), 0) != _MERGED:
        return [Place()]
    from whence import _merged  # noqa: PLC0415

    return _merged.places(path, file)


def _open_parts(readers: Readers, places: list[Place]) -> list[Part]:
    """Open all of them; what can be read of some is worth more than an error."""
    parts = [Part(readers, place, number) for number, place in enumerate(places, 1)]
    if all(part.problem for part in parts):
        name = parts[0].place.name
        where = f"{readers.path}: {name}" if name else readers.path
        message = f"{where} {parts[0].problem}"
        raise RecordingError(message)
    return parts
