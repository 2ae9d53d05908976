"""The slow twin of what lowered and generated code came from: FORMAT.md, in lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reference import handles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reference.recording import Raw

HANDLE_EVENT, HANDLE_TABLE, WORK_ON, LINE_MAP = 0xC2, 0xE4, 0x2A, 0xE5
LARGEST_LINE = 2**31 - 1
LONGEST_TEXT = 200
MOST_CALLS, MOST_ENDS, MOST_MET, MOST_NAMED = 500, 100, 10_000, 4

Place = tuple[str | None, str | None, int | None]  # name, file, line


class End(NamedTuple):
    """A handle that nothing further is behind, in its table."""

    part: handles.Part
    record: handles.Record


class Sources:
    """Where work came from: the tables of a recording."""

    def __init__(self, metadata: Iterable[Raw]) -> None:
        streams: dict[int, bytes] = {}
        for raw in metadata:
            if raw.code == HANDLE_TABLE:
                stream, part = raw.values
                streams[stream] = streams.get(stream, b"") + part
        self.parts: list[handles.Part] = []
        for stream in sorted(streams):
            self.take(streams[stream])

    def take(self, rest: bytes) -> None:
        while handles.MAGIC in rest:
            rest = rest[rest.index(handles.MAGIC) :]
            size = int.from_bytes(rest[16:24], "little")
            try:
                self.parts += handles.read(rest[:size])
                rest = rest[size:]
            except handles.Refused:
                rest = rest[8:]

    def find(self, handle: int, namespace: bytes | None) -> End | None:
        found = [
            End(part, record)
            for part in self.parts
            for record in part.records
            if record.handle == handle and namespace in (None, part.namespace)
        ]
        if len({end.part.namespace for end in found}) != 1:
            return None
        return found[-1]

    def ends(self, first: End) -> list[End]:
        waiting = [first]
        ends: list[End] = []
        for part, record in waiting:
            if len(ends) == MOST_ENDS:
                break
            own = part.records.index(record)
            edges = [edge for edge in part.edges if edge.record == own]
            if record.range is not None or not edges:
                ends.append(End(part, record))
                continue
            for handle in edges[0].parents:
                parent = self.find(handle, part.namespace) or self.find(handle, None)
                met = any(parent and parent[1] is end[1] for end in waiting)
                if parent and not met and len(waiting) < MOST_MET:
                    waiting.append(parent)
        return ends

    def path(self, backend: str, handle: int, name: str) -> list[Place]:
        """Give the places of work, outermost first."""
        namespace, colon, who = backend.partition(":")
        who = who if colon else backend
        label = f"{name[:LONGEST_TEXT]} ({who[:LONGEST_TEXT]})"
        told = None
        if colon and len(namespace) == 32 and set(namespace) <= set("0123456789abcdef"):
            told = bytes.fromhex(namespace)
        known = self.find(handle, told)
        ends = self.ends(known) if known else []
        if not ends:
            return [(label, None, None)]
        path = sites(ends[0])
        for end in ends[1:]:
            other = sites(end)
            while path != other[: len(path)]:
                path.pop()
        where = hierarchy(ends)
        label += f" in {where}" if where else ""
        if len(ends) > 1:
            own = file_of(ends[0])
            label += ", from " + ", ".join(
                place_text(e, own) for e in ends[:MOST_NAMED]
            )
            more = len(ends) - MOST_NAMED
            label += f" and {more} more" if more > 0 else ""
        return [*path, place(ends[0].part, label, ends[0].record.range)]


def place(part: handles.Part, name: str, at: int | None) -> Place:
    if at is None:
        return name, None, None
    found = part.ranges[at]
    return name, part.strings[found.filename], found.line


def text(part: handles.Part, number: int | None) -> str:
    return "<unknown>" if number is None else part.strings[number][:LONGEST_TEXT]


def calls_of(end: End) -> list[handles.Call]:
    calls: list[handles.Call] = []
    at = end.record.stack
    while at is not None and len(calls) < MOST_CALLS:
        calls.append(end.part.calls[at])
        at = calls[-1].callee
    return calls


def sites(end: End) -> list[Place]:
    name = "<top>" if end.part.top is None else text(end.part, end.part.top)
    path = []
    for call in calls_of(end):
        path.append(place(end.part, name, call.range))
        name = text(end.part, call.function)
    return path


def hierarchy(ends: list[End]) -> str:
    """The modules around all of them; and for one alone, what it is there."""

    levels = levels_of(ends[0])
    for other in ends[1:]:
        same = [a == b for a, b in zip(levels, levels_of(other), strict=False)]
        levels = levels[: [*same, False].index(False)]
    if not any(is_known for _, is_known in levels):
        return ""
    own = [text(ends[0].part, ends[0].record.kind)] if len(ends) == 1 else []
    return ".".join([level for level, _ in levels] + own)


def levels_of(end: End) -> list[tuple[str, bool]]:
    """Each level, outermost first, and whether anybody has said anything of it."""

    def short(number: int | None) -> str:
        return text(end.part, number).rpartition(".")[2]

    levels = [(f"top({short(end.part.top)})", end.part.top is not None)]
    for call in calls_of(end):
        name = f"{text(end.part, call.instance)}({short(call.type)})"
        is_known = call.type is not None or call.instance is not None
        levels.append((f"{name}::{text(end.part, call.function)}", is_known))
    return levels


def file_of(end: End) -> str | None:
    at = end.record.range
    return None if at is None else text(end.part, end.part.ranges[at].filename)


def place_text(end: End, own: str | None) -> str:
    kind = text(end.part, end.record.kind)
    if end.record.range is None:
        return kind
    found = end.part.ranges[end.record.range]
    file = text(end.part, found.filename)
    return f"{kind} at " + (
        f"line {found.line}" if file == own else f"{file}:{found.line}"
    )


class Work(NamedTuple):
    """A call that nobody saw begin, and those that were inlined around it."""

    start: int
    end: int
    path: list[Place]


def work_of(
    events: Iterable[tuple[Raw, int, int]],
    metadata: list[Raw],
    string: Callable[[int], str | None],
    at: Callable[[int], int],
    first_at: Callable[[int], int],
    begin: int,  # ticks
) -> dict[int, list[Work]]:
    """Give the work of each thread, in the order in which it begins."""
    found: dict[int, list[Work]] = {}
    if not any(raw.code == WORK_ON for raw in metadata):
        return found
    sources = Sources(metadata)

    def before(ticks: int, ago: int) -> int:
        if ticks <= begin:
            return ticks
        wanted = at(ticks) - ago
        return begin if wanted <= at(begin) else min(first_at(wanted), ticks)

    for raw, thread, time in events:
        if raw.code == HANDLE_EVENT:
            _, backend, handle, name, ended, duration = raw.values
            path = sources.path(string(backend) or "", handle, string(name) or "")
            end = before(time, ended)
            found.setdefault(thread, []).append(Work(before(end, duration), end, path))
    for work in found.values():
        work.sort(key=lambda each: (each.start, -each.end))
    return found


class LineMaps:
    """What lines of generated files came from; files and names are numbers."""

    def __init__(self, metadata: Iterable[Raw]) -> None:
        self.numbers: dict[int, int] = {}
        self.maps: dict[int, dict[int, list[list[int]]]] = {}
        for raw in metadata:
            if raw.code == LINE_MAP and raw.values[0]:
                self.take(*raw.values)

    def take(self, file: int, part: bytes) -> None:
        numbers = handles.Numbers(part)
        try:
            number = numbers.number()
            if number < self.numbers.get(file, 0):
                return
            if number > self.numbers.get(file, 0) or file not in self.maps:
                self.numbers[file], self.maps[file] = number, {}
            before = -1
            while True:
                line, count = numbers.number(), numbers.number()
                if not before < line <= LARGEST_LINE or count > len(part) - numbers.at:
                    return
                places = [[numbers.number() for _ in range(6)] for _ in range(count)]
                self.maps[file][line] = places
                before = line
        except handles.Refused:
            pass

    def places(self, file: int, line: int) -> list[list[int]]:
        """Give the places that a line came from, innermost first."""
        lines = [first for first in self.maps.get(file, {}) if first <= line]
        return self.maps[file][max(lines)][:30] if lines else []

    def first(self, file: int, lines: Iterable[int]) -> list[int] | None:
        """Give the innermost place of the first of these lines that has one."""
        for line in lines:
            if found := self.places(file, line):
                return found[0]
        return None


def line_of(stored: int) -> int | None:
    """Give a line that is stored one larger."""
    return stored - 1 if 0 < stored <= LARGEST_LINE + 1 else None
