"""The slow twin of the recording format: written from FORMAT.md, one line at a time.

``write()`` turns a ``File`` into bytes, in either layout; ``read()`` turns any bytes
into what a reader must find in them. Nothing here is shared with the native code.
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
PLAIN, ZSTD = 0, 1
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
40 call          e time code:code
41 resume        e time code:code
42 throw         e time code:code
43 mark          e time name:string
44 gc_begin      e time generation
45 task_switch   e time task
46 c_call        e time name:string
60 counter       e time name:string value:signed
61 counter       e time name:string value:real
62 span_begin    e time span:span name:string
80 span_end      e time span:span name:string duration:duration
81 span_error    e time span:span name:string duration:duration
83 free          e time domain address:address stack
A2 allocation    e time domain address:address size stack
A4 gc_end        e time generation collected uncollectable duration:duration
C1 span_end_away e time owner span name:string duration:duration error
C2 handle_event  e time table handle:signed name:string backend:string duration:duration
65 owner         - time thread first_event
66 lost          - time reason:reason events
E2 span_tags     - span tags:bytes
63 thread_name   - time thread name:string
64 thread_end    - time thread events
82 stack         - id parent code offset:signed
A0 thread        - time thread os_id name:string known
A1 task          - time task parent name:string code
C0 code          - id name:string qualname:string filename:string first_line:signed \
line_table:string
E0 string        - id text:bytes
E1 string_part   - id text:bytes
E3 info          - key:string value:bytes
E4 handle_table  - table part:bytes
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

# Checksums -----------------------------------------------------------------------------


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


# Numbers -------------------------------------------------------------------------------


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


# Tags ----------------------------------------------------------------------------------

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


# Records -------------------------------------------------------------------------------


@dataclass
class Raw:
    """A record: its kind and its fields with nothing relative about them."""

    code: int
    values: list[Any]


class Deltas:
    """What fields of a chunk are relative to."""

    def __init__(self, start: int) -> None:
        self.time, self.span, self.address = start, 0, 0

    def write(self, type_: str, value: Any) -> int:
        if type_ == "time":
            delta = max(value - self.time, 0)
            self.time += delta
            return int(delta)
        if type_ == "span":
            return zigzag(_signed((value - self.span) & U64))
        if type_ == "address":
            delta = _signed((value - self.address) & U64)
            self.address = value
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
        if type_ == "address":
            self.address = (self.address + unzigzag(raw)) & U64
            return self.address
        if type_ == "signed":
            return unzigzag(raw)
        return unreal(raw) if type_ == "real" else raw

    def after(self, code: int, values: list[Any]) -> None:
        if code == 0x62:
            self.span = values[1]
        elif code == 0x65:
            self.span = self.address = 0


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
    before = (deltas.time, deltas.span, deltas.address)
    try:
        for i in range(count):
            raw, at = take_varint(data[:end], at)
            values.append(deltas.read(kind.fields[i][1], raw) if kind else raw)
    except Bad:
        deltas.time, deltas.span, deltas.address = before
        raise
    if shape == 7:
        values.append(data[at:end])
        at = end
    deltas.after(code, values)
    return Raw(code, values), at


# Files ---------------------------------------------------------------------------------


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
    version: tuple[int, int] = (1, 0)
    layout: int = FIXED


_OPENING = struct.Struct("<8sHHI16sIIIIQQQQQQ28x")
_CLOSING = struct.Struct("<IIiIQQ4Q16QQQ172x")
_CHUNK_OPENING = struct.Struct("<4sIQQIIQQQI")
_CHUNK_CLOSING = struct.Struct("<QQQIII24x")
assert _OPENING.size == 124
assert _CLOSING.size == 380
assert _CHUNK_OPENING.size == 60
assert _CHUNK_CLOSING.size == 60


def write_file_header(file: File, layout: int) -> bytes:
    opening = _OPENING.pack(
        *(MAGIC, *file.version, file.header_size, file.file_id, file.chunk_size),
        *(layout, file.clock, file.pid, file.ticks_per_second, *file.start),
        *(file.wall, file.max_size, file.keep),
    )
    closing = _CLOSING.pack(
        *(file.state, file.reason, file.error, 0, *file.end, *file.journal),
        *(file.dropped.get(reason, 0) for reason in range(16)),
        *(file.names_lost, file.produced),
    )
    seal = 0 if file.state == RECORDING else checksum(closing)
    header = opening + struct.pack("<I", checksum(opening)) + closing
    header += struct.pack("<I", seal)
    return header.ljust(file.header_size, b"\0")


def write_chunk_header(
    file: File, chunk: Chunk, payload: bytes, events: int, stored: int, coding: int
) -> bytes:
    def opening(state: int) -> bytes:
        return _CHUNK_OPENING.pack(
            *(CHUNK_MAGIC, state, int.from_bytes(file.file_id[:8], "little")),
            *(chunk.sequence, chunk.what, chunk.thread, chunk.first_event),
            *(*chunk.start, 0),
        )

    committed = events << 32 | len(payload)
    sealed = chunk.state == SEALED
    closing = _CHUNK_CLOSING.pack(
        *(committed, *(chunk.end if sealed else (0, 0))),
        *((stored, coding, checksum(payload)) if sealed else (0, 0, 0)),
    )
    return (
        opening(chunk.state)
        + struct.pack("<I", checksum(opening(0)))
        + closing
        + struct.pack("<I", checksum(closing) if sealed else 0)
    )


Pack = Callable[[bytes], bytes]
Unpack = Callable[[bytes, int], bytes]


def write(file: File, layout: int = FIXED, pack: Pack | None = None) -> bytes:
    out = write_file_header(file, layout)
    for chunk in file.chunks:
        payload, events = chunk.payload()
        assert len(payload) <= file.chunk_size - HEADER
        if layout == FIXED:
            header = write_chunk_header(file, chunk, payload, events, 0, PLAIN)
            out += (header + payload).ljust(file.chunk_size, b"\0")
            continue
        stored, coding = payload, PLAIN
        if pack is not None and len(pack(payload)) < len(payload):
            stored, coding = pack(payload), ZSTD
        header = write_chunk_header(file, chunk, payload, events, len(stored), coding)
        out += header + stored
    return out


# Reading -------------------------------------------------------------------------------


@dataclass
class Found:
    """A chunk as a reader finds it."""

    offset: int
    sequence: int
    what: int
    thread: int
    start: tuple[int, int]
    end: tuple[int, int] | None
    payload: bytes
    events: int
    bytes: int


@dataclass
class Decoded:
    """What a reader must find."""

    records: list[tuple[str, int, int, dict[str, Any]]] = field(default_factory=list)
    spans: list[tuple[Any, ...]] = field(default_factory=list)
    recorded: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    damaged_chunks: int = 0
    problems: int = 0
    threads: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def produced(self) -> int:
        return self.recorded + sum(self.dropped.values())


class NotARecording(Exception):
    pass


def read(data: bytes, unpack: Unpack | None = None) -> Decoded:
    return _Reader(data, unpack).read()


class _Reader:
    def __init__(self, data: bytes, unpack: Unpack | None) -> None:
        self.data = data
        self.unpack = unpack
        self.out = Decoded()
        self.strings: dict[int, bytes] = {}
        self.read_header()

    def read_header(self) -> None:
        data = self.data
        if len(data) < 512 or data[:8] != MAGIC:
            raise NotARecording
        if struct.unpack("<I", data[124:128])[0] != checksum(data[:124]):
            raise NotARecording
        opening = _OPENING.unpack(data[:124])
        (_, major, _, self.header_size, self.file_id, self.chunk_size) = opening[:6]
        self.layout, _, _, self.rate = opening[6:10]
        self.start = opening[10:12]
        if major != 1:
            raise NotARecording
        closing = _CLOSING.unpack(data[128:508])
        (seal,) = struct.unpack("<I", data[508:512])
        self.state = closing[0]
        expected = 0 if self.state == RECORDING else checksum(data[128:508])
        self.good_end = seal == expected
        self.end = closing[4:6]
        self.journal = closing[6:10]
        self.dropped = list(closing[10:26])
        self.produced = closing[27]
        if not self.good_end:
            self.out.problems += 1
            self.dropped = [0] * 16
            self.journal = (0, 0, 0, 0)

    def read(self) -> Decoded:
        found = sorted(
            self.compact() if self.layout == COMPACT else self.fixed(),
            key=lambda chunk: (chunk.what != METADATA, chunk.sequence),
        )
        self.pairs = self.clock_pairs(found)
        for chunk in found:
            if chunk.what == METADATA:
                self.read_strings(chunk)
        raws = [item for chunk in found for item in self.read_chunk(chunk)]
        self.count_losses()
        for raw, thread, time, chunk in raws:
            if raw.code in KINDS:
                self.out.records.append(self.resolve(raw, thread, time))
            del chunk
        self.out.spans = self.spans(raws)
        self.out.threads = self.thread_list()
        return self.out

    # Chunks

    def fixed(self) -> Iterator[Found]:
        for offset in range(self.header_size, len(self.data), self.chunk_size):
            header = self.data[offset : offset + HEADER]
            if len(header) < HEADER:
                self.out.problems += 1
                return
            state = int.from_bytes(header[4:8], "little")
            if state == FREE:
                continue
            closed = self.check(header, offset)
            if closed is None:
                continue
            room = self.data[offset + HEADER : offset + self.chunk_size]
            payload = room[: closed.bytes]
            if state == SEALED:
                good = len(payload) == closed.bytes
                if not good or checksum(payload) != self.payload_sum(header):
                    self.damage(header)
                    continue
            closed.payload = payload
            yield closed

    def compact(self) -> Iterator[Found]:
        offset = self.header_size
        while offset < len(self.data):
            header = self.data[offset : offset + HEADER]
            if len(header) < HEADER:
                self.out.problems += 1
                return
            found = self.check(header, offset)
            stored, coding = struct.unpack("<II", header[88:96])
            closing_good = self.closing_good(header)
            body = self.data[offset + HEADER : offset + HEADER + stored]
            if found is not None:
                payload = self.payload_of(body, stored, coding, found.bytes)
                if payload is None or checksum(payload) != self.payload_sum(header):
                    self.damage(header)
                else:
                    found.payload = payload
                    yield found
            if not closing_good:
                return
            offset += HEADER + stored

    def payload_of(
        self, body: bytes, stored: int, coding: int, size: int
    ) -> bytes | None:
        most = self.chunk_size - HEADER
        if len(body) < stored or stored > most or size > most:
            return None
        if coding == PLAIN:
            return body if stored == size else None
        if coding != ZSTD or self.unpack is None:
            return None
        payload = self.unpack(body, size)
        return payload if len(payload) == size else None

    @staticmethod
    def payload_sum(header: bytes) -> int:
        return int.from_bytes(header[96:100], "little")

    @staticmethod
    def closing_good(header: bytes) -> bool:
        return checksum(header[64:124]) == int.from_bytes(header[124:128], "little")

    def damage(self, header: bytes) -> None:
        self.out.damaged_chunks += 1
        self.out.problems += 1
        if self.closing_good(header):
            self.dropped[DAMAGED] += int.from_bytes(header[68:72], "little")

    def check(self, header: bytes, offset: int) -> Found | None:
        fields = _CHUNK_OPENING.unpack(header[:60])
        magic, state, file_id, sequence, what, thread, _, ticks, monotonic, _ = fields
        opening = header[:4] + bytes(4) + header[8:60]
        good = (
            magic == CHUNK_MAGIC
            and file_id == int.from_bytes(self.file_id[:8], "little")
            and sequence != 0
            and checksum(opening) == int.from_bytes(header[60:64], "little")
            and state in ((SEALED,) if self.layout == COMPACT else (OPEN, SEALED))
            and (state == OPEN or self.closing_good(header))
            and what in (EVENTS, METADATA)
        )
        if not good:
            self.damage(header)
            return None
        committed, *end = struct.unpack("<QQQ", header[64:88])
        size, events = committed & 0xFFFFFFFF, committed >> 32
        pair = (end[0], end[1]) if state == SEALED else None
        start = (ticks, monotonic)
        return Found(
            offset, sequence, what, thread, start, pair, b"", events, bytes=size
        )

    # Records

    def decode(self, chunk: Found) -> Iterator[tuple[Raw, int, int]]:
        """Each record with its thread and its time in ticks; then Bad, if so."""
        deltas = Deltas(chunk.start[0])
        thread = chunk.thread
        at = 0
        while at < len(chunk.payload):
            raw, at = read_record(chunk.payload, at, deltas)
            yield raw, thread, deltas.time
            if raw.code == 0x65:
                thread = raw.values[1] & 0xFFFFFFFF

    def read_strings(self, chunk: Found) -> None:
        try:
            for raw, _, _ in self.decode(chunk):
                if raw.code == 0xE0:
                    self.strings[raw.values[0]] = raw.values[1]
                elif raw.code == 0xE1:
                    before = self.strings.get(raw.values[0], b"")
                    self.strings[raw.values[0]] = before + raw.values[1]
        except Bad:
            pass

    def read_chunk(self, chunk: Found) -> list[tuple[Raw, int, int, Found]]:
        records = []
        cut = False
        try:
            for raw, thread, time in self.decode(chunk):
                records.append((raw, thread, time, chunk))
        except Bad:
            cut = True
        known = sum(raw.code in KINDS and KINDS[raw.code].event for raw, *_ in records)
        unknown = sum(raw.code not in KINDS for raw, *_ in records)
        events = max(known, min(chunk.events, known + unknown))
        self.out.recorded += events
        if chunk.events > events and chunk.events <= chunk.bytes // 2:
            self.dropped[DAMAGED] += chunk.events - events
        short = len(chunk.payload) < chunk.bytes
        self.out.problems += cut or short or chunk.events != events
        return records

    def count_losses(self) -> None:
        index, sequence, before, after = self.journal
        if index:
            offset = self.header_size + (index - 1) * self.chunk_size
            header = self.data[offset : offset + HEADER].ljust(HEADER, b"\0")
            there = (
                self.layout == FIXED
                and header[4:8] != bytes(4)
                and int.from_bytes(header[16:24], "little") == sequence
            )
            self.dropped[RING] += before if there else after
        if self.good_end and self.state != RECORDING:
            missing = self.produced - self.out.recorded - sum(self.dropped)
            if missing > 0:
                self.dropped[DAMAGED] += missing
                self.out.problems += 1
        named = zip(REASONS, self.dropped, strict=True)
        self.out.dropped = {reason: count for reason, count in named if count}

    def text(self, number: int) -> str | None:
        data = self.strings.get(number) if number else None
        return None if data is None else text_of(data)

    def tags(self, data: bytes) -> dict[str | None, Any]:
        return {self.text(key): value for key, value in read_tags(data)}

    def resolve(
        self, raw: Raw, thread: int, time: int
    ) -> tuple[str, int, int, dict[str, Any]]:
        kind = KINDS[raw.code]
        fields: dict[str, Any] = {}
        for (name, type_), value in zip(kind.fields, raw.values, strict=True):
            if type_ == "string":
                fields[name] = self.text(value)
            elif type_ == "duration":
                fields[name] = self.lasted(time, value)
            elif type_ == "reason":
                known = value < len(REASONS)
                fields[name] = REASONS[value] if known else "unknown"
            elif name == "tags":
                fields[name] = self.tags(value)
            elif kind.name == "info" and type_ == "bytes":
                fields[name] = text_of(value)
            elif type_ != "time":
                fields[name] = value
        return kind.name, thread, self.at(time), fields

    # Time

    def clock_pairs(self, chunks: list[Found]) -> list[tuple[int, int]]:
        readings = [self.start]
        if self.state != RECORDING and self.good_end:
            readings.append(self.end)
        for chunk in chunks:
            readings.append(chunk.start)
            if chunk.end is not None:
                readings.append(chunk.end)
        pairs: list[tuple[int, int]] = []
        for ticks, monotonic in sorted(readings):
            if not pairs or (ticks > pairs[-1][0] and monotonic >= pairs[-1][1]):
                pairs.append((ticks, monotonic))
        return pairs

    def monotonic(self, ticks: int) -> int:
        first, last = self.pairs[0], self.pairs[-1]
        whole = (last[0] - first[0], last[1] - first[1])
        rate = whole if whole[1] >= 1_000_000 else (self.rate, 1_000_000_000)
        if ticks < first[0]:
            return max(first[1] - (first[0] - ticks) * rate[1] // rate[0], 0)
        left = max(pair for pair in self.pairs if pair[0] <= ticks)
        later = [pair for pair in self.pairs if pair[0] > ticks]
        if later:
            right = min(later)
            rate = (right[0] - left[0], right[1] - left[1])
        return min(left[1] + (ticks - left[0]) * rate[1] // rate[0], U64)

    def at(self, ticks: int) -> int:
        time = self.monotonic(ticks) - self.start[1]
        return max(min(time, 2**63 - 1), -(2**63 - 1))

    def lasted(self, end: int, duration: int) -> int:
        length = self.monotonic(end) - self.monotonic(end - min(duration, end))
        return min(length, 2**63 - 1)

    # Threads and spans

    def thread_list(self) -> list[tuple[Any, ...]]:
        threads: dict[int, list[Any]] = {}
        for kind, _, time, fields in self.out.records:
            number = fields.get("thread")
            if kind == "thread" and number not in threads:
                start = None if fields["known"] else time
                os_id, name = fields["os_id"], fields["name"]
                threads[fields["thread"]] = [number, os_id, name, start, None]
            elif kind == "thread_name" and number in threads:
                threads[fields["thread"]][2] = fields["name"]
            elif kind == "thread_end" and number in threads:
                threads[fields["thread"]][4] = time
        return [tuple(thread) for thread in threads.values()]

    def spans(self, raws: list[tuple[Raw, int, int, Found]]) -> list[tuple[Any, ...]]:
        """Put spans together with everything at hand: ends may come before begins."""
        events = [item for item in raws if item[3].what == EVENTS]
        begun: dict[tuple[int, int], tuple[int, int]] = {}
        tags: dict[tuple[int, int], bytes] = {}
        done: list[tuple[Any, ...]] = []
        ended = {
            (raw.values[1] & 0xFFFFFFFF, raw.values[2])
            for raw, *_ in events
            if raw.code == 0xC1
        }
        for i, (raw, thread, time, chunk) in enumerate(events):
            values = raw.values
            before = events[i - 1][0] if i and events[i - 1][3] is chunk else None
            own = before.values if before and before.code == 0xE2 else None
            if raw.code == 0x62:
                if (thread, values[1]) not in ended:
                    begun[thread, values[1]] = (time, values[2])
            elif raw.code == 0xE2:
                after = events[i + 1][0] if i + 1 < len(events) else None
                same = after is not None and events[i + 1][3] is chunk
                away = same and after is not None and after.code == 0xC1
                follows = before and before.code == 0x62 and before.values[1] == values[0]
                if follows or not (away and after and after.values[2] == values[0]):
                    tags[thread, values[0]] = values[1]
            elif raw.code in {0x80, 0x81, 0xC1}:
                if raw.code == 0xC1:
                    key = (values[1] & 0xFFFFFFFF, values[2])
                    name, duration, error = values[3], values[4], values[5] != 0
                else:
                    key = (thread, values[1])
                    name, duration, error = values[2], values[3], raw.code == 0x81
                data = tags.pop(key, b"")
                if own is not None and own[0] == key[1]:
                    data = own[1]
                begun.pop(key, None)
                start = time - min(duration, time)
                done.append(
                    (
                        *(self.text(name), key[0], self.at(start)),
                        *(self.lasted(time, time - start), self.tags(data)),
                        *(error, False),
                    )
                )
        for key, (time, name) in sorted(
            begun.items(), key=lambda item: (item[1][0], *item[0])
        ):
            label = self.tags(tags.get(key, b""))
            done.append((self.text(name), key[0], self.at(time), None, label, False, True))
        return done
