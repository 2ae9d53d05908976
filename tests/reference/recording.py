"""The slow twin of the recording format: written from FORMAT.md, one line at a time.

``write()`` turns a ``File`` into bytes, in either layout; ``recording_reader`` turns
bytes into what a reader must find in them. Nothing is shared with the native code.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

MAGIC = bytes.fromhex("8957484E430D0A1A")
CHUNK_MAGIC = bytes.fromhex("5743484B")
FIXED, COMPACT = 0, 1
FREE, OPEN, SEALED = 0, 1, 2
EVENTS, METADATA = 1, 2
RECORDING, CLOSED, ENDED = 1, 2, 3
PLAIN, ZSTD, RECODED = 0, 1, 2
HEADER = 128
U64 = 2**64 - 1

REASONS = [
    *("none", "ring", "disk", "quota", "io", "memory", "file_limit", "limit"),
    *("too_large", "finalizing", "fork", "internal", "damaged", "hook_replaced"),
    *("unknown_layout", "tool_id_taken"),
]
RING, DAMAGED = REASONS.index("ring"), REASONS.index("damaged")

# kind: (name, is it an event, fields). A field is "name" or "name:type".
_TABLE = """
20 return        e time
21 unwind        e time
22 yield         e time
23 c_return      e time
24 c_raise       e time
25 gone          e time
26 unstarted     e time
40 call          e time code
43 mark          e time name:string
44 gc_begin      e time generation
46 c_call        e time name:string
47 open          e time code
60 counter       e time name:string value:signed
61 counter       e time name:string value:real
62 span_begin    e time span:span name:string
67 call          e time code generator:generator
68 resume        e time code generator:generator
69 throw         e time code generator:generator
6A open          e time code generator:generator
6B raised        e time type:string offset
6C handled       e time type:string offset
6D awaits        e time task:task awaited:task
80 span_end      e time span:span name:string duration:duration
81 span_error    e time span:span name:string duration:duration
49 freed         e time address:address
4A not_freed     e time address:address
4B resident      e time bytes
71 freed         e time address:address stack:near_stack
83 pool_freed    e time pool address:address stack:near_stack
86 segment_freed e time pool address:address stack:near_stack
84 folded        e time code calls duration:duration
88 raw_allocated e time address:address size stack:near_stack
89 mem_allocated e time address:address size stack:near_stack
8A obj_allocated e time address:address size stack:near_stack
8B malloc_allocated e time address:address size stack:near_stack
8C mmap_allocated e time address:address size stack:near_stack
90 raw_moved     e time address:address size stack:near_stack
91 mem_moved     e time address:address size stack:near_stack
92 obj_moved     e time address:address size stack:near_stack
93 malloc_moved  e time address:address size stack:near_stack
94 mmap_moved    e time address:address size stack:near_stack
97 unmapped      e time address:address size stack:near_stack
A2 pool_allocated e time pool address:address size stack:near_stack
A6 segment_allocated e time pool address:address size stack:near_stack
A5 out_of_memory e time domain size available stack:near_stack
A4 gc_end        e time generation collected uncollectable duration:duration
C1 span_end_away e time owner span name:string duration:duration error
C8 raw_in_use e time owner address:address size stack:near_stack age:duration
C9 mem_in_use e time owner address:address size stack:near_stack age:duration
CA obj_in_use e time owner address:address size stack:near_stack age:duration
CB malloc_in_use e time owner address:address size stack:near_stack age:duration
CC mmap_in_use e time owner address:address size stack:near_stack age:duration
C2 handle_event  e time backend:string handle:signed name:string ended duration
48 frames        - time stack
4D tags          - time tags:string
4E memory_state  - time blocks
70 frame_generator - time level generator:generator
65 owner         - time thread first_event
66 lost          - time reason:reason events
E2 span_tags     - span tags:bytes
27 calls_on      - time
28 calls_off     - time
29 memory_off    - time
2A work_on       - time
2B symbols_anew  - reserved
72 memory_on     - time domains detail
63 thread_name   - time thread name:string
64 thread_end    - time thread events
6E thread_frames - time thread stack
6F task_name     - time task:task name:string
85 thread_generator - time thread level generator:generator
4C pool          - id name:string
73 module        - id path:string build_id:string
74 python_run    - id parent python
82 stack         - id parent code offset:signed
87 native_stack  - id parent module address
A7 symbol        - module address name:string filename:string line
A0 thread        - time thread os_id name:string known
C0 code          - id name:string qualname:string filename:string first_line:signed \
line_table:string
C3 task          - time task:task parent:task name:string code generator:generator
C4 numbered_task - time task:task parent:task number code generator:generator
E0 string        - id text:bytes
E1 string_part   - id text:bytes
E3 info          - key:string value:bytes
E4 handle_table  - namespace:string part:bytes
E5 line_map      - file:string part:bytes
"""


@dataclass(frozen=True)
class Kind:
    code: int
    name: str
    event: bool
    fields: list[tuple[str, str]]


def _kinds() -> dict[int, Kind]:
    kinds = {}
    for line in _TABLE.strip().splitlines():
        code, name, event, *fields = line.split()
        pairs = [(f.partition(":")[0], f.partition(":")[2] or "number") for f in fields]
        pairs = [(n, "time" if n == "time" else t) for n, t in pairs]
        kinds[int(code, 16)] = Kind(int(code, 16), name, event == "e", pairs)
    return kinds


KINDS = _kinds()

# Checksums


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC = _crc_table()


def checksum(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _CRC[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


# Numbers


class Bad(Exception):
    """Bytes that are no record."""


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def take_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i in range(10):
        if at + i >= len(data):
            raise Bad
        byte = data[at + i]
        value |= (byte & 0x7F) << (7 * i)
        if value > U64:
            raise Bad
        if byte < 0x80:
            return value, at + i + 1
    raise Bad


def zigzag(value: int) -> int:
    return (2 * value) & U64 if value >= 0 else -2 * value - 1


def unzigzag(value: int) -> int:
    return value // 2 if value % 2 == 0 else -(value + 1) // 2


def _signed(value: int) -> int:
    """The same 64 bits, as a number that may be negative."""
    return value - 2**64 if value >= 2**63 else value


def real(value: float) -> int:
    return int(struct.unpack(">Q", struct.pack("<d", value))[0])


def unreal(value: int) -> float:
    return float(struct.unpack("<d", struct.pack(">Q", value))[0])


# Tags

Tag = tuple[int, Any]  # the number of its key, its value


class Other(str):
    """The name of a type whose values are not kept."""

    __slots__ = ()


def write_tags(tags: list[Tag]) -> bytes:
    out = b""
    for key, value in tags:
        out += varint(key)
        if value is None:
            out += b"\0"
        elif value is False:
            out += b"\1"
        elif value is True:
            out += b"\2"
        elif isinstance(value, int):
            out += b"\3" + varint(zigzag(value))
        elif isinstance(value, float):
            out += b"\4" + struct.pack("<d", value)
        else:
            text = value.encode("utf-8", "surrogatepass")
            out += b"\6" if isinstance(value, Other) else b"\5"
            out += varint(len(text)) + text
    return out


def read_tags(data: bytes) -> Iterator[Tag]:
    at = 0
    while at < len(data):
        try:
            key, at = take_varint(data, at)
            kind, at = data[at], at + 1
            value: Any = {0: None, 1: False, 2: True}.get(kind)
            if kind == 3:
                number, at = take_varint(data, at)
                value = unzigzag(number)
            elif kind == 4:
                (value,) = struct.unpack("<d", data[at : at + 8])
                at += 8
            elif kind in {5, 6}:
                size, at = take_varint(data, at)
                if size > len(data) - at:
                    return
                value = text_of(data[at : at + size])
                value = f"<{value}>" if kind == 6 else value
                at += size
            elif kind > 6:
                return
        except (Bad, IndexError, struct.error):
            return
        yield key, value


def text_of(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


# Records


@dataclass
class Raw:
    """A record: its kind and its fields with nothing relative about them."""

    code: int
    values: list[Any]


_RELATIVE = {"address", "generator", "task", "near_stack"}


class Deltas:
    """What fields of a chunk are relative to."""

    def __init__(self, start: int) -> None:
        self.time = start
        self._start_over()

    def _start_over(self) -> None:
        self.span = self.address = self.generator = self.task = self.near_stack = 0

    def write(self, type_: str, value: Any) -> int:
        if type_ == "time":
            delta = max(value - self.time, 0)
            self.time += delta
            return int(delta)
        if type_ == "span":
            return zigzag(_signed((value - self.span) & U64))
        if type_ == "address":
            value = (value >> 4) | (value & 15) << 60
        if type_ in _RELATIVE:
            delta = _signed((value - getattr(self, type_)) & U64)
            setattr(self, type_, value)
            return zigzag(delta)
        if type_ == "signed":
            return zigzag(value)
        return real(value) if type_ == "real" else int(value)

    def read(self, type_: str, raw: int) -> Any:
        if type_ == "time":
            self.time = (self.time + raw) & U64
            return self.time
        if type_ == "span":
            return (self.span + unzigzag(raw)) & U64
        if type_ in _RELATIVE:
            value = (getattr(self, type_) + unzigzag(raw)) & U64
            setattr(self, type_, value)
            return (value << 4) & U64 | value >> 60 if type_ == "address" else value
        if type_ == "signed":
            return unzigzag(raw)
        return unreal(raw) if type_ == "real" else raw

    def after(self, code: int, values: list[Any]) -> None:
        if code == 0x62:
            self.span = values[1]
        elif code == 0x65:
            self._start_over()


def write_record(record: Raw, deltas: Deltas) -> bytes:
    if record.code not in KINDS:
        return bytes([record.code]) + bytes(record.values[0])
    fields = KINDS[record.code].fields
    out, tail = b"", b""
    for (_, type_), value in zip(fields, record.values, strict=True):
        if type_ == "bytes":
            tail = bytes(value)
        else:
            out += varint(deltas.write(type_, value))
    deltas.after(record.code, record.values)
    if record.code >> 5 == 7:
        out = varint(len(out) + len(tail)) + out + tail
    return bytes([record.code]) + out


def read_record(data: bytes, at: int, deltas: Deltas) -> tuple[Raw, int]:
    code = data[at]
    shape = code >> 5
    kind = KINDS.get(code)
    at += 1
    if shape == 0:
        raise Bad
    end = len(data)
    count = shape
    if shape == 7:
        size, at = take_varint(data, at)
        if size > len(data) - at:
            raise Bad
        end = at + size
        count = len(kind.fields) - 1 if kind else 0
    values: list[Any] = []
    before = dict(vars(deltas))
    try:
        for i in range(count):
            raw, at = take_varint(data[:end], at)
            values.append(deltas.read(kind.fields[i][1], raw) if kind else raw)
    except Bad:
        vars(deltas).update(before)
        raise
    if shape == 7:
        values.append(data[at:end])
        at = end
    deltas.after(code, values)
    return Raw(code, values), at


# Files


@dataclass
class Chunk:
    sequence: int
    records: list[Raw]
    what: int = EVENTS
    thread: int = 0
    first_event: int = 0
    start: tuple[int, int] = (0, 0)  # ticks, monotonic
    end: tuple[int, int] = (0, 0)
    state: int = SEALED

    def payload(self) -> tuple[bytes, int]:
        """The bytes of its records, and how many of them are events."""
        deltas = Deltas(self.start[0])
        data = b"".join(write_record(record, deltas) for record in self.records)
        kinds = [KINDS.get(record.code) for record in self.records]
        return data, sum(kind is not None and kind.event for kind in kinds)


@dataclass
class File:
    chunks: list[Chunk]
    chunk_size: int = 4096
    header_size: int = 4096
    file_id: bytes = bytes(range(16))
    clock: int = 1
    pid: int = 1
    ticks_per_second: int = 1_000_000_000
    start: tuple[int, int] = (0, 0)
    end: tuple[int, int] = (0, 0)
    wall: int = 0
    max_size: int = 0
    keep: int = 0
    state: int = CLOSED
    reason: int = 0
    error: int = 0
    journal: tuple[int, int, int, int] = (0, 0, 0, 0)
    dropped: dict[int, int] = field(default_factory=dict)
    names_lost: int = 0
    produced: int = 0
    count: int = 0  # of chunks
    sealed: bool = True  # has its closing checksum, if its state is not 1
    version: tuple[int, int] = (1, 0)
    layout: int = FIXED


OPENING = struct.Struct("<8sHHI16sIIIIQQQQQQ28x")
CLOSING = struct.Struct("<IIiIQQ4Q16QQQQ164x")
CHUNK_OPENING = struct.Struct("<4sIQQIIQQQI")
CHUNK_CLOSING = struct.Struct("<QQQIIII20x")
assert OPENING.size == 124
assert CLOSING.size == 380
assert CHUNK_OPENING.size == 60
assert CHUNK_CLOSING.size == 60


def write_file_header(file: File, layout: int) -> bytes:
    opening = OPENING.pack(
        *(MAGIC, *file.version, file.header_size, file.file_id, file.chunk_size),
        *(layout, file.clock, file.pid, file.ticks_per_second, *file.start),
        *(file.wall, file.max_size, file.keep),
    )
    closing = CLOSING.pack(
        *(file.state, file.reason, file.error, 0, *file.end, *file.journal),
        *(file.dropped.get(reason, 0) for reason in range(16)),
        *(file.names_lost, file.produced, file.count),
    )
    seal = checksum(closing) if file.state != RECORDING and file.sealed else 0
    header = opening + struct.pack("<I", checksum(opening)) + closing
    header += struct.pack("<I", seal)
    return header.ljust(file.header_size, b"\0")


def write_chunk_header(
    file: File,
    chunk: Chunk,
    payload: bytes,
    events: int,
    stored: int,
    coding: int,
    recoded: int = 0,
) -> bytes:
    def opening(state: int) -> bytes:
        return CHUNK_OPENING.pack(
            *(CHUNK_MAGIC, state, int.from_bytes(file.file_id[:8], "little")),
            *(chunk.sequence, chunk.what, chunk.thread, chunk.first_event),
            *(*chunk.start, 0),
        )

    committed = events << 32 | len(payload)
    sealed = chunk.state == SEALED
    closing = CHUNK_CLOSING.pack(
        *(committed, *(chunk.end if sealed else (0, 0))),
        *((stored, coding, checksum(payload), recoded) if sealed else (0, 0, 0, 0)),
    )
    return (
        opening(chunk.state)
        + struct.pack("<I", checksum(opening(0)))
        + closing
        + struct.pack("<I", checksum(closing) if sealed else 0)
    )


Pack = Callable[[bytes], bytes]
Unpack = Callable[[bytes, int, bool], bytes]  # the last: the frame is cut


def write(file: File, layout: int = FIXED, pack: Pack | None = None) -> bytes:
    from reference import (
        recent_addresses,
    )

    out = write_file_header(file, layout)
    for chunk in file.chunks:
        payload, events = chunk.payload()
        assert len(payload) <= file.chunk_size - HEADER
        if layout == FIXED:
            header = write_chunk_header(file, chunk, payload, events, 0, PLAIN)
            out += (header + payload).ljust(file.chunk_size, b"\0")
            continue
        stored, coding, recoded = payload, PLAIN, b""
        if pack is not None:
            recoded = recent_addresses.recode(payload)
            packed = pack(recoded or payload)
            if len(packed) < len(payload):
                stored, coding = packed, RECODED if recoded else ZSTD
        size = len(recoded) if coding == RECODED else 0
        how = events, len(stored), coding, size
        out += write_chunk_header(file, chunk, payload, *how) + stored
    return out
