"""Where Python looks for the modules of a program: the first entry of ``sys.path``."""

from __future__ import annotations

import contextlib
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any

_OTHERS = {"rich"}  # that a summary needs, beside the standard library


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


@contextlib.contextmanager
def as_before(path: list[str]) -> Iterator[None]:
    """Look for modules in these folders only, where they were before the program began.

    It may have modules with the names of the standard library's, or of rich's: they
    are set aside meanwhile, for whatever is imported here would get them.
    """
    aside = _set_aside(path)
    of_program, sys.path = sys.path, path
    try:
        yield
    finally:
        sys.path = of_program
        tops = {name.partition(".")[0] for name in aside}
        for name in sys.modules.copy():
            if name.partition(".")[0] in tops:
                del sys.modules[name]
        sys.modules.update(aside)


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


def _set_aside(path: list[str]) -> dict[str, ModuleType]:
    """Take out what has the name of a module that we may need, but is another."""
    needed = sys.stdlib_module_names | _OTHERS
    modules = sys.modules.copy()
    others = {
        name
        for name, module in modules.items()
        if name in needed and not _is_from(path, module)
    }
    return {
        name: sys.modules.pop(name)
        for name in modules
        if name.partition(".")[0] in others
    }


def _is_from(path: list[str], module: ModuleType) -> bool:
    """Tell whether a module was found in one of these folders, or is Python's own."""
    spec: Any = getattr(module, "__spec__", None)
    origin = getattr(spec, "origin", None)
    if not isinstance(origin, str):
        return False
    if origin in ("built-in", "frozen"):
        return True
    folder = os.path.dirname(origin)
    if spec.submodule_search_locations is not None:
        folder = os.path.dirname(folder)
    return folder in path
