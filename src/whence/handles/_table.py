"""Tables of handles: looking up, merging, files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from whence import _core, generated
from whence.handles import _explain, _file, _places
from whence.handles._parts import Found, HandleTableError, Part, checked, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from whence._frame import Frame
    from whence.handles._file import AnyPath
    from whence.handles._parts import Handle, HandleRecord


@final
class HandleTable:
    """What handles stand for. Immutable.

    Made by ``Recorder.stop()``, ``load()``, ``from_json()`` and ``merge()``. A merged
    table has handles of several namespaces: one is looked up as ``(namespace,
    handle)``, or as it is where only one namespace has it.
    """

    __module__ = "whence.handles"
    __slots__ = ("__weakref__", "_parts")
    _parts: tuple[Part, ...]

    def __init__(self) -> None:
        message = "tables come from Recorder.stop(), HandleTable.load() and .merge()"
        raise TypeError(message)

    @classmethod
    def _of(cls, parts: tuple[Part, ...]) -> HandleTable:
        table = object.__new__(cls)
        table._parts = parts  # noqa: SLF001
        return table

    @classmethod
    def load(cls, path: AnyPath) -> HandleTable:
        """Read a table that ``save()`` wrote. HandleTableError for anything else."""
        return cls._of(_file.load(path))

    @classmethod
    def from_json(cls, text: str) -> HandleTable:
        """Read what ``to_json()`` returned. HandleTableError for anything else."""
        from whence.handles import _json  # noqa: PLC0415

        return cls._of(_json.read(text))

    @classmethod
    def merge(cls, *tables: HandleTable) -> HandleTable:
        """Put tables together; handles keep their numbers.

        Tables of the same recorder become one part. HandleTableError if a handle of one
        namespace means two things.
        """
        from whence.handles import _merge  # noqa: PLC0415

        for table in tables:
            if not isinstance(table, cls):
                message = f"tables are HandleTable, not {type(table).__name__}"
                raise TypeError(message)
        parts = (part for table in tables for part in table._parts)  # noqa: SLF001
        return cls._of(_merge.merge(parts))

    def save(self, path: AnyPath, *, overwrite: bool = False) -> None:
        """Write it to a file, which must not be there unless ``overwrite``."""
        _file.save(path, self._parts, overwrite=overwrite)

    def to_json(self) -> str:
        """Return it as a JSON text."""
        from whence.handles import _json  # noqa: PLC0415

        return _json.write(self._parts)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of its handles, 32 hexadecimal digits each."""
        return tuple(part.namespace for part in self._parts)

    @property
    def namespace(self) -> str:
        """The namespace of its handles; HandleTableError if there is not one alone."""
        if len(self._parts) != 1:
            message = f"the table has {len(self._parts)} namespaces: see .namespaces"
            raise HandleTableError(message)
        return self._parts[0].namespace

    def explain(
        self,
        handles: Handle | Iterable[Handle],
        *,
        root: str | os.PathLike[str] | None = None,
    ) -> str:
        """Return the source behind a handle, or several, as a traceback.

        Several are innermost first, as an error collects them on its way up; the text
        is outermost first. An unknown handle is named, and hides no other. Lines of the
        source are shown if they are at hand: below the folder ``root``, in
        ``linecache``, and for a table that was recorded in this process, wherever the
        file is. A table from a file opens nothing by itself.
        """
        return _explain.text(self._parts, _explain.listed(handles), root)

    def frames(self, handle: Handle) -> tuple[Frame, ...]:
        """Return the source of a handle as frames, innermost first, kind "handle".

        A handle that was made from others has theirs behind its own. What explain()
        would leave out is left out here, too: a frame of kind "truncated" stands for
        it. KeyError for an unknown one.
        """
        return tuple(_places.frames(self._parts, self._found(handle)))

    def line_map(self, filename: str, lines: Mapping[int, Handle]) -> None:
        """Tell ``whence.generated`` which handles lines of generated code came from.

        Stacks of that code then show the sources; ``generated.unregister(filename)``
        takes it back. KeyError for an unknown handle, but -1, which says nothing.
        """
        if not isinstance(lines, Mapping):
            wanted = "lines must map lines to handles, as a dict does"
            message = f"{wanted}, not {type(lines).__name__}"
            raise TypeError(message)
        known = {line: self._found(of) for line, of in lines.items() if of != -1}
        parts = self._parts
        frames = {line: _places.frames_of_line(parts, of) for line, of in known.items()}
        generated.register(filename, frames)

    def _found(self, handle: object) -> Found:
        found = find(self._parts, checked(handle))
        if found is None:
            raise KeyError(handle)
        return found

    def __getitem__(self, handle: Handle) -> HandleRecord:
        return self._found(handle).record

    def __contains__(self, handle: object) -> bool:
        try:
            return find(self._parts, checked(handle)) is not None
        except TypeError:
            return False
        except HandleTableError:  # more than once
            return True

    def __len__(self) -> int:
        return sum(len(part.rows) for part in self._parts)

    def __iter__(self) -> Iterator[Handle]:
        if len(self._parts) == 1:
            yield from self._parts[0].handles()
            return
        for part in self._parts:
            for handle in part.handles():
                yield part.namespace, handle

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HandleTable):
            return NotImplemented
        if self is other or self._bytes() == other._bytes():
            return True
        if sorted(self.namespaces) != sorted(other.namespaces):
            return False
        of_other = {part.namespace: part for part in other._parts}
        return all(_same(part, of_other[part.namespace]) for part in self._parts)

    def __hash__(self) -> int:
        return hash((frozenset(self.namespaces), len(self)))

    def __repr__(self) -> str:
        count = f"{len(self)} handle{'' if len(self) == 1 else 's'}"
        if len(self._parts) == 1:
            return f"<HandleTable, {count}, namespace {self.namespace}>"
        return f"<HandleTable, {count} of {len(self._parts)} namespaces>"

    def _bytes(self) -> bytes:
        return _core.encode_handles([part.encodable() for part in self._parts])

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self._bytes(),)


def parts_of(table: HandleTable) -> tuple[Part, ...]:
    """Return the handles of each namespace."""
    return table._parts  # noqa: SLF001


def of_files(files: Iterable[bytes], name: str) -> HandleTable:
    """Return what several files say, ``name`` being where they come from."""
    parts = (part for data in dict.fromkeys(files) for part in _file.read(data, name))
    return HandleTable.merge(*(HandleTable._of((part,)) for part in parts))  # noqa: SLF001


def _restore(data: bytes) -> HandleTable:
    """Make a table from what a file holds. Pickles call this by name."""
    return HandleTable._of(_file.read(data, "the pickle"))  # noqa: SLF001


def _same(a: Part, b: Part) -> bool:
    return (
        a.top == b.top
        and len(a.rows) == len(b.rows)
        and all(
            a.rows.handle_at(place) == b.rows.handle_at(place)
            and a.record(place) == b.record(place)
            for place in range(len(a.rows))
        )
    )
