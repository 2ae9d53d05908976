"""The recording of one process: a file, or a part of a merged one.

What a part says of itself is asked for once, when it is opened. All else is read by the
native reader, which is made when it is needed: a file may have thousands of parts.
"""

from __future__ import annotations

import os
from _thread import RLock

from whence import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whence._events import Process, RecordingInfo

_CLOCKS = {1: "monotonic", 2: "tsc", 3: "arm_counter"}
_OF_MEMORY = ("memory", "memory_stacks")
_FACTS = ("program", "python", "whence", "calls", "handles", *_OF_MEMORY)
_MOST_READERS = 4
_LONGEST_FACT = 4_096  # of a text that is kept for every part
_MOST_FOLDERS = 1_000
_EVERYTHING = 2**64 - 1
_MISSING = "is missing: the file ends before it"
_GENERATORS = 1 << 40  # what the numbers of generators of two parts are apart


class RecordingError(ValueError):
    """A file is not a recording, or cannot be read."""


class Place:
    """Where in a file a recording lies, and what is added to what it says."""

    __slots__ = (
        "lacks",
        "last_thread",
        "name",
        "offset",
        "size",
        "task_base",
        "thread_base",
        "time_shift",
    )

    def __init__(  # noqa: PLR0913
        self,
        name: str = "",
        offset: int = 0,
        size: int = _EVERYTHING,
        *,
        time_shift: int = 0,
        thread_base: int = 0,
        task_base: int = 0,
        lacks: int = 0,
    ) -> None:
        self.name = name  # of the part; empty for a file that is one recording
        self.offset = offset
        self.size = size
        self.time_shift = time_shift
        self.thread_base = thread_base
        self.last_thread: int | None = None  # None: it has all there are
        self.task_base = task_base
        self.lacks = lacks  # bytes, that the file had no longer when it was cut

    def has_thread(self, id_: int) -> bool:
        return self.last_thread is None or self.thread_base < id_ <= self.last_thread


class Readers:
    """An open file and the native readers of its parts, of which the last few stay.

    Each holds a descriptor of its own, and iterators hold the reader: whoever reads on
    from one that went does so safely.
    """

    __slots__ = ("_descriptor", "_kept", "_lock", "path")

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._kept: dict[int, _core.Reader] = {}  # the one used last comes last
        self._lock = RLock()

    @property
    def size(self) -> int:
        """How many bytes the file has."""
        self.expect_open()
        return os.fstat(self._descriptor).st_size

    def expect_open(self) -> None:
        if self._descriptor < 0:
            message = "the recording is closed"
            raise ValueError(message)

    def duplicate(self) -> int:
        self.expect_open()
        return os.dup(self._descriptor)

    def of(self, part: Part) -> _core.Reader:
        with self._lock:
            self.expect_open()
            reader = self._kept.pop(part.id, None)
            if reader is None:
                while len(self._kept) >= _MOST_READERS:
                    del self._kept[next(iter(self._kept))]
                reader = self._open(part)
            self._kept[part.id] = reader
            return reader

    def _open(self, part: Part) -> _core.Reader:
        file = _File(self.path, self.duplicate())
        place = part.place
        shifts = place.time_shift, place.thread_base, place.task_base
        generators = (part.id - 1) * _GENERATORS
        where = place.offset, place.size
        return _core.Reader(file.descriptor, file, *where, *shifts, generators)

    def close(self) -> None:
        with self._lock:
            for reader in self._kept.values():
                reader.close()
            self._kept.clear()
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                os.close(descriptor)

    def __del__(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class _File:
    """An open file, and how its chunks are unpacked; the native reader holds it."""

    __slots__ = ("_path", "descriptor")

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self.descriptor = descriptor

    def __call__(self, packed: bytes, size: int, *is_cut: bool) -> bytes:
        plain: bytes = zstd(self._path).unpack(packed, size, *is_cut)
        return plain

    def __del__(self) -> None:
        os.close(self.descriptor)


class Part:
    """One process of a recording. ``problem`` says why it cannot be read, if so."""

    __slots__ = ("_facts", "_header", "_readers", "id", "place", "problem")

    def __init__(self, readers: Readers, place: Place, id_: int) -> None:
        self._readers = readers
        self.place = place
        self.id = id_
        self._header = self.reader.header()
        self.problem = _MISSING if place.lacks and not place.size else None
        self.problem = self.problem or _explain(self._header)
        keys = _FACTS if self.problem is None else ()
        self._facts = {key: self.fact(key) for key in keys}

    @property
    def reader(self) -> _core.Reader:
        return self._readers.of(self)

    @property
    def header(self) -> dict[str, Any]:
        self._readers.expect_open()
        return self._header

    @property
    def lacking(self) -> str | None:
        """Say that it, or its end, cannot be read, if so."""
        name, size, lacks = self.place.name, self.place.size, self.place.lacks
        if self.problem is not None:
            return f"{name} {self.problem}"
        if lacks:
            there = f"{size:,} of {size + lacks:,} bytes are there"
            return f"the end of {name} is missing: {there}"
        return None

    @property
    def file_size(self) -> int:
        """How many bytes the whole file has."""
        return self._readers.size if self.place.name else self.header["size"]

    @property
    def process(self) -> Process:
        from whence._events import Process  # noqa: PLC0415

        info = self.info
        start = self.place.time_shift
        times = start, start + info.duration
        return Process(self.id, info.pid, info.program, info.python, *times, info)

    @property
    def info(self) -> RecordingInfo:
        from datetime import datetime, timedelta, timezone  # noqa: PLC0415

        from whence._events import RecordingInfo  # noqa: PLC0415

        header = self.header
        state = header["state"]
        start = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017
        return RecordingInfo(
            path=self._readers.path,
            version="{}.{}".format(*header["version"]),
            file_id=header["file_id"].hex(),
            pid=header["pid"],
            program=self._facts["program"],
            python=self._facts["python"],
            whence=self._facts["whence"],
            start=start + timedelta(microseconds=header["start_wall"] // 1000),
            duration=header["duration"],
            clock=_CLOCKS.get(header["clock"], "unknown"),
            chunk_size=header["chunk_size"],
            size=header["size"],
            packed=header["packed"],
            closed=header["closed"],
            ended=header["reason"] if state == "ended" else None,
            error=(header["error"] or None) if state == "ended" else None,
            calls=self._facts["calls"],
            memory=", ".join(filter(None, map(self._facts.get, _OF_MEMORY))) or None,
            handles=self._facts["handles"],
        )

    def duplicate(self) -> int:
        """Return a descriptor of the whole file, for the caller to close."""
        return self._readers.duplicate()

    def fact(self, key: str) -> str | None:
        """Return what the recorder told about the recording as a whole."""
        value = self.reader.info(key)
        return None if value is None else value[:_LONGEST_FACT]

    def folders(self) -> list[str]:
        """Return the import path of the program, each folder with a slash behind it."""
        found: list[str] = []
        while len(found) < _MOST_FOLDERS:
            folder = self.fact(f"import_path_{len(found)}")
            if not folder:
                break
            found.append(folder.rstrip("/") + "/")
        return found


def zstd(path: str) -> Any:
    """Import what unpacks, or say what is missing."""
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
