"""Tables of handles in files. native/handles/FORMAT.md says what is in one."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from whence import _core, _new_file
from whence._text import printable
from whence.handles._parts import HandleTableError, Part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    AnyPath: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_WHAT_TO_DO = {
    "no_table": "is no table of handles: give a file that HandleTable.save() wrote",
    "too_new": "is of format {}, which is newer than this whence: install a newer one",
    "cut": "is cut, {} bytes are missing: copy it again, or save the table again",
    "damaged": "is damaged: copy it again, or save the table again",
    "twice": "has handle {} twice: save the table again",
}


def save(path: AnyPath, parts: tuple[Part, ...], *, overwrite: bool) -> None:
    name = os.fsdecode(path)
    target = Path(name)
    if not target.name:
        raise _nameless(name)
    if overwrite and target.exists():
        _new_file.expect_regular(name)
    data = _core.encode_handles([part.encodable() for part in parts])
    # Where there is one, whoever reads it meanwhile has all of it, or all of this.
    new = target.with_name(f"{target.name}.{os.urandom(4).hex()}")
    new = new if overwrite else target
    with new.open("xb") as file:
        try:
            file.write(data)
            file.flush()
            if overwrite:
                new.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                new.unlink()
            raise


def load(path: AnyPath) -> tuple[Part, ...]:
    name = os.fsdecode(path)
    if not name:  # to pathlib it would be the folder that the program is in
        raise _nameless(name)
    shown, target = printable(name), Path(name)
    if not stat.S_ISREG(target.stat().st_mode):
        message = f"{shown} is no file: give one that HandleTable.save() wrote"
        raise HandleTableError(message)
    return read(target.read_bytes(), shown)


def _nameless(name: str) -> ValueError:
    return ValueError(f"path must name a file, not {name!r}")


def read(data: bytes, name: str) -> tuple[Part, ...]:
    problem, detail, parts = _core.decode_handles(data)
    if problem != "none":
        missing = max(detail - len(data), 0) if problem == "cut" else detail
        message = f"{name} {_WHAT_TO_DO[problem].format(missing)}"
        raise HandleTableError(message)
    return tuple(
        Part(rows, namespace.hex(), top, is_loaded=True)
        for rows, namespace, top in parts
    )
