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
    of_namespace: dict[str, list[Part]] = {}
    for part in parts:
        of_namespace.setdefault(part.namespace, []).append(part)
    return tuple(map(_joined, of_namespace.values()))


def _joined(parts: list[Part]) -> Part:
    """Put parts of one namespace together: of all its handles, or of the new ones."""
    largest = max(parts, key=lambda part: len(part.rows))  # as a rule, all there is
    tops = (part.top for part in (largest, *parts))
    top = next((top for top in tops if top is not None), None)
    extra: dict[int, Row] = {}
    for part in parts:
        for handle in () if part is largest else part.handles():
            row = _row(part, handle)
            place = largest.rows.find(handle)
            known = extra.get(handle) if place is None else _row(largest, handle)
            if known is None:
                extra[handle] = row
            elif known != row:
                message = (
                    f"handle {handle} of namespace {part.namespace} means two things: "
                    "these tables were not made by one recorder"
                )
                raise HandleTableError(message)
    is_loaded = any(part.is_loaded for part in parts)
    if not extra and top == largest.top:
        return largest._replace(is_loaded=is_loaded)
    rows = [_row(largest, handle) for handle in largest.handles()]
    rows += extra.values()
    rows.sort(key=lambda row: row[0])
    columns = _core.collect_handles(rows, top)
    return Part(columns, largest.namespace, top, is_loaded)


def _row(part: Part, handle: int) -> Row:
    place = part.rows.find(handle)
    assert place is not None  # noqa: S101 - the caller has it from this part
    return (handle, *part.rows.record(place))
