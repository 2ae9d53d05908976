"""Directories that appear under their names when they are complete."""

from __future__ import annotations

import contextlib
from pathlib import Path

from whence import _new_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class ExportError(ValueError):
    """An export cannot be made as it was asked for."""


@contextlib.contextmanager
def new_directory(path: str, suffix: str, *, force: bool) -> Iterator[str]:
    """Give the name of a directory to make, which then takes its place at ``path``.

    One that is there already is replaced only if all of its files have the suffix.
    """
    there = _new_file.is_there(path, force=force)
    if there:
        _expect_only(path, suffix)
    with _new_file.beside(path) as beside:
        yield beside
        if not there:
            Path(path).mkdir()  # fails if it is there meanwhile; an empty one makes way
            Path(beside).rename(path)
            return
        with _new_file.beside(path) as old:
            Path(path).rename(old)
            Path(beside).rename(path)
            _new_file.remove(old)


def _expect_only(path: str, suffix: str) -> None:
    if Path(path).is_symlink() or not Path(path).is_dir():
        message = f"{path} is not a directory: it is not replaced"
        raise ExportError(message)
    for entry in Path(path).iterdir():
        if entry.suffix != suffix or not entry.is_file():
            message = f"{path} holds more than {suffix} files: it is not replaced"
            raise ExportError(message)
