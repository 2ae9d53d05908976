"""Files that appear under their names when they are complete."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from whence import _packing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO


def same_file(path: str, other: str) -> bool:
    """Say whether two names are those of one file."""
    try:
        return Path(path).samefile(other)
    except OSError:
        return False


def expect_regular(path: str) -> None:
    """Refuse to replace devices, pipes and folders: nobody would get them back."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
        message = f"{path} is not a regular file: it is not replaced"
        raise FileExistsError(message)


def is_there(path: str, *, force: bool) -> bool:
    """Say whether there is something to replace; that needs ``force``."""
    if not os.path.lexists(path):
        return False
    if not force:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    return Path(path).exists()  # a link that leads nowhere makes way


@contextlib.contextmanager
def new_file(path: str, *, force: bool) -> Iterator[BinaryIO]:
    """Give a file to write to, which then takes its place at ``path``."""
    if is_there(path, force=force):
        expect_regular(path)
    with beside(path) as new:
        descriptor, named = _packing.create(new)
        with open(descriptor, "wb") as file:  # noqa: PTH123
            yield file
            file.flush()
            if not named:
                _packing.name(descriptor, new)
        if force:
            Path(new).replace(path)
        else:
            _move(new, path)


@contextlib.contextmanager
def beside(path: str) -> Iterator[str]:
    """Give a name in the same directory; what has it in the end is removed."""
    if not Path(path).name:
        message = f"{path!r} names no file: a new file needs a name"
        raise FileNotFoundError(message)
    new = str(Path(path).with_name(f".whence-{os.urandom(8).hex()}"))
    try:
        yield new
    except OSError as error:  # nobody knows it by that name
        where = new if error.filename is None else error.filename
        if isinstance(where, str) and where.startswith(new):
            error.filename, error.filename2 = path + where.removeprefix(new), None
        raise
    finally:
        remove(new)


def remove(path: str) -> None:
    """Remove a file or a directory, as far as that is possible."""
    if Path(path).is_dir() and not Path(path).is_symlink():
        import shutil  # noqa: PLC0415

        shutil.rmtree(path, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        Path(path).unlink()


def _move(new: str, path: str) -> None:
    """Give a file its name, if nothing else has got it meanwhile."""
    try:
        os.link(new, path)
    except FileExistsError as error:
        raise FileExistsError(error.errno, error.strerror, path) from None
    except OSError:  # file systems without links
        if os.path.lexists(path):
            raise FileExistsError(
                errno.EEXIST, os.strerror(errno.EEXIST), path
            ) from None
        Path(new).rename(path)
