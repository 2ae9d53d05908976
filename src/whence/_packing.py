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
        copy, named = create(beside)
    except OSError:
        return False
    try:
        _copy(file, copy, keep)
        if not _is_at(file, path):
            message = "somebody has moved the recording"
            raise FileNotFoundError(message)  # noqa: TRY301
        if not named:
            name(copy, beside)
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


def create(path: str) -> tuple[int, bool]:
    """Open a new file, its owner's alone, and say whether it has that name already.

    Where there can be files without a name it has none: whoever is killed leaves
    nothing behind, and it is for ``name()`` to give it one.
    """
    if _can_name(path):
        return _nameless(path), False
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o600), True


def name(file: int, path: str) -> None:
    """Give a file its first name, which nothing else may have."""
    # With a folder, which says nothing here, the call is linkat: link follows nothing.
    link = f"/proc/self/fd/{file}"
    os.link(link, path, src_dir_fd=file, follow_symlinks=True)


def _nameless(path: str) -> int:
    """Open a file that could have that name."""
    flags = os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC
    return os.open(os.path.dirname(path) or ".", flags, 0o600)  # noqa: PTH120


def _can_name(path: str) -> bool:
    """Try it with an empty file: not all file systems can, and it takes /proc."""
    try:
        file = _nameless(path)
    except OSError:
        return False
    try:
        name(file, path)
        os.unlink(path)  # noqa: PTH108
    except OSError:
        return False
    finally:
        os.close(file)
    return True


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
