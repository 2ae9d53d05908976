"""Several tables as one."""

from __future__ import annotations

from whence import _core
from whence.handles._parts import HandleTableError, Part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from whence.handles._parts import Row


def merge(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return one part for each namespace, in the order in which they come."""
    merged: dict[str, Part] = {}
    for part in parts:
        known = merged.get(part.namespace)
        merged[part.namespace] = part if known is None else _joined(known, part)
    return tuple(merged.values())


def _joined(a: Part, b: Part) -> Part:
    """Put two parts of one namespace together: usually, an earlier and a later one."""
    larger, smaller = (a, b) if len(a.rows) >= len(b.rows) else (b, a)
    top = larger.top if larger.top is not None else smaller.top
    extra = [handle for handle in smaller.handles() if not _has(larger, handle)]
    for handle in smaller.handles():
        if _has(larger, handle) and _row(larger, handle) != _row(smaller, handle):
            message = (
                f"handle {handle} of namespace {a.namespace} means two things: "
                "these tables were not made by one recorder"
            )
            raise HandleTableError(message)
    is_loaded = a.is_loaded or b.is_loaded
    if not extra and top == larger.top:
        return larger._replace(is_loaded=is_loaded)
    rows = [_row(larger, handle) for handle in larger.handles()]
    rows += [_row(smaller, handle) for handle in extra]
    rows.sort(key=lambda row: row[0])
    columns = _core.collect_handles(rows, top)
    return Part(columns, a.namespace, top, is_loaded)


def _has(part: Part, handle: int) -> bool:
    return part.rows.find(handle) is not None


def _row(part: Part, handle: int) -> Row:
    place = part.rows.find(handle)
    assert place is not None  # noqa: S101 - the caller has it from this part
    return (handle, *part.rows.record(place))
