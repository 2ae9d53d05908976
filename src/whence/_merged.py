"""Finding the parts of a merged recording: FORMAT.md, "Merged recordings".

It is a zip archive, but it is not read as one: archives say twice where everything is,
and a file could say two different things. What counts is what stands before each part.
A file that was cut has lost its end, where archives say so for the second time: only
then may a part go beyond the end.
"""

from __future__ import annotations

import binascii
import json
import os
import struct

from whence._part import Place, RecordingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

MAGIC = b"PK\x03\x04"
INDEX = "processes.json"
VERSION = 1
MOST_PARTS = 4_096
MOST_SHIFT = 2**62  # nanoseconds
MOST_THREADS = 2**31
MOST_TASKS = 2**62
_LAST_THREAD = 2**32 - 1

# What stands before an entry: version, flags, method, time, date, checksum, sizes, and
# the lengths of a name and of more fields that follow. Large sizes are in such a field.
_ENTRY = struct.Struct("<4xHHHHHIIIHH")
_FIELD = struct.Struct("<HH")
_SIZES = struct.Struct("<QQ")
_LARGE, _LARGE_SIZES = 0xFFFFFFFF, 1
_DIRECTORY_END, _DIRECTORY_END_SIZE = b"PK\x05\x06", 22
_LONGEST_NAME = 255
_LONGEST_FIELDS = 4_096
_LARGEST_INDEX = MOST_PARTS * 512
_NUMBERS = {
    "time_shift": MOST_SHIFT,
    "thread_base": MOST_THREADS,
    "task_base": MOST_TASKS,
}


def places(path: str, file: int) -> list[Place]:
    """Return where the parts are; ``RecordingError`` if that cannot be found out."""
    if os.pread(file, len(INDEX), _ENTRY.size) != INDEX.encode():
        message = f"{path} is a zip archive, not a recording: it has no {INDEX}"
        raise RecordingError(message)
    archive = _Archive(path, file)
    _, begin, size, checksum, lacks = archive.next_entry(INDEX)
    if lacks:
        archive.refuse(f"{INDEX} goes beyond the end of the file")
    if size > _LARGEST_INDEX:
        archive.refuse(f"{INDEX} is longer than it can be")
    index = os.pread(file, size, begin)
    if binascii.crc32(index) != checksum:
        archive.refuse(f"{INDEX} does not agree with its checksum")
    found = []
    for listed in _listed(archive, index):
        name, begin, size, _, lacks = archive.next_entry(listed["name"])
        if name != listed["name"]:
            archive.refuse(f"another entry is in the place of {listed['name']}")
        shifts = {key: listed[key] for key in _NUMBERS}
        found.append(Place(name, begin, size, **shifts, lacks=lacks))
    for place, after in zip(found, [*found[1:], None], strict=True):
        place.last_thread = after.thread_base if after else _LAST_THREAD
    return found


class _Archive:
    """The entries of a file, one after the other."""

    def __init__(self, path: str, file: int) -> None:
        self.path = path
        self._file = file
        self._end = os.fstat(file).st_size
        at = max(self._end - _DIRECTORY_END_SIZE, 0)
        last = os.pread(file, len(_DIRECTORY_END), at)
        self._is_cut = last != _DIRECTORY_END
        self._next = 0

    def refuse(self, why: str) -> NoReturn:
        message = f"{self.path} is a damaged merged recording: {why}"
        raise RecordingError(message)

    def next_entry(self, wanted: str) -> tuple[str, int, int, int, int]:
        """Return the name of the next one, where its bytes are, and their checksum.

        Last, how many bytes are missing at its end: of one that is not there, as far as
        anybody knows, one.
        """
        head = os.pread(self._file, _ENTRY.size, self._next)
        if self._is_cut and self._next + len(head) >= self._end:
            return self._missing(wanted)
        if len(head) < _ENTRY.size or not head.startswith(MAGIC):
            self.refuse(f"there is no entry at byte {self._next:,}")
        fields = _ENTRY.unpack(head)
        _, flags, method, _, _, checksum, packed, size, name_size, more = fields
        if flags or method:
            self.refuse(f"the entry at byte {self._next:,} is packed, or changed")
        if name_size > _LONGEST_NAME or more > _LONGEST_FIELDS:
            self.refuse(f"the entry at byte {self._next:,} is not one of ours")
        begin = self._next + _ENTRY.size
        text = os.pread(self._file, name_size + more, begin)
        if self._is_cut and len(text) < name_size + more:
            return self._missing(wanted)
        name = text[:name_size].decode("ascii", "replace")
        if size == packed == _LARGE:
            size, packed = self._large_sizes(text[name_size:])
        begin += name_size + more
        there = min(size, self._end - begin)
        if size < 0 or packed != size or (there < size and not self._is_cut):
            self.refuse(f"{name} goes beyond the end of the file")
        self._next = begin + there
        return name, begin, there, checksum, size - there

    def _missing(self, name: str) -> tuple[str, int, int, int, int]:
        self._next = self._end
        return name, self._end, 0, 0, 1

    def _large_sizes(self, fields: bytes) -> tuple[int, int]:
        while len(fields) >= _FIELD.size:
            kind, length = _FIELD.unpack_from(fields)
            content, fields = fields[_FIELD.size :][:length], fields[_FIELD.size :]
            if kind == _LARGE_SIZES and len(content) >= _SIZES.size:
                size, packed = _SIZES.unpack_from(content)
                return size, packed
            fields = fields[length:]
        return -1, -1


def _listed(archive: _Archive, index: bytes) -> list[dict[str, Any]]:
    """Return what the index says of each part, once it is known to make sense."""
    try:
        content = json.loads(index)
        version, listed = content["version"], content["processes"]
        newer = type(version) is int and version > VERSION
        good = newer or (version == VERSION and _makes_sense(listed))
    except (LookupError, RecursionError, TypeError, ValueError):
        newer = good = False
    if not good:
        archive.refuse(f"{INDEX} makes no sense")
    if newer:
        message = f"{archive.path} was written by a newer whence (merged recordings "
        message += f"of version {version}); upgrade whence to read it"
        raise RecordingError(message)
    if len(listed) > MOST_PARTS:
        archive.refuse(f"it has more than {MOST_PARTS:,} processes")
    return list(listed)


def _is_name(name: Any) -> bool:
    """Say whether an entry of ours can have it: it is shown where there is none."""
    good = type(name) is str and 0 < len(name) <= _LONGEST_NAME
    return good and name.isascii() and name.isprintable()


def _makes_sense(listed: Any) -> bool:
    """Say whether all is there, and in the order that it must have."""
    if type(listed) is not list or not listed:
        return False
    if not all(_is_name(each["name"]) for each in listed):
        return False
    for key, most in _NUMBERS.items():
        numbers = [each[key] for each in listed]
        if any(type(number) is not int for number in numbers):
            return False
        if numbers[0] != 0 or numbers[-1] > most or numbers != sorted(numbers):
            return False
    return True
