"""Which file says what the addresses of a module mean.

The module itself if it is still what was recorded, or one that has the same build id: a
debug file that was split off it, or the module where it was moved to. A file whose
build id is another one is never used. Files are only read: nothing is run, nothing is
fetched.
"""

from __future__ import annotations

import os
import stat
from collections import namedtuple
from itertools import islice

from whence import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NamedTuple

    class Module(NamedTuple):
        path: str
        build_id: str = ""

    class Found(NamedTuple):
        path: str
        file: _core.ElfFile
        identity: tuple[int, int, int, int]

else:
    # Not typing.NamedTuple: importing typing takes longer than importing all of whence.
    Module = namedtuple("Module", ["path", "build_id"], defaults=[""])  # noqa: PYI024
    Found = namedtuple("Found", ["path", "file", "identity"])  # noqa: PYI024

Module.__doc__ = """\
A program or library: where it was, and its build id in hexadecimal digits, or "".
"""
Found.__doc__ = """\
A file that has the build id that was asked for. ``identity`` changes with the file.
"""

SYSTEM_DIRECTORY = "/usr/lib/debug"
MOST_SCANNED = 100_000  # files and directories below one that is given
_SHORTEST_BUILD_ID = 4  # digits: two are the directory's, the others the file's


def identify(path: str) -> tuple[int, int, int, int] | None:
    """Return what changes when a regular file does; None for all that is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class DebugFiles:
    """Finds files. ``problems`` gets the reason why one cannot be used, by its path."""

    def __init__(self, directories: tuple[str, ...], problems: dict[str, str]) -> None:
        self._directories = directories
        self._problems = problems
        self._scanned: dict[str, dict[str, list[str]]] = {}

    def search(self, module: Module) -> Iterator[Found]:
        """Find all files about a module, those first that cost least to find.

        Whoever is content with one stops there.
        """
        build_id = module.build_id.lower()
        link = None
        own = self._open(module.path) if os.path.isabs(module.path) else None
        if own is None:
            self._problems.setdefault(module.path, _why_not(module.path))
        elif build_id and own.file.build_id != build_id:
            self._problems[module.path] = _differs(own.file.build_id, build_id)
        else:
            build_id = own.file.build_id or ""
            link = own.file.debug_link
            yield own
        if build_id:
            seen = {module.path}
            for path in self._elsewhere(module.path, build_id, link):
                if path in seen:
                    continue
                seen.add(path)
                found = self._open(path)
                if found is not None and found.file.build_id == build_id:
                    yield found

    def _elsewhere(self, path: str, build_id: str, link: str | None) -> Iterator[str]:
        if len(build_id) >= _SHORTEST_BUILD_ID and build_id.isalnum():
            name = os.path.join(".build-id", build_id[:2], build_id[2:] + ".debug")
            for directory in (*self._directories, SYSTEM_DIRECTORY):
                yield os.path.join(directory, name)
        name = os.path.basename(path)
        names = [name, name + ".debug"] if name else []
        if link is not None and link == os.path.basename(link):
            names.append(link)
        for directory in self._directories:
            yield from (os.path.join(directory, name) for name in names)
        for directory in self._directories:
            yield from self._by_build_id(directory).get(build_id, ())

    def _by_build_id(self, directory: str) -> dict[str, list[str]]:
        """Return the ELF files below a directory; looks there once."""
        if (scanned := self._scanned.get(directory)) is not None:
            return scanned
        scanned = self._scanned[directory] = {}
        for path in self._files_below(directory):
            try:
                build_id = _core.ElfFile(path).build_id
            except (OSError, ValueError):
                continue  # most files are no ELF files
            if build_id is not None:
                scanned.setdefault(build_id, []).append(path)
        return scanned

    def _files_below(self, directory: str) -> Iterator[str]:
        """Yield the regular files below a directory, those first that lie higher.

        Links to files are followed, links to directories are not: they may lead round
        in circles. What cannot be looked at is left out.
        """
        known = os.path.join(directory, ".build-id")  # there they are found by name
        waiting = [directory]
        left = MOST_SCANNED
        for each in waiting:  # which grows
            for entry in _entries(each, left + 1):
                if left == 0:
                    text = f"not searched to its end: more than {MOST_SCANNED:,} files"
                    self._problems[directory] = text
                    return
                left -= 1
                try:
                    if entry.is_file():
                        yield entry.path
                    elif entry.is_dir(follow_symlinks=False) and entry.path != known:
                        waiting.append(entry.path)
                except OSError:  # a link that leads to itself, say
                    continue

    def _open(self, path: str) -> Found | None:
        # Before it is opened: to open a device can have effects.
        identity = identify(path)
        if identity is None:
            return None
        try:
            return Found(path, _core.ElfFile(path), identity)
        except OSError as error:
            self._problems[path] = f"cannot be read: {error.strerror}"
        except ValueError as error:
            self._problems[path] = str(error)
        return None


def _entries(directory: str, most: int) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return sorted(islice(entries, most), key=lambda entry: entry.name)
    except (OSError, ValueError):
        return []


def _why_not(path: str) -> str:
    if not os.path.isabs(path):
        return "is not the path of a file"
    try:
        os.stat(path)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except ValueError as error:
        return f"cannot be read: {error}"
    return "is no regular file"


def _differs(found: str | None, wanted: str) -> str:
    there = f"the build id {found}" if found else "no build id"
    return f"is another file than was recorded: it has {there}, not {wanted}"
