"""Packing a closed recording: the same chunks, each compressed, in a smaller file."""

import contextlib
import os
import sys

from whence import _core


def pack(file: int, path: str, keep: int = 0) -> bool:
    """Replace the recording at ``path``, open as ``file``, by a packed copy of it.

    The copy takes its place in one step. Whatever prevents that leaves the recording as
    it is, which is read just as well; nothing is raised. With ``keep``, events that are
    older than so many nanoseconds are left out.
    """
    if sys.is_finalizing():
        return False
    beside = f"{path}.{os.urandom(4).hex()}.packing"
    try:
        copy = create(beside)
    except OSError:
        return False
    try:
        _copy(file, copy, keep)
        if not _is_at(file, path):
            message = "somebody has moved the recording"
            raise FileNotFoundError(message)  # noqa: TRY301
        os.replace(beside, path)  # noqa: PTH105
    except Exception:  # noqa: BLE001
        _remove(beside)
        return False
    except BaseException:
        _remove(beside)
        raise
    finally:
        os.close(copy)
    return True


def prepare() -> None:
    """Import what packing needs. Without it recordings stay as they are."""
    with contextlib.suppress(ImportError):
        from whence import _zstd  # noqa: F401, PLC0415


def create(path: str) -> int:
    """Open a new file, its owner's alone, never through a symbolic link."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o600)


def _copy(file: int, copy: int, keep: int) -> None:
    from whence import _zstd  # noqa: PLC0415

    reader = _core.Reader(file, _zstd.unpack)
    try:
        totals = reader.rewrite(copy, _zstd.pack, keep)
    finally:
        reader.close()
    if totals["problems"] or totals["chunks_damaged"]:
        message = "the copy would have less than the recording"
        raise OSError(message)


def _is_at(file: int, path: str) -> bool:
    there, ours = os.lstat(path), os.fstat(file)
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)  # noqa: PTH108
