"""The slow twin of handle tables: written from native/handles/FORMAT.md.

``write()`` turns parts into the bytes of a file, ``read()`` turns bytes into parts, or
raises ``Refused`` with the name of what is wrong. Nothing is shared with the native
code.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAGIC = bytes.fromhex("8957 4844 4C0D 0A1A")
LARGEST_NUMBER = 2**31 - 1
LARGEST_HANDLE = 2**63 - 2
EDGES = ("fused", "split", "inlined", "rewritten")
# Of a string, a range, a call, a record, an edge and a parent: one for each column.
LEAST_BYTES = (1, 5, 5, 4, 3, 1)


@dataclass(frozen=True)
class Range:
    filename: int
    line: int
    column: int | None
    end_line: int | None
    end_column: int | None


@dataclass(frozen=True)
class Call:
    function: int
    range: int | None
    type: int | None
    instance: int | None
    callee: int | None


@dataclass(frozen=True)
class Record:
    handle: int
    range: int | None
    kind: int
    stack: int | None


@dataclass(frozen=True)
class Edge:
    record: int
    kind: int
    parents: list[int]


@dataclass
class Part:
    namespace: bytes
    strings: list[str] = field(default_factory=list)
    ranges: list[Range] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    top: int | None = None


class Refused(Exception):
    """A reader must not take this file; says why."""


def checksum(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def signed(value: int) -> bytes:
    return varint(value * 2 if value >= 0 else -value * 2 - 1)


def reference(place: int | None) -> bytes:
    return varint(0 if place is None else place + 1)


def deltas(values: list[int]) -> bytes:
    before = [0, *values]
    return b"".join(signed(value - before[i]) for i, value in enumerate(values))


def payload(part: Part) -> bytes:
    texts = [text.encode(errors="surrogatepass") for text in part.strings]
    parents = [parent for edge in part.edges for parent in edge.parents]
    counted = (texts, part.ranges, part.calls, part.records, part.edges, parents)
    out = b"".join(varint(len(column)) for column in counted)
    out += reference(part.top)
    out += b"".join(varint(len(text)) for text in texts) + b"".join(texts)
    out += deltas([r.filename for r in part.ranges])
    out += deltas([r.line for r in part.ranges])
    out += b"".join(reference(r.column) for r in part.ranges)
    for r in part.ranges:
        out += reference(None if r.end_line is None else r.end_line - r.line)
    out += b"".join(reference(r.end_column) for r in part.ranges)
    out += b"".join(varint(c.function) for c in part.calls)
    out += b"".join(reference(c.range) for c in part.calls)
    out += b"".join(reference(c.type) for c in part.calls)
    out += b"".join(reference(c.instance) for c in part.calls)
    for place, c in enumerate(part.calls):
        out += varint(0 if c.callee is None else place - c.callee)
    before = -1
    for record in part.records:
        out += varint(record.handle - before)
        before = record.handle
    out += deltas([0 if r.range is None else r.range + 1 for r in part.records])
    out += deltas([r.kind for r in part.records])
    out += deltas([0 if r.stack is None else r.stack + 1 for r in part.records])
    before = -1
    for edge in part.edges:
        out += varint(edge.record - before)
        before = edge.record
    out += b"".join(varint(edge.kind) for edge in part.edges)
    out += b"".join(varint(len(edge.parents)) for edge in part.edges)
    for edge in part.edges:
        own = part.records[edge.record].handle
        out += b"".join(signed(parent - own) for parent in edge.parents)
    return out


def sealed(header: bytes) -> bytes:
    return header + struct.pack("<I", checksum(header))


def write(
    parts: list[Part],
    *,
    major: int = 1,
    write_payload: Callable[[Part], bytes] = payload,
) -> bytes:
    body = b""
    for part in parts:
        data = write_payload(part)
        header = part.namespace + struct.pack("<QI", len(data), checksum(data))
        body += sealed(header) + data
    fixed = struct.pack("<HHIQI", major, 0, len(parts), 32 + len(body), 0)
    return sealed(MAGIC + fixed) + body


class Numbers:
    """The numbers of a payload, one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise Refused("damaged")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, most: int = 2**64 - 1) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            if shift == 63 and byte > 1:
                raise Refused("damaged")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if value > most:
            raise Refused("damaged")
        return value

    def signed(self) -> int:
        value = self.number()
        return -(value + 1) // 2 if value & 1 else value // 2

    def reference(self, size: int) -> int | None:
        value = self.number(size)
        return value - 1 if value else None

    def deltas(self, count: int, least: int, most: int) -> Iterator[int]:
        value = 0
        for _ in range(count):
            value += self.signed()
            if not least <= value <= most:
                raise Refused("damaged")
            yield value


def read_payload(data: bytes, namespace: bytes) -> Part:
    numbers = Numbers(data)
    # A count that the bytes left cannot hold is refused before anything is read.
    strings, ranges, calls, records, edges, parents = [
        numbers.number((len(data) - numbers.at) // least) for least in LEAST_BYTES
    ]
    part = Part(namespace, top=numbers.reference(strings))
    sizes = [numbers.number(LARGEST_NUMBER) for _ in range(strings)]
    for size in sizes:
        try:
            part.strings.append(numbers.take(size).decode(errors="surrogatepass"))
        except UnicodeDecodeError:
            raise Refused("damaged") from None
    _read_ranges(numbers, part, ranges)
    functions = [numbers.number(strings - 1) for _ in range(calls)]
    places = [numbers.reference(ranges) for _ in range(calls)]
    types = [numbers.reference(strings) for _ in range(calls)]
    instances = [numbers.reference(strings) for _ in range(calls)]
    for own in range(calls):
        back = numbers.number(own)
        callee = own - back if back else None
        fields = functions[own], places[own], types[own], instances[own]
        part.calls.append(Call(*fields, callee))
    _read_records(numbers, part, records)
    _read_edges(numbers, part, edges, parents)
    if numbers.at != len(data):
        raise Refused("damaged")
    return part


def _read_ranges(numbers: Numbers, part: Part, count: int) -> None:
    filenames = list(numbers.deltas(count, 0, len(part.strings) - 1))
    lines = list(numbers.deltas(count, 1, LARGEST_NUMBER))
    columns = [numbers.reference(LARGEST_NUMBER + 1) for _ in range(count)]
    ends = []
    for line in lines:
        more = numbers.reference(LARGEST_NUMBER + 1 - line)
        ends.append(None if more is None else line + more)
    end_columns = [numbers.reference(LARGEST_NUMBER + 1) for _ in range(count)]
    fields = zip(filenames, lines, columns, ends, end_columns, strict=True)
    part.ranges = [Range(*each) for each in fields]


def _read_records(numbers: Numbers, part: Part, count: int) -> None:
    handles = []
    handle = -1
    for _ in range(count):
        more = numbers.number(LARGEST_HANDLE + 1)
        if more == 0:
            raise Refused("twice")
        handle += more
        if handle > LARGEST_HANDLE:
            raise Refused("damaged")
        handles.append(handle)
    ranges = list(numbers.deltas(count, 0, len(part.ranges)))
    kinds = list(numbers.deltas(count, 0, len(part.strings) - 1))
    stacks = list(numbers.deltas(count, 0, len(part.calls)))
    part.records = [
        Record(handle, place - 1 if place else None, kind, stack - 1 if stack else None)
        for handle, place, kind, stack in zip(
            handles, ranges, kinds, stacks, strict=True
        )
    ]


def _read_edges(numbers: Numbers, part: Part, count: int, parents: int) -> None:
    places = []
    place = -1
    for _ in range(count):
        more = numbers.number()
        place += more
        if more == 0 or place >= len(part.records):
            raise Refused("damaged")
        places.append(place)
    kinds = [numbers.number(len(EDGES) - 1) for _ in range(count)]
    counts = [numbers.number(parents) for _ in range(count)]
    if sum(counts) != parents:
        raise Refused("damaged")
    for at, kind, size in zip(places, kinds, counts, strict=True):
        own = part.records[at].handle
        found = [own + numbers.signed() for _ in range(size)]
        if not all(0 <= parent <= LARGEST_HANDLE for parent in found):
            raise Refused("damaged")
        part.edges.append(Edge(at, kind, found))


def read_header(data: bytes) -> int:
    """Return how many parts there are."""
    if len(data) < 32:
        begins = data and MAGIC.startswith(data[:8])
        raise Refused("cut" if begins else "no_table")
    major, _, count, size, _, seal = struct.unpack_from("<HHIQII", data, 8)
    if data[:8] != MAGIC:
        raise Refused("no_table")
    if major > 1:
        raise Refused("too_new")
    if checksum(data[:28]) != seal or major != 1:
        raise Refused("damaged")
    if size != len(data):
        raise Refused("cut" if size > len(data) else "damaged")
    return int(count)


def read(data: bytes) -> list[Part]:
    parts: list[Part] = []
    rest = data[32:]
    for _ in range(read_header(data)):
        if len(rest) < 32:
            raise Refused("damaged")
        size, payload_seal, seal = struct.unpack_from("<QII", rest, 16)
        body = rest[32 : 32 + size]
        known = {part.namespace for part in parts}
        if checksum(rest[:28]) != seal or len(body) != size or rest[:16] in known:
            raise Refused("damaged")
        if checksum(body) != payload_seal:
            raise Refused("damaged")
        parts.append(read_payload(body, rest[:16]))
        rest = rest[32 + size :]
    if rest:
        raise Refused("damaged")
    return parts
