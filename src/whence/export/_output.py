"""Files and directories that appear under their names when they are complete."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from pathlib import Path

from whence import _packing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO


class ExportError(ValueError):
    """An export cannot be made as it was asked for."""


def same_file(path: str, other: str) -> bool:
    """Say whether two names are those of one file."""
    try:
        return Path(path).samefile(other)
    except OSError:
        return False


@contextlib.contextmanager
def new_file(path: str, *, force: bool) -> Iterator[BinaryIO]:
    """Give a file to write to, which then takes its place at ``path``."""
    if _there(path, force=force) and not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
        message = f"{path} is not a regular file: it is not replaced"
        raise ExportError(message)
    with _beside(path) as beside:
        with open(_packing.create(beside), "wb") as file:  # noqa: PTH123
            yield file
        if force:
            Path(beside).replace(path)
        else:
            _move(beside, path)


@contextlib.contextmanager
def new_directory(path: str, suffix: str, *, force: bool) -> Iterator[str]:
    """Give the name of a directory to make, which then takes its place at ``path``.

    One that is there already is replaced only if all of its files have the suffix.
    """
    there = _there(path, force=force)
    if there:
        _expect_only(path, suffix)
    with _beside(path) as beside:
        yield beside
        if not there:
            Path(path).mkdir()  # fails if it is there meanwhile; an empty one makes way
            Path(beside).rename(path)
            return
        with _beside(path) as old:
            Path(path).rename(old)
            Path(beside).rename(path)
            _remove(old)


def _there(path: str, *, force: bool) -> bool:
    if not os.path.lexists(path):
        return False
    if not force:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    return Path(path).exists()  # a link that leads nowhere makes way


def _expect_only(path: str, suffix: str) -> None:
    if Path(path).is_symlink() or not Path(path).is_dir():
        message = f"{path} is not a directory: it is not replaced"
        raise ExportError(message)
    for entry in Path(path).iterdir():
        if entry.suffix != suffix or not entry.is_file():
            message = f"{path} holds more than {suffix} files: it is not replaced"
            raise ExportError(message)


@contextlib.contextmanager
def _beside(path: str) -> Iterator[str]:
    """Give a name in the same directory; what has it in the end is removed."""
    beside = str(Path(path).with_name(f".whence-{secrets.token_hex(8)}"))
    try:
        yield beside
    except OSError as error:  # nobody knows it by that name
        where = beside if error.filename is None else error.filename
        if isinstance(where, str) and where.startswith(beside):
            error.filename = path + where.removeprefix(beside)
        raise
    finally:
        _remove(beside)


def _move(beside: str, path: str) -> None:
    """Give a file its name, if nothing else has got it meanwhile."""
    try:
        os.link(beside, path)
    except FileExistsError as error:
        raise FileExistsError(error.errno, error.strerror, path) from None
    except OSError:  # file systems without links
        if os.path.lexists(path):
            raise FileExistsError(
                errno.EEXIST, os.strerror(errno.EEXIST), path
            ) from None
        Path(beside).rename(path)


def _remove(path: str) -> None:
    if Path(path).is_dir() and not Path(path).is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        Path(path).unlink()
