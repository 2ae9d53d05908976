"""The parts of tables: the handles of one namespace each, and how one is found."""

from __future__ import annotations

import copyreg
from typing import NamedTuple

from whence._core import InlinedCall, SourceRange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeAlias

    from whence._core import HandleColumns, HandleSnapshot

    # A bare handle, or one with the namespace that it is of.
    Handle: TypeAlias = int | tuple[str, int]
    Edge: TypeAlias = tuple[int, tuple[int, ...]]
    Row: TypeAlias = tuple[
        int, SourceRange | None, str, InlinedCall | None, Edge | None
    ]

UNKNOWN = -1  # the handle of what nobody knows
EDGES = ("fused", "split", "inlined", "rewritten")  # as the file numbers them


class HandleTableError(ValueError):
    """A table cannot be read or merged, or a handle of it is ambiguous."""

    __module__ = "whence.handles"


class HandleRecord(NamedTuple):
    """What a handle stands for.

    ``kind`` is the name of the operation. ``edge`` and ``parents`` say what it was made
    from, if ``Recorder.derive()`` issued it.
    """

    range: SourceRange | None
    kind: str
    stack: InlinedCall | None
    edge: str | None = None
    parents: tuple[int, ...] = ()


HandleRecord.__module__ = "whence.handles"


class Part(NamedTuple):
    """The handles of one namespace."""

    rows: HandleSnapshot | HandleColumns
    namespace: str  # 32 hexadecimal digits
    top: str | None  # the type of the outermost module
    is_loaded: bool  # what a file says of sources is not to be trusted

    def record(self, place: int) -> HandleRecord:
        range_, kind, stack, edge = self.rows.record(place)
        if edge is None:
            return HandleRecord(range_, kind, stack)
        return HandleRecord(range_, kind, stack, EDGES[edge[0]], edge[1])

    def handles(self) -> Iterator[int]:
        return map(self.rows.handle_at, range(len(self.rows)))

    def encodable(self) -> tuple[HandleSnapshot | HandleColumns, bytes, str | None]:
        return self.rows, bytes.fromhex(self.namespace), self.top


class Found(NamedTuple):
    """A handle that is in a part, and what it stands for."""

    part: Part
    handle: int
    record: HandleRecord

    @property
    def key(self) -> tuple[str, int]:
        return self.part.namespace, self.handle


def checked(handle: object) -> Handle:
    """Return what is a handle; TypeError for what is none."""
    if isinstance(handle, int):
        return handle
    if isinstance(handle, tuple) and len(handle) == 2:  # noqa: PLR2004
        namespace, number = handle
        if isinstance(namespace, str) and isinstance(number, int):
            return namespace, number
    message = f"a handle is an int or (namespace, int), not {handle!r}"
    raise TypeError(message)


def find(parts: Iterable[Part], handle: Handle) -> Found | None:
    """Look a handle up; HandleTableError for a bare one of several namespaces."""
    namespace, number = (None, handle) if isinstance(handle, int) else handle
    found: dict[str, tuple[Part, int]] = {}
    for part in parts:
        if namespace in (None, part.namespace):
            place = part.rows.find(number)
            if place is not None:
                found.setdefault(part.namespace, (part, place))
    if len(found) > 1:
        message = (
            f"handle {number} is in {len(found)} namespaces: "
            f"look up (namespace, {number}) with one of {', '.join(found)}"
        )
        raise HandleTableError(message)
    for part, place in found.values():
        return Found(part, number, part.record(place))
    return None


def find_parent(parts: Iterable[Part], child: Found, handle: int) -> Found | None:
    """Look up what a handle was made from: a handle of the same process."""
    place = child.part.rows.find(handle)
    if place is not None:
        return Found(child.part, handle, child.part.record(place))
    return find(parts, handle)


def restore_call(
    fields: tuple[tuple[str, SourceRange | None, str | None, str | None], ...],
) -> InlinedCall | None:
    """Make a list of calls from the fields of each. Pickles call this by name."""
    call = None
    for function, range_, type_, instance in reversed(fields):
        call = InlinedCall(function, range_, type_, instance, call)
    return call


def calls_of(stack: InlinedCall | None) -> Iterator[InlinedCall]:
    """Yield the calls of a list, outermost first."""
    while stack is not None:
        yield stack
        stack = stack.callee


def _reduce_call(call: InlinedCall) -> tuple[object, ...]:
    fields = tuple((c.function, c.range, c.type, c.instance) for c in calls_of(call))
    return restore_call, (fields,)


def _reduce_range(place: SourceRange) -> tuple[object, ...]:
    return SourceRange, (
        *(place.filename, place.line, place.column),
        *(place.end_line, place.end_column),
    )


# Lists of calls may be long: what pickle does by itself goes as deep as they do.
copyreg.pickle(InlinedCall, _reduce_call)  # type: ignore[arg-type]
copyreg.pickle(SourceRange, _reduce_range)  # type: ignore[arg-type]
