"""Tables of handles as JSON: docs/reference/handles.md says how it looks."""

from __future__ import annotations

import json
import re
from itertools import pairwise

from whence import _core
from whence._core import InlinedCall, SourceRange
from whence.handles._parts import EDGES, HandleTableError, Part, calls_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whence.handles._parts import Row

VERSION = 1
_NAMESPACE = re.compile("[0-9a-f]{32}")


def write(parts: tuple[Part, ...]) -> str:
    document = {"whence_handles": VERSION, "parts": [_part(part) for part in parts]}
    return json.dumps(document)


def read(text: str) -> tuple[Part, ...]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"the text is no JSON: {error}"
        raise HandleTableError(message) from None
    if not isinstance(document, dict) or "whence_handles" not in document:
        message = (
            "the JSON is no table of handles: give what HandleTable.to_json() said"
        )
        raise HandleTableError(message)
    if document["whence_handles"] != VERSION:
        message = (
            f"the JSON is of version {document['whence_handles']!r}, "
            f"this whence reads {VERSION}: install a newer one"
        )
        raise HandleTableError(message)
    try:
        parts = tuple(_read_part(part) for part in document["parts"])
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        message = f"the JSON is no table of handles: {type(error).__name__}: {error}"
        raise HandleTableError(message) from None
    if len({part.namespace for part in parts}) != len(parts):
        message = "the JSON has a namespace twice: merge the tables before writing them"
        raise HandleTableError(message)
    return parts


class _Shared:
    """What several records have in common, told once."""

    def __init__(self) -> None:
        self.ranges: dict[SourceRange, int] = {}
        self.calls: dict[InlinedCall, int] = {}
        self.rows: list[list[Any]] = []  # of the calls

    def range(self, place: SourceRange | None) -> int | None:
        if place is None:
            return None
        return self.ranges.setdefault(place, len(self.ranges))

    def call(self, stack: InlinedCall | None) -> int | None:
        new = []
        number = None
        for call in calls_of(stack):
            number = self.calls.get(call)
            if number is not None:
                break
            new.append(call)
        for call in reversed(new):
            named = [call.function, self.range(call.range), call.type, call.instance]
            self.rows.append([*named, number])
            number = self.calls.setdefault(call, len(self.calls))
        return number


def _part(part: Part) -> dict[str, Any]:
    shared = _Shared()
    records = []
    for place, handle in enumerate(part.handles()):
        of = part.record(place)
        row: list[Any] = [
            handle,
            shared.range(of.range),
            of.kind,
            shared.call(of.stack),
        ]
        records.append(row if of.edge is None else [*row, of.edge, list(of.parents)])
    return {
        "namespace": part.namespace,
        "top": part.top,
        "ranges": [
            [r.filename, r.line, r.column, r.end_line, r.end_column]
            for r in shared.ranges
        ],
        "calls": shared.rows,
        "records": records,
    }


def _read_part(part: dict[str, Any]) -> Part:
    ranges = [SourceRange(*fields) for fields in part["ranges"]]
    calls: list[InlinedCall] = []
    for function, range_, type_, instance, callee in part["calls"]:
        at, inner = _at(ranges, range_), _at(calls, callee)
        calls.append(InlinedCall(function, at, type_, instance, inner))
    rows: list[Row] = []
    for handle, range_, kind, stack, *edge in part["records"]:
        if type(handle) is not int or not 0 <= handle < 2**63 - 1:
            message = f"{handle!r} is no handle"
            raise ValueError(message)
        rows.append((handle, _at(ranges, range_), kind, _at(calls, stack), _edge(edge)))
    rows.sort(key=lambda row: row[0])
    for one, other in pairwise(rows):
        if one[0] == other[0]:
            message = f"handle {one[0]} is there twice"
            raise ValueError(message)
    namespace, top = part["namespace"], part["top"]
    # Two spellings would be two namespaces; bytes.fromhex() allows blanks, too.
    if type(namespace) is not str or not _NAMESPACE.fullmatch(namespace):
        digits = "it has 32 digits out of 0-9 and a-f"
        message = f"{namespace!r:.100} is no namespace: {digits}"
        raise ValueError(message)
    if top is not None and type(top) is not str:
        message = f"top must be a str, not {top!r}"
        raise TypeError(message)
    columns = _core.collect_handles(rows, top)
    return Part(columns, namespace, top, is_loaded=True)


def _at(items: list[Any], number: int | None) -> Any:
    if number is None:
        return None
    if type(number) is not int or not 0 <= number < len(items):
        message = f"{number!r} is no place in a list of {len(items)}"
        raise IndexError(message)
    return items[number]


def _edge(edge: list[Any]) -> tuple[int, tuple[int, ...]] | None:
    if not edge:
        return None
    kind, parents = edge
    if not all(type(parent) is int for parent in parents):
        message = f"parents are handles, not {parents!r}"
        raise TypeError(message)
    return EDGES.index(kind), tuple(parents)
