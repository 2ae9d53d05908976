"""Where Python looks for the modules of a program: the first entry of ``sys.path``."""

from __future__ import annotations

import contextlib
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def without_first() -> Iterator[None]:
    """Look elsewhere for modules that are for us: in there are the program's.

    It is the current folder after ``python -m whence``, and that may have a tomllib.
    """
    first = [] if sys.flags.safe_path else sys.path[:1]
    del sys.path[: len(first)]
    try:
        yield
    finally:
        sys.path[:0] = first


def put_first(folder: str, *, even_if_safe: bool = False) -> None:
    """Put it where Python has put the folder of what it was started for: ours."""
    if not sys.flags.safe_path:
        sys.path[:1] = [folder]
    elif even_if_safe:
        sys.path.insert(0, folder)


def current_folder() -> str | None:
    """Return the current folder, unless somebody has removed it."""
    try:
        return os.getcwd()
    except OSError:
        return None


def absolute(path: str) -> str:
    """Return a path from the root on, without looking for the file."""
    folder = current_folder()
    if path.startswith("/") or folder is None:
        return path
    return folder if path == "." else f"{folder}/{path}"


def folder_of(script: str) -> str:
    """Return where the script is, or what it is a link to."""
    path = script
    if os.path.islink(script):
        folder = os.path.dirname(script)
        path = os.path.join(folder, os.readlink(script))
    with contextlib.suppress(OSError):  # a pipe has none
        path = os.path.realpath(path, strict=True)
    return os.path.dirname(path)


def can_be_searched(path: str) -> bool:
    """Tell whether modules can be found in there; remember it as Python does."""
    if path not in sys.path_importer_cache:
        sys.path_importer_cache[path] = None
        for hook in sys.path_hooks:
            try:
                sys.path_importer_cache[path] = hook(path)
                break
            except ImportError:
                continue
    return sys.path_importer_cache[path] is not None
