"""Recordings for tests: one with every kind of record, and random ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reference.recording import (
    EVENTS,
    HEADER,
    KINDS,
    METADATA,
    OPEN,
    RECORDING,
    SEALED,
    Chunk,
    Deltas,
    File,
    Other,
    Raw,
    varint,
    write_record,
    write_tags,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable

_METADATA_KINDS = {
    *(0x27, 0x28, 0x29, 0x63, 0x64, 0x6E, 0x6F, 0x72, 0x82, 0x85, 0xA0, 0xC0),
    *(0xC3, 0xC4, 0xE0, 0xE1, 0xE3, 0xE4, 0x2B, 0x73, 0x74, 0x87, 0xA7),
}
TAGS = [
    *((1, None), (2, False), (3, True), (4, -5), (5, 2.5)),
    *((6, "tëxt"), (7, Other("list"))),
]
TEXTS = [
    *("program", "python", "whence", "app.py", "3.14.0", "0.1.0", "MainThread"),
    *("load", "request", "größe", "\ud800 lone", "\x1b[31mred", "<lambda>"),
]


def events_in(records: Iterable[Raw]) -> int:
    return sum(r.code in KINDS and KINDS[r.code].event for r in records)


def every_kind(copies: int = 1, chunk_size: int = 4096) -> File:
    """A closed recording with every kind of record, in as many chunks as it takes."""
    strings = [
        Raw(0xE0, [number, text.encode("utf-8", "surrogatepass")])
        for number, text in enumerate(TEXTS, 1)
    ]
    metadata = [
        *strings,
        *(Raw(0xE0, [20, b"part one, "]), Raw(0xE1, [20, b"part two"])),
        *(Raw(0xE0, [21, b"\x80\x00"]), Raw(0xE0, [22, b"not \xff utf-8"])),
        *(Raw(0xE3, [1, b"app.py"]), Raw(0xE3, [2, b"3.14.0"])),
        *(Raw(0xE3, [3, b"0.1.0"]), Raw(0xC0, [1, 8, 8, 4, -1, 21])),
        Raw(0xC0, [2, 8, 9, 4, 40, 21]),
        *(Raw(0x82, [1, 0, 1, 6]), Raw(0x82, [2, 1, 1, -1])),
        *(Raw(0x73, [1, 4, 5]), Raw(0x87, [3, 0, 1, 4_096]), Raw(0x74, [4, 3, 1])),
        *(Raw(0x87, [5, 4, 0, 1]), Raw(0x87, [6, 5, 1, 8_192]), Raw(0x74, [7, 6, 2])),
        *(Raw(0xA7, [1, 4_096, 9, 4, 1]), Raw(0x2B, [0])),
        *(Raw(0xA7, [1, 8_192, 8, 4, 12]), Raw(0xA7, [1, 8_192, 9, 4, 0])),
        *(Raw(0xA0, [1_010, 1, 4242, 7, 1]), Raw(0xA0, [1_020, 2, 4243, 0, 0])),
        *(Raw(0x63, [1_030, 2, 20]), Raw(0xC3, [1_040, 1, 0, 9, 1, 7])),
        *(Raw(0xC4, [1_050, 2, 1, 8, 1, 3]), Raw(0x27, [1_060])),
        *(Raw(0x6F, [1_055, 1, 8]), Raw(0xE4, [1, b"table"])),
        *(Raw(0x2A, [1_056]), Raw(0xE5, [4, bytes([1, 3, 1, 8, 9, 42, 5, 42, 9])])),
        *(Raw(0x6E, [1_070, 2, 1]), Raw(0x85, [1_070, 2, 1, 3])),
        *(Raw(0x64, [9_000, 2, 12]), Raw(0x28, [9_500])),
        *(Raw(0x72, [9_500, 7, 2]), Raw(0x29, [9_500]), Raw(0x4C, [8, 4])),
    ]
    chunks = _chunks(1, metadata, METADATA, 0, chunk_size, (1_000, 5_000_100))
    first: list[Raw] = []
    second: list[Raw] = []
    for copy in range(copies):
        first += _thread_one(2_000 + 400 * copy, 10 * copy)
        second += _thread_two(2_100 + 400 * copy, 10 * copy)
    start = (1_900, 5_001_000)
    chunks += _chunks(len(chunks) + 1, first, EVENTS, 1, chunk_size, start)
    chunks += _chunks(len(chunks) + 1, second, EVENTS, 2, chunk_size, start)
    events = events_in(first) + events_in(second)
    end = max(chunk.end[0] for chunk in chunks) + 1_000
    return File(
        chunks,
        chunk_size=chunk_size,
        clock=2,
        pid=777,
        ticks_per_second=3_000_000,
        start=(1_000, 5_000_000),
        end=(end, 5_000_000 + end * 10),
        wall=1_700_000_000_000_000_000,
        max_size=1 << 30,
        keep=30_000_000_000,
        dropped={1: 5, 2: 7, 8: 1},
        names_lost=2,
        produced=events + 13,
        count=len(chunks),
        journal=(0, 0, 0, 0),
    )


def _thread_one(time: int, span: int) -> list[Raw]:
    return [
        *_calls(time - 40),
        *(Raw(0x40, [time, 2]), Raw(0x6B, [time + 1, 9, 0]), Raw(0x20, [time + 3])),
        *(Raw(0x6C, [time + 4, 9, 0]), Raw(0x43, [time + 8, 8])),
        *(Raw(0x44, [time + 9, 2]), Raw(0xA4, [time + 19, 2, 30, 1, 10])),
        Raw(0x60, [time + 21, 10, -12]),
        *(Raw(0x61, [time + 22, 10, 0.1]), Raw(0x62, [time + 23, span + 1, 9])),
        *(Raw(0xE2, [span + 1, write_tags(TAGS)]), Raw(0x62, [time + 24, span + 2, 8])),
        Raw(0x81, [time + 30, span + 2, 8, 6]),
        *_memory(time + 31),
        *(Raw(0x66, [time + 33, 2, 7]), Raw(0x80, [time + 40, span + 1, 9, 17])),
        Raw(0x62, [time + 41, span + 3, 12]),
        Raw(0xC2, [time + 42, 1, -7, 8, 9, 4]),
    ]


def _memory(time: int) -> list[Raw]:
    """Blocks of every domain, and what else can be told of memory."""
    place = 0x7FFF_0000_1000
    return [
        Raw(0xA2, [time, 1, place, 512, 2]),
        *(Raw(0xA6, [time, 8, place, 4_096, 2]), Raw(0x86, [time, 8, place, 0])),
        Raw(0x4D, [time, 1]),
        *(Raw(0x88 + n, [time, place + 48 * n + 7, 40 + n, 2]) for n in range(5)),
        *(Raw(0x90 + n, [time, place + 64 * n, 90 * n, 1]) for n in range(5)),
        *(Raw(0x49, [time + 1, place + 7]), Raw(0x4A, [time + 1, place + 7])),
        Raw(0x4E, [time + 1, 5]),
        *(Raw(0xC8 + n, [time + 1, 1, place + n, 9, 2, 40]) for n in range(5)),
        Raw(0x97, [time + 1, place + 64 * 4, 4096, 0]),
        *(Raw(0x71, [time + 1, place + 7, 2]), Raw(0xA5, [time + 1, 2, 1 << 40, 0, 1])),
        *(Raw(0x4B, [time + 1, 1 << 24]), Raw(0x83, [time + 1, 1, place, 0])),
    ]


def _calls(time: int) -> list[Raw]:
    """Frames entered and left in every way there is."""
    return [
        *(Raw(0x48, [time, 2]), Raw(0x70, [time, 2, 3]), Raw(0x47, [time, 1])),
        *(Raw(0x67, [time + 1, 1, 7]), Raw(0x22, [time + 2])),
        *(Raw(0x68, [time + 3, 1, 7]), Raw(0x6D, [time + 4, 1, 2])),
        *(Raw(0x22, [time + 5]), Raw(0x69, [time + 6, 1, 7]), Raw(0x21, [time + 7])),
        *(Raw(0x6A, [time + 8, 1, 3]), Raw(0x46, [time + 9, 13])),
        *(Raw(0x46, [time + 10, 13]), Raw(0x24, [time + 11]), Raw(0x23, [time + 12])),
        *(Raw(0x84, [time + 20, 1, 3, 6]), Raw(0x40, [time + 21, 1])),
        *(Raw(0x26, [time + 22]), Raw(0x25, [time + 23]), Raw(0x20, [time + 24])),
    ]


def _thread_two(time: int, span: int) -> list[Raw]:
    return [
        Raw(0x43, [time, 22]),
        *(Raw(0x62, [time + 1, span + 1, 11]), Raw(0xE2, [span + 1, write_tags(TAGS)])),
        Raw(0xC1, [time + 2, 1, span + 3, 12, 61, 1]),
        *(Raw(0x65, [time + 3, 1, 500]), Raw(0x43, [time + 4, 999])),
        Raw(0x65, [time + 5, 2, 600]),
    ]


def _chunks(
    sequence: int,
    records: list[Raw],
    what: int,
    thread: int,
    chunk_size: int,
    start: tuple[int, int],
) -> list[Chunk]:
    """Distribute records over sealed chunks, each as full as it gets."""
    chunks: list[Chunk] = []
    size = chunk_size  # so that the first record opens a chunk
    deltas = Deltas(start[0])
    for record in records:
        size += len(write_record(record, deltas)) + 10
        if size > chunk_size - HEADER:
            begin = (max(start[0], deltas.time - 50), 0)
            begin = (begin[0], start[1] + 10 * (begin[0] - start[0]))
            chunk = Chunk(sequence + len(chunks), [], what, thread, 0, begin)
            chunks.append(chunk)
            deltas = Deltas(begin[0])
            size = len(write_record(record, deltas))
        chunks[-1].records.append(record)
        end = deltas.time + 5
        chunks[-1].end = (end, start[1] + 10 * (end - start[0]))
    return chunks


def hard_to_pack(rng: random.Random, size: int = 20_000) -> File:
    """Every kind of record, and enough noise to be of some size when packed, too."""
    file = every_kind()
    file.header_size = 512
    for _ in range(0, size - 3_500, 3_500):
        noise = [Raw(0xE4, [2, rng.randbytes(500)]) for _ in range(7)]
        sequence = file.chunks[-1].sequence + 1
        (chunk,) = _chunks(sequence, noise, METADATA, 0, 4096, (1_000, 5_000_100))
        file.chunks.append(chunk)
    file.count = len(file.chunks)
    return file


def span_story(rng: random.Random) -> tuple[File, list[tuple[Any, ...]]]:
    """Threads that begin and end spans, also each other's, and what a reader must say.

    Spans come as (name, thread, start, duration, tags, error, open), in any order.
    """
    story = _SpanStory(rng)
    for _ in range(rng.randint(1, 120)):
        story.step()
    return story.finish()


class _SpanStory:
    """Ticks are nanoseconds here, so that times need no arithmetic."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.now = 1_000
        self.chunks: list[Chunk] = []
        self.current: dict[int, Chunk] = {}
        self.numbers = dict.fromkeys((1, 2, 3), 0)
        # (thread, number): name, start, tags, the chunk of its begin
        self.open: dict[tuple[int, int], tuple[int, int, list[Any], Chunk]] = {}
        self.done: list[tuple[Any, ...]] = []

    def chunk(self, thread: int) -> Chunk:
        if thread not in self.current or self.rng.random() < 0.1:
            chunk = Chunk(len(self.chunks) + 2, [], EVENTS, thread)
            chunk.start = (self.now, self.now)
            self.chunks.append(chunk)
            self.current[thread] = chunk
        return self.current[thread]

    def step(self) -> None:
        self.now += self.rng.randint(1, 9)
        thread = self.rng.randint(1, 3)
        chunk = self.chunk(thread)
        if self.open and self.rng.random() < 0.5:
            self.end(thread, chunk)
        elif self.rng.random() < 0.2:
            chunk.records.append(Raw(0x43, [self.now, 1]))
        else:
            self.numbers[thread] += 1
            number, name = self.numbers[thread], self.rng.randint(1, 5)
            tags = self.rng.choice([[], TAGS[:2], TAGS[3:6]])
            chunk.records.append(Raw(0x62, [self.now, number, name]))
            if tags:
                chunk.records.append(Raw(0xE2, [number, write_tags(tags)]))
            self.open[thread, number] = (name, self.now, tags, chunk)

    def end(self, thread: int, chunk: Chunk) -> None:
        owner, number = self.rng.choice(list(self.open))
        name, start, tags, begun_in = self.open.pop((owner, number))
        duration, error = self.now - start, self.rng.random() < 0.3
        if tags and begun_in is not chunk and owner == thread:
            chunk.records.append(Raw(0xE2, [number, write_tags(tags)]))
        if owner == thread:
            code = 0x81 if error else 0x80
            chunk.records.append(Raw(code, [self.now, number, name, duration]))
        else:
            values = [self.now, owner, number, name, duration, int(error)]
            chunk.records.append(Raw(0xC1, values))
        elsewhere = owner != thread and chunk.sequence < begun_in.sequence
        told = [] if elsewhere else tags  # the end is read before the begin
        self.tell(owner, name, start, told, duration=duration, error=error)

    def tell(
        self,
        thread: int,
        name: int,
        start: int,
        tags: list[Any],
        *,
        duration: int | None,
        error: bool,
    ) -> None:
        texts = {TEXTS[key - 1]: value for key, value in tags}
        line = (TEXTS[name - 1], thread, start, duration, texts, error)
        self.done.append((*line, duration is None))

    def finish(self) -> tuple[File, list[tuple[Any, ...]]]:
        for (thread, _), (name, start, tags, _) in self.open.items():
            self.tell(thread, name, start, tags, duration=None, error=False)
        names = [
            Raw(0xE0, [number, text.encode("utf-8", "surrogatepass")])
            for number, text in enumerate(TEXTS, 1)
        ]
        for chunk in self.chunks:
            chunk.end = (self.now, self.now)
        self.chunks.insert(0, Chunk(1, names, METADATA, 0, end=(self.now, self.now)))
        return File(self.chunks, end=(self.now, self.now)), self.done


# Random recordings


def random_file(rng: random.Random) -> File:
    """A recording as no recorder would write it, but as a reader must take it."""
    times = _Times(rng)
    chunks = []
    sequence = 0
    for _ in range(rng.randint(1, 8)):
        sequence += rng.randint(1, 3)
        what = rng.choice([EVENTS, EVENTS, METADATA])
        chunks.append(_random_chunk(rng, sequence, what, times))
    rng.shuffle(chunks)
    file = File(
        chunks,
        chunk_size=4096,
        ticks_per_second=rng.choice([10**9, 3 * 10**9, 24_000_000, 1]),
        start=times.pair(),
        wall=rng.getrandbits(62),
        state=rng.choice([1, 2, 3]),
        reason=rng.randint(0, 15),
        error=rng.choice([0, 28]),
        dropped={rng.randrange(16): rng.getrandbits(20) for _ in range(3)},
        names_lost=rng.getrandbits(3),
        produced=rng.choice([0, rng.getrandbits(8)]),
        count=rng.choice([0, 0, len(chunks), len(chunks) + 1]),
    )
    times.now += rng.getrandbits(20)
    file.end = (0, 0) if file.state == RECORDING else times.pair()
    if rng.random() < 0.5:
        index = rng.randint(1, len(chunks) + 1)
        sequence = rng.choice([chunk.sequence for chunk in chunks])
        file.journal = (index, sequence, 100, 120)
    return file


class _Times:
    """A clock with odd habits."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.now = rng.choice([0, 1_000, 2**40, 2**63])
        self.rate = rng.choice([1, 3, 0.4])
        self.base = rng.getrandbits(40)
        self.begin = self.now

    def pair(self) -> tuple[int, int]:
        noise = self.rng.choice([0, 0, 0, -100_000])
        time = self.base + int((self.now - self.begin) / self.rate) + noise
        return self.now, max(time, 0)


def _random_chunk(rng: random.Random, sequence: int, what: int, times: _Times) -> Chunk:
    thread = rng.randint(1, 3) if what == EVENTS else 0
    chunk = Chunk(sequence, [], what, thread, start=times.pair())
    chunk.state = rng.choice([SEALED, SEALED, OPEN])
    deltas = Deltas(chunk.start[0])
    size = 0
    while size < rng.choice([0, 100, 3500]):
        record = _random_record(rng, what, times)
        size += len(write_record(record, deltas))
        if size > 4096 - HEADER:
            break
        chunk.records.append(record)
    times.now += rng.getrandbits(10)
    chunk.end = times.pair()
    return chunk


def _random_record(rng: random.Random, what: int, times: _Times) -> Raw:
    if rng.random() < 0.05:
        return unknown_kind(rng)
    choice = [c for c in KINDS if (c in _METADATA_KINDS) == (what == METADATA)]
    code = rng.choice(choice)
    times.now += rng.getrandbits(rng.choice([1, 8, 16]))
    return Raw(code, [_value(rng, *f, times) for f in KINDS[code].fields])


def _value(  # noqa: PLR0911
    rng: random.Random, name: str, type_: str, times: _Times
) -> Any:
    small = rng.randint(0, 6)
    if type_ == "time":
        return times.now
    if type_ == "bytes":
        if name == "tags":
            keys = rng.choices(TAGS, k=rng.randint(0, 4))
            tags = write_tags([(rng.randint(0, 6), value) for _, value in keys])
            return tags[: rng.choice([None, None, rng.randint(0, len(tags))])]
        return rng.choice([b"", b"name", "größe".encode(), b"\xff\x00", b"x" * 300])
    if type_ == "signed":
        return rng.choice([0, -1, small, -(2**63), 2**63 - 1])
    if type_ == "real":
        return rng.choice([0.0, -1.5, 1e300, float("inf")])
    if type_ in {"span", "address", "generator", "task", "near_stack"}:
        return rng.getrandbits(64) if type_ == "address" else small
    if name in {"owner", "thread", "span"}:
        return small
    if type_ == "duration" or (name not in {"id"} and rng.random() < 0.1):
        return rng.choice([0, small, rng.getrandbits(64), rng.getrandbits(12)])
    return small


def unknown_kind(rng: random.Random) -> Raw:
    """A record of a kind that there is not, of any shape."""
    code = rng.choice([c for c in range(0x20, 0x100) if c not in KINDS])
    if code >> 5 == 7:
        body = rng.randbytes(rng.randint(0, 40))
        return Raw(code, [varint(len(body)) + body])
    numbers = [varint(rng.getrandbits(64)) for _ in range(code >> 5)]
    return Raw(code, [b"".join(numbers)])
