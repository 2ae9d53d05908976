"""A new ``__main__``, with what Python puts into it before the program begins."""

from __future__ import annotations

import _frozen_importlib
import _frozen_importlib_external as _external
import builtins
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAGIC_NUMBER: bytes = _external.MAGIC_NUMBER
_NO_CACHED = (3, 15)  # from there on modules have none


def make() -> dict[str, Any]:
    """Put a new module into the place of ours; return what is in it."""
    main = type(sys)("__main__")
    names = vars(main)
    names["__loader__"] = _frozen_importlib.BuiltinImporter
    if "__annotations__" in vars(sys.modules["__main__"]):  # not in every version
        names["__annotations__"] = {}
    names["__builtins__"] = builtins
    sys.modules["__main__"] = main
    return names


def name_file(names: dict[str, Any], filename: str) -> None:
    """Say which file it is."""
    names["__file__"] = filename
    if sys.version_info < _NO_CACHED:
        names["__cached__"] = None


def forget_file(names: dict[str, Any]) -> None:
    """Take that back: Python does so when a script is over, but not by an exit."""
    names.pop("__file__", None)
    names.pop("__cached__", None)


def load_by(names: dict[str, Any], filename: str, *, source: bool) -> None:
    """Say how the file was read."""
    kind = _external.SourceFileLoader if source else _external.SourcelessFileLoader
    names["__loader__"] = kind("__main__", filename)
