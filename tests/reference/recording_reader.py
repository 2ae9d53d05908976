"""The slow twin of the reader: what must be found in the bytes of a recording."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reference import call_reader, line_table, recent_addresses, work
from reference.recording import (
    CHUNK_MAGIC,
    CHUNK_OPENING,
    CLOSED,
    CLOSING,
    COMPACT,
    DAMAGED,
    EVENTS,
    FIXED,
    FREE,
    HEADER,
    KINDS,
    MAGIC,
    METADATA,
    OPEN,
    OPENING,
    PLAIN,
    REASONS,
    RECODED,
    RECORDING,
    RING,
    SEALED,
    U64,
    ZSTD,
    Bad,
    Deltas,
    Raw,
    Unpack,
    checksum,
    read_record,
    read_tags,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    cut: bool = False  # the file ends within it


@dataclass
class Decoded:
    """What a reader must find."""

    records: list[tuple[str, int, int, dict[str, Any]]] = field(default_factory=list)
    # The last is what the thread had said about itself: the number of a string.
    by_time: list[tuple[str, int, int, dict[str, Any], int]] = field(
        default_factory=list
    )
    pools: dict[int, str | None] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)
    memory_starts: list[int] = field(default_factory=list)
    spans: list[tuple[Any, ...]] = field(default_factory=list)
    recorded: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    damaged_chunks: int = 0
    problems: int = 0
    threads: list[tuple[Any, ...]] = field(default_factory=list)
    tasks: list[tuple[Any, ...]] = field(default_factory=list)
    awaits: list[tuple[int, ...]] = field(default_factory=list)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    exceptions: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def produced(self) -> int:
        return self.recorded + sum(self.dropped.values())


class NotARecording(Exception):
    pass


def read(
    data: bytes,
    unpack: Unpack | None = None,
    slice_: call_reader.Slice | None = None,  # of calls and exceptions
) -> Decoded:
    return _Reader(data, unpack, slice_).read()


def in_order(
    raws: list[tuple[Raw, int, int, Found]],
) -> list[tuple[Raw, int, int, int]]:
    """Events by time; at the same time by chunk, in which time does not go back.

    Each with the tags that were told last in its chunk by the thread that goes on.
    """
    latest: dict[int, int] = {}
    tags: dict[int, int] = {}
    keyed = []
    for number, (raw, thread, time, chunk) in enumerate(raws):
        if chunk.what == EVENTS and raw.code in KINDS:
            if raw.code in {0x4D, 0x65}:
                tags[chunk.offset] = raw.values[1] if raw.code == 0x4D else 0
            latest[chunk.offset] = max(time, latest.get(chunk.offset, 0))
            told = tags.get(chunk.offset, 0)
            keyed.append((latest[chunk.offset], number, raw, thread, told))
    keyed.sort(key=lambda item: item[:2])
    return [(raw, thread, time, told) for time, _, raw, thread, told in keyed]


class _Reader:
    def __init__(
        self, data: bytes, unpack: Unpack | None, slice_: call_reader.Slice | None
    ) -> None:
        self.data = data
        self.unpack = unpack
        self.slice = slice_
        self.out = Decoded()
        self.strings: dict[int, bytes] = {}
        self.task_numbers: list[tuple[int, int, int]] = []
        self.readings: list[tuple[int, int]] = []  # of both clocks, in chunk headers
        self.read_header()

    def read_header(self) -> None:
        data = self.data
        if len(data) < 512 or data[:8] != MAGIC:
            raise NotARecording
        if struct.unpack("<I", data[124:128])[0] != checksum(data[:124]):
            raise NotARecording
        opening = OPENING.unpack(data[:124])
        (_, major, _, self.header_size, self.file_id, self.chunk_size) = opening[:6]
        self.layout, _, _, self.rate = opening[6:10]
        self.start = opening[10:12]
        if major != 1:
            raise NotARecording
        closing = CLOSING.unpack(data[128:508])
        (seal,) = struct.unpack("<I", data[508:512])
        self.state = closing[0]
        self.good_end = seal == checksum(data[128:508]) or (
            seal == 0 and self.state != CLOSED
        )
        self.closed = self.good_end and seal != 0 and self.state != RECORDING
        self.end = closing[4:6]
        self.journal = closing[6:10]
        self.dropped = list(closing[10:26])
        self.produced, self.count = closing[27:29]
        if not self.good_end:
            self.out.problems += 1
            self.dropped = [0] * 16
            self.journal = (0, 0, 0, 0)

    def read(self) -> Decoded:
        self.out.problems += len(self.data) < self.header_size
        found = sorted(
            self.compact() if self.layout == COMPACT else self.fixed(),
            key=lambda chunk: (chunk.what != METADATA, chunk.sequence),
        )
        self.found = len(found)
        self.pairs = self.clock_pairs()
        for chunk in found:
            if chunk.what == METADATA:
                self.read_strings(chunk)
        raws = [item for chunk in found for item in self.read_chunk(chunk)]
        self.count_losses()
        for raw, thread, time, chunk in raws:
            if raw.code in KINDS:
                self.out.records.append(self.resolve(raw, thread, time))
            del chunk
        self.out.by_time = [
            (*self.resolve(raw, thread, time), tags)
            for raw, thread, time, tags in in_order(raws)
        ]
        self.out.texts = {n: text_of(data) for n, data in self.strings.items()}
        self.out.pools = {
            raw.values[0]: self.text(raw.values[1])
            for raw, _, _, chunk in raws
            if raw.code == 0x4C and chunk.what == METADATA
        }
        self.out.memory_starts = [
            self.at(time)
            for raw, _, time, chunk in raws
            if raw.code == 0x72 and chunk.what == METADATA
        ]
        self.out.spans = self.spans(raws)
        self.out.threads = self.thread_list()
        metadata = [raw for raw, _, _, chunk in raws if chunk.what == METADATA]
        self.codes = {raw.values[0]: raw.values for raw in metadata if raw.code == 0xC0}
        self.out.tasks = self.task_list(metadata)
        self.read_calls(metadata, raws)
        return self.out

    # Chunks

    def fixed(self) -> Iterator[Found]:
        for offset in range(self.header_size, len(self.data), self.chunk_size):
            cut = len(self.data) - offset < self.chunk_size
            header = self.data[offset : offset + HEADER]
            if len(header) < HEADER:
                self.out.problems += 1
                return
            state = int.from_bytes(header[4:8], "little")
            if state == FREE:
                # One that was never used is as long as its recorder came to make it.
                used = header[:4] != bytes(4) or header[16:24] != bytes(8)
                self.out.problems += cut and used
                continue
            closed = self.check(header, offset)
            if closed is None:
                continue
            closed.cut = cut
            room = self.data[offset + HEADER : offset + self.chunk_size]
            payload = room[: closed.bytes]
            whole = state == SEALED and len(payload) == closed.bytes
            if whole and checksum(payload) != self.payload_sum(header):
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
                recoded = int.from_bytes(header[100:104], "little")
                how = stored, coding, found.bytes, recoded
                payload = self.payload_of(body, *how)
                whole = payload is not None and len(payload) == found.bytes
                if payload is None or (
                    whole and checksum(payload) != self.payload_sum(header)
                ):
                    self.damage(header)
                else:
                    found.payload = payload
                    found.cut = len(body) < stored
                    yield found
            if not closing_good:
                return
            offset += HEADER + stored

    def payload_of(
        self, body: bytes, stored: int, coding: int, size: int, recoded: int
    ) -> bytes | None:
        most = self.chunk_size - HEADER
        cut = len(body) < stored  # then what is there counts, with nothing to check it
        if max(stored, size) > most:
            return None
        if coding == PLAIN:
            return body if stored == size else None
        unpacked = recoded if coding == RECODED else size
        if coding not in {ZSTD, RECODED} or self.unpack is None or unpacked > most:
            return None
        payload: bytes | None = self.unpack(body, unpacked, cut)
        if payload is None or (len(payload) != unpacked and not cut):
            return None
        if coding == RECODED:
            payload = recent_addresses.restore(payload, is_cut=cut)
        good = payload is not None and (len(payload) == size or cut)
        return payload if good else None

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
        fields = CHUNK_OPENING.unpack(header[:60])
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
        self.readings += [start] if pair is None else [start, pair]
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
        short = len(chunk.payload) < chunk.bytes or chunk.cut
        self.out.problems += cut or short or chunk.events != events
        return records

    def count_losses(self) -> None:
        index, sequence, before, after = self.journal
        if index:
            offset = self.header_size + (index - 1) * self.chunk_size
            header = self.data[offset : offset + HEADER]
            there = (
                self.layout == FIXED
                and len(header) == HEADER
                and header[4:8] != bytes(4)
                and int.from_bytes(header[16:24], "little") == sequence
            )
            self.dropped[RING] += before if there else after
        if self.closed:
            missing = self.produced - self.out.recorded - sum(self.dropped)
            self.dropped[DAMAGED] += max(missing, 0)
            fewer = self.found + self.out.damaged_chunks < self.count
            self.out.problems += missing > 0 or fewer
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

    def clock_pairs(self) -> list[tuple[int, int]]:
        readings = [self.start]
        if self.closed:
            readings.append(self.end)
        readings += self.readings
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
        time: int = left[1] + (ticks - left[0]) * rate[1] // rate[0]
        return min(time, U64)

    def at(self, ticks: int) -> int:
        time: int = self.monotonic(ticks) - self.start[1]
        return max(min(time, 2**63 - 1), -(2**63 - 1))

    def first_at(self, time: int) -> int:
        """Return the first ticks that are not before this time."""
        return call_reader.first_at(self.at, time)

    def lasted(self, end: int, duration: int) -> int:
        length: int = self.monotonic(end) - self.monotonic(end - min(duration, end))
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
        for raw, thread, time, _ in events:
            values = raw.values
            if raw.code == 0x62:
                if (thread, values[1]) not in ended:
                    begun[thread, values[1]] = (time, values[2])
            elif raw.code == 0xE2:
                tags[thread, values[0]] = values[1]
            elif raw.code in {0x80, 0x81, 0xC1}:
                if raw.code == 0xC1:
                    key = (values[1] & 0xFFFFFFFF, values[2])
                    name, duration, error = values[3], values[4], values[5] != 0
                else:
                    key = (thread, values[1])
                    name, duration, error = values[2], values[3], raw.code == 0x81
                data = tags.pop(key, b"")
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
            done.append(
                (self.text(name), key[0], self.at(time), None, label, False, True)
            )
        return done

    # Calls

    def function(self, code: int) -> str | None:
        _, name, qualname, *_ = self.codes.get(code, (0, 0, 0))
        return self.text(name) if self.text(qualname) is None else self.text(qualname)

    def task_list(self, metadata: list[Raw]) -> list[tuple[Any, ...]]:
        tasks: list[list[Any]] = []
        newest: dict[int, int] = {0: 0}
        for raw in metadata:
            if raw.code in {0xC3, 0xC4}:
                time, task, parent, name, code, _ = raw.values
                text = f"Task-{name}" if raw.code == 0xC4 and name else self.text(name)
                around = newest.get(parent) or None
                number = len(tasks) + 1
                tasks.append([number, text, around, self.function(code), self.at(time)])
                self.task_numbers.append((task, time, number))
                newest[task] = number if task else 0
            elif raw.code == 0x6F and newest.get(raw.values[1]):
                tasks[newest[raw.values[1]] - 1][1] = self.text(raw.values[2])
        return [tuple(task) for task in tasks]

    def task_at(self, number: int, time: int) -> int:
        """Return the id of the task that the number meant at that time, or 0."""
        found = sorted(
            (since, task)
            for one, since, task in self.task_numbers
            if one == number and since <= time
        )
        return found[-1][1] if found else 0

    def read_calls(
        self, metadata: list[Raw], raws: list[tuple[Raw, int, int, Found]]
    ) -> None:
        end = self.end[0] if self.closed else None
        self.line_maps = work.LineMaps(metadata)
        events = [raw[:3] for raw in raws if raw[3].what == EVENTS]
        done = work.work_of(
            events, metadata, self.text, self.at, self.first_at, self.start[0]
        )
        clock = self.at, self.lasted
        found = call_reader.Calls(metadata, end, *clock, self.slice, done)
        for raw, thread, time, chunk in raws:
            if chunk.what == EVENTS:
                found.take(raw, thread, time)
                if raw.code == 0x6D:
                    pair = (self.task_at(task, time) for task in raw.values[1:])
                    self.out.awaits.append(tuple(pair))
        found.finish()
        self.out.calls = [self.call(call) for call in found.calls]
        self.out.exceptions = [self.exception(event) for event in found.exceptions]

    def call(self, call: dict[str, Any]) -> tuple[Any, ...]:
        code = call["code"]
        known = self.codes.get(code)
        name = self.text(call["name"]) if code is None else self.function(code)
        place = (name, self.text(known[3]), known[4]) if known else (name, None, None)
        source = known and self.source_of(known)
        if source and self.text(source[1]) is not None:
            place = name, self.text(source[1]), work.line_of(source[2])
        return (
            *(call["place"] or place),
            *(call["start"], call["duration"], call["own"]),
            *(call["depth"], call["thread"], call["task"] or None, call["entered"]),
            *(call["left"], call["generator"] or None, call["number"]),
            *(call["parent"] or None, call["count"]),
        )

    def source_of(self, known: list[Any]) -> list[int] | None:
        """Give the place that generated code came from."""
        table = self.strings.get(known[5]) if known[5] else None
        lines = line_table.lines(table, known[4]) if table is not None else []
        if not 0 <= known[4] < 2**31:
            return None
        mapped = self.line_maps.maps.get(known[3], {})
        last = max([known[4], *lines])
        wanted = [known[4], *(n for n in sorted(mapped) if known[4] < n <= last)]
        return self.line_maps.first(known[3], wanted)

    def exception(self, event: dict[str, Any]) -> tuple[Any, ...]:
        known = self.codes.get(event["code"])
        table = self.strings.get(known[5]) if known and known[5] else None
        line = None
        if known and table is not None:
            line = line_table.line_at(table, known[4], event["offset"])
        place = (self.text(known[3]) if known else None, line)
        if known and line is not None:
            found = self.line_maps.places(known[3], line)
            if found:
                place = self.text(found[0][1]), work.line_of(found[0][2])
        return (
            *(self.text(event["type"]), event["kind"], self.at(event["time"])),
            *(event["thread"], self.function(event["code"])),
            *place,
        )
