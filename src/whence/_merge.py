"""Recordings of several processes as one file: FORMAT.md, "Merged recordings".

Each is copied byte for byte, so nothing is lost, and what is damaged or was never
closed stays that.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
import zipfile
from typing import NamedTuple

from whence import _clocks, _merged, _recording
from whence._part import RecordingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, BinaryIO

    from whence._part import Part

_PIECE = 1 << 20
_OWNERS_ALONE = (stat.S_IFREG | 0o600) << 16  # the attributes of an unpacked entry


class MergeError(ValueError):
    """Recordings cannot be merged as it was asked for."""


class Source(NamedTuple):
    """A recording of one process: an open file, or a part of one."""

    name: str  # as it was given
    recording: _recording.Recording
    part: Part
    last_thread: int  # their largest ids, as its own file has them
    last_task: int


class Sources:
    """The recordings to be merged, open until this is closed.

    One that may still be written to is copied first, since what is said of a recording
    has to be said of what is in the file.
    """

    def __init__(self, paths: Sequence[str], folder: str) -> None:
        self._folder = folder  # for copies
        self._open: list[_recording.Recording] = []
        self.all: list[Source] = []
        self.notes: list[str] = []  # what is to be known of some of them
        try:
            for path in paths:
                self._add(path)
            self._expect_others()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for recording in self._open:
            recording.close()

    def _add(self, path: str) -> None:
        recording = _recording.open(path)
        self._open.append(recording)
        if bad := _recording.unreadable(recording):
            message = f"{path}: {bad[0]}"
            raise RecordingError(message)
        for part in _recording.parts_of(recording):
            name = f"{path}: {part.place.name}" if part.place.name else path
            if not part.info.closed:
                self.notes.append(f"{name} was never closed: merged as it is now")
                recording, part = self._copy_of(path, part)  # noqa: PLW2901
            totals = part.reader.totals()
            if totals["problems"]:
                self.notes.append(f"{name} is damaged: merged as it is")
            self.all.append(Source(name, recording, part, *_last_ids(part, totals)))

    def _copy_of(self, path: str, part: Part) -> tuple[_recording.Recording, Part]:
        with tempfile.TemporaryFile(dir=self._folder) as copy:
            write_part(path, part, copy)
            copy.flush()
            recording = _recording.Recording(path, os.dup(copy.fileno()))
        self._open.append(recording)
        (part,) = _recording.parts_of(recording)
        return recording, part

    def _expect_others(self) -> None:
        """No recording twice: its calls would count twice."""
        if len(self.all) > _merged.MOST_PARTS:
            most = f"{_merged.MOST_PARTS:,}"
            message = f"{len(self.all):,} recordings are too many: {most} can be merged"
            raise MergeError(message)
        seen: dict[bytes, str] = {}
        for source in self.all:
            other = seen.setdefault(source.part.header["file_id"], source.name)
            if other is not source.name:
                message = f"{other} and {source.name} are the same recording"
                raise MergeError(message)


def write(sources: Sources, file: BinaryIO) -> bool:
    """Write the merged recording; say whether one clock was enough for all."""
    times, one_clock = _clocks.align([_moment_of(source) for source in sources.all])
    order = sorted(range(len(times)), key=times.__getitem__)
    listed: list[dict[str, Any]] = []
    threads = tasks = 0
    for number, place in enumerate(order, 1):
        source = sources.all[place]
        header = source.part.header
        listed.append(
            {
                "name": f"{number}-{header['pid']}.whence",
                "pid": header["pid"],
                "time_shift": times[place] - times[order[0]],
                "thread_base": threads,
                "task_base": tasks,
            }
        )
        threads += source.last_thread
        tasks += source.last_task
    _expect_room(listed)
    index = {"version": _merged.VERSION, "processes": listed}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_entry(_merged.INDEX), json.dumps(index, indent=1))
        for entry, place in zip(listed, order, strict=True):
            source = sources.all[place]
            about = _entry(entry["name"])
            about.file_size = source.part.header["size"]
            with archive.open(about, "w") as out:
                write_part(source.recording.info.path, source.part, out)
    return one_clock


def write_part(path: str, part: Part, out: Any) -> None:
    """Copy the bytes of a part, as many as there were when it was opened."""
    descriptor = part.duplicate()
    try:
        at, end = part.place.offset, part.place.offset + part.header["size"]
        while at < end:
            piece = os.pread(descriptor, min(_PIECE, end - at), at)
            if not piece:
                message = f"{path} has become shorter while it was read"
                raise MergeError(message)
            out.write(piece)
            at += len(piece)
    finally:
        os.close(descriptor)


def _last_ids(part: Part, totals: dict[str, Any]) -> tuple[int, int]:
    """Return the largest ids of a thread and a task, as its own file has them."""
    thread, task = part.reader.last_ids()
    if any(totals[what] for what in ("problems", "names", "names_left_out")):
        # Metadata may not have all threads: each record says whose it is.
        thread = max(thread, max((r[1] for r in part.reader.records()), default=0))
    place = part.place
    return max(thread - place.thread_base, 0), max(task - place.task_base, 0)


def _moment_of(source: Source) -> _clocks.Moment:
    header = source.part.header
    wall, monotonic = header["start_wall"], header["start_monotonic"]
    return _clocks.Moment(wall, monotonic, source.part.fact("boot"))


def _expect_room(listed: list[dict[str, Any]]) -> None:
    """Files may claim anything of their clocks and threads."""
    last = listed[-1]
    if last["time_shift"] > _merged.MOST_SHIFT:
        message = "they began centuries apart: one of their clocks was wrong"
        raise MergeError(message)
    for key, most in (
        ("thread_base", _merged.MOST_THREADS),
        ("task_base", _merged.MOST_TASKS),
    ):
        if last[key] > most:
            what = key.removesuffix("_base")
            message = f"there is no room for all of their {what}s: {last[key]:,}"
            raise MergeError(message)


def _entry(name: str) -> zipfile.ZipInfo:
    """Without a time of its own: the same recordings give the same bytes."""
    entry = zipfile.ZipInfo(name)
    entry.external_attr = _OWNERS_ALONE
    return entry
