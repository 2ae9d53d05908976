"""What is behind handles, in words."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from whence._text import printable
from whence.handles._parts import Found, HandleTableError, calls_of, checked, find
from whence.handles._places import (
    MOST_SHOWN,
    NOT_KNOWN,
    bounded,
    origins,
    places,
    unknown,
)
from whence.handles._sources import Sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from whence.handles._parts import Handle, Part
    from whence.handles._places import Origin, Place


def listed(handles: Handle | Iterable[Handle]) -> list[Handle]:
    """Return a list of handles, of one or several."""
    is_named = isinstance(handles, tuple) and isinstance(next(iter(handles), None), str)
    if is_named or not isinstance(handles, Iterable):
        return [checked(handles)]
    return [checked(handle) for handle in handles]


def hierarchy(found: Sequence[Found]) -> str:
    """Return where the operation is among modules, for handles outermost first.

    Nothing if nobody has said anything about modules.
    """
    top = next((each.part.top for each in found if each.part.top), None)
    is_known = top is not None
    levels = []
    for each in found:
        for call in bounded(each, calls_of(each.record.stack)):
            if isinstance(call, int):
                levels.append("...")
                continue
            is_known = is_known or call.instance is not None or call.type is not None
            instance = call.instance if call.instance is not None else NOT_KNOWN
            levels.append(f"{instance}({_short(call.type)})::{call.function}")
    if not is_known:
        return ""
    return printable(".".join([f"top({_short(top)})", *levels, found[-1].record.kind]))


def _short(type_name: str | None) -> str:
    return type_name.rpartition(".")[2] if type_name else NOT_KNOWN


def text(
    parts: Sequence[Part],
    handles: Sequence[Handle],
    root: str | os.PathLike[str] | None,
) -> str:
    """Return a traceback of handles, which come innermost first."""
    known: list[Found] = []
    not_found = []
    for handle in reversed(handles):
        try:
            found = find(parts, handle)
        except HandleTableError as error:
            not_found.append(f"{error}\n")
            continue
        if found is None:
            not_found.append(unknown(handle))
        else:
            known.append(found)
    sources = Sources(root)
    lines = _section(known, sources)
    for count, origin in enumerate(origins(parts, known)):
        if origin is None:
            lines.append(f"... and more, of which only {MOST_SHOWN} are shown\n")
            break
        if count >= len(known):
            lines += _section([origin.found], sources)
        lines += [*_edge(origin), *origin.missing]
    return "".join(chain(lines, not_found))


def _section(found: Sequence[Found], sources: Sources) -> list[str]:
    if not any(True for each in found for _ in places(each)):
        return []
    numbers = ", ".join(str(each.handle) for each in reversed(found))
    plural = "s" if len(found) > 1 else ""
    lines = [f"Traceback of handle{plural} {numbers} (most recent call last):\n"]
    for each in found:
        for place in bounded(each, places(each)):
            if isinstance(place, int):
                lines.append(f"  ... {place:,} calls are not shown\n")
            else:
                lines += _place(place, sources, is_loaded=each.part.is_loaded)
    if where := hierarchy(found):
        lines.append(f"Module hierarchy: {where}\n")
    return lines


def _place(place: Place, sources: Sources, *, is_loaded: bool) -> list[str]:
    name = printable(place.name)
    at = place.range
    if at is None:
        return [f"  File {NOT_KNOWN}, in {name}\n"]
    head = f'  File "{printable(at.filename)}", line {at.line}, in {name}\n'
    return [head, *(f"{line}\n" for line in sources.shown(at, is_loaded=is_loaded))]


def _edge(origin: Origin) -> list[str]:
    record = origin.first.record
    if record.edge is None:
        return []
    parents = (
        ", ".join(map(str, record.parents[:MOST_SHOWN])) or "nothing that is known"
    )
    more = f", in {origin.passes:,} passes" if origin.passes > 1 else ""
    return [f"Handle {origin.found.handle} was {record.edge} from {parents}{more}.\n"]
