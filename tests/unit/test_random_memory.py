"""Random histories of memory, answered natively and by the slow twin."""

import random
import struct

import pytest

import whence
from reference import memory as twin
from reference import memory_rows, recording_reader
from reference.recording import (
    COMPACT,
    FIXED,
    METADATA,
    OPEN,
    U64,
    Chunk,
    File,
    Raw,
    write,
)
from whence import _memory, _memory_names, _zstd
from whence._recording import parts_of

pytestmark = pytest.mark.store

POOLS = [0, 1, 2**63 + 1]  # of which the last two are the same
TAGS = {1: b'{"step":1}', 2: b'{"name":"a","step":2}', 3: b"no tags"}
ADDRESSES = [0x7F00_0000_0000 + 16 * n for n in range(12)] + [7, 2**64 - 16]
SIZES = [0, 1, 16, 40, 48, 100, 5_000, 2**20]
PAGES, PAGE = 0x7E00_0000_0000, 4096  # where mappings are that go by parts
STORIES = 80


class Story:
    """What some threads do to a few addresses, each in chunks of its own."""

    def __init__(self, rng):
        self.rng = rng
        self.ticks = 10_000
        self.step = rng.choice([1, 50, 3_000, 400_000])
        self.sequence = 1
        self.has_states = rng.random() < 0.3
        self.has_mappings = rng.random() < 0.3  # that go by parts
        self.open = {}  # by thread
        self.done = []

    def file(self):
        rng = self.rng
        starts = [Raw(0x72, [1_000, 7, 2]), Raw(0xE0, [9, b"cuda:0"])]
        starts += [Raw(0xE0, [number, text]) for number, text in TAGS.items()]
        starts += [Raw(0x4C, [1, 9]), Raw(0x4C, [0, 10])]
        for _ in range(rng.randint(1, 300)):
            self.ticks += rng.randrange(self.step)
            self.tell(rng.randint(1, 4))
            if rng.random() < 0.01:
                starts += [Raw(0x29, [self.ticks]), Raw(0x72, [self.ticks])]
                starts[-1].values += [7, 2]
        for thread in list(self.open):
            self.end(thread, rng.choice([OPEN, 2]))
        metadata = Chunk(1, starts, METADATA, start=(1_000, 1_000))
        metadata.end = (self.ticks, self.ticks)
        chunks = [metadata, *sorted(self.done, key=lambda chunk: chunk.sequence)]
        end = (self.ticks, self.ticks)
        return File(chunks, start=(1_000, 1_000), end=end, count=len(chunks))

    def tell(self, thread):
        chunk = self.open.get(thread)
        if chunk is None or self.rng.random() < 0.03:
            self.end(thread)
            self.sequence += 1
            start = (self.ticks, self.ticks)
            chunk = Chunk(self.sequence, [], thread=thread, start=start)
            self.open[thread] = chunk
        chunk.records += self.records(chunk)
        chunk.end = (self.ticks, self.ticks)

    def end(self, thread, state=2):
        chunk = self.open.pop(thread, None)
        if chunk is not None:
            chunk.state = state
            self.done.append(chunk)

    def state(self, now, size, stack):
        rng = self.rng
        places = rng.sample(ADDRESSES, rng.randint(0, 3))
        oldest = rng.choice([500, now])
        blocks = (
            [now, rng.randint(1, 4), place, size, stack, rng.randrange(oldest)]
            for place in places
        )
        told = (Raw(0xC8 + rng.randrange(5), block) for block in blocks)
        return [Raw(0x4E, [now, len(places)]), *told]

    def map(self, now, stack):
        """Map some pages, and perhaps unmap a part of them."""
        rng = self.rng
        first, last = sorted(rng.sample(range(8), 2))
        mapped = Raw(0x8C, [now, PAGES, 7 * PAGE, stack])
        place, size = PAGES + first * PAGE, (last - first) * PAGE
        unmapped = Raw(0x97, [now, place, size, stack])
        return rng.choice([[mapped], [unmapped], [mapped, unmapped]])

    def records(self, chunk):  # noqa: C901, PLR0911
        rng, now = self.rng, self.ticks
        # A thread that is behind tells of what was a while ago.
        if rng.random() < 0.2:
            now = max(now - rng.randrange(2 * self.step), chunk.end[0], chunk.start[0])
        address, size = rng.choice(ADDRESSES), rng.choice(SIZES)
        stack, pool = rng.randint(0, 4), rng.choice(POOLS)
        choice = rng.random()
        if self.has_mappings and rng.random() < 0.3:
            return self.map(now, stack)
        if choice < 0.4:
            return [Raw(0x88 + rng.randrange(5), [now, address, size, stack])]
        if choice < 0.65:
            freed = Raw(0x49, [now, address])
            return [rng.choice([freed, Raw(0x71, [now, address, stack])])]
        if choice < 0.75:
            moved = Raw(0x90 + rng.randrange(5), [now, address + 16, size, stack])
            return [Raw(0x49, [now, address]), moved]
        if choice < 0.82:
            wrong = rng.choice([address, address, address, ADDRESSES[0]])
            # The call that fails takes its time, and a slice may begin meanwhile.
            later = now + rng.choice([0, 0, rng.randrange(self.step)])
            self.ticks = max(self.ticks, later)
            return [Raw(0x49, [now, address]), Raw(0x4A, [later, wrong])]
        if choice < 0.83 and self.has_states:
            return self.state(now, size, stack)
        if choice < 0.84:
            far = rng.choice([size, 3 * size, 2**63])
            return [Raw(0x97, [now, address + rng.choice([0, 8]) - 8, far, stack])]
        if choice < 0.87:
            code = rng.choice([0xA2, 0xA2, 0xA6])
            return [Raw(code, [now, pool, address, size, stack])]
        if choice < 0.92:
            return [Raw(rng.choice([0x83, 0x83, 0x86]), [now, pool, address, stack])]
        if choice < 0.94:
            return [Raw(0x4D, [now, rng.choice([0, *TAGS])])]
        return [
            rng.choice(
                [
                    Raw(
                        0xA5, [now, rng.randint(0, 6), size, rng.choice([0, 9]), stack]
                    ),
                    Raw(0x4B, [now, rng.randrange(1 << 30)]),
                    Raw(0x43, [now, 1]),
                    Raw(0x65, [now, rng.randint(1, 4), 0]),
                    Raw(0x4A, [now, address]),
                ]
            )
        ]


def domain_of(number):
    pool = number & (2**63 - 1)
    return f"pool {pool}" if number >= 2**63 else _memory_names.DOMAINS[number]


def as_dict(groups):
    return {(s, domain_of(d), t, g): (b, n) for s, d, t, g, b, n in groups._rows}


def point_of(point):
    levels = {name: list(level) for name, level in point.domains.items()}
    return point.time, point.bytes, levels, point.reserved


def expected_point(truth, point):
    time, (size, _), levels, reserved = point
    levels = {truth.name(name): level for name, level in levels.items() if any(level)}
    held = {truth.name(name): size for name, size in reserved.items() if size}
    return time, size, levels, held


def event_of(event):
    values = (event.action, event.time, event.thread, event.address, event.size)
    return (*values, event.domain, event._stack, event.tags)


def expected_event(truth, event):
    values = (event.action, event.time, event.thread, event.address, event.size)
    domain = truth.name(event.domain or "raw")
    return (*values, domain, event.stack, truth.tags(event.tags))


def expected_failure(truth, event):
    values = (event.time, event.thread, truth.name(event.domain), event.size)
    available = event.available - 1 if event.available else None
    return (*values, available, truth.tags(event.tags))


def expected_by_step(truth, groups):
    sums = {}
    for (*_, tags), level in groups.items():
        entry = sums.setdefault(truth.tags(tags).get("step"), [0, 0])
        entry[:] = (entry[0] + level[0], entry[1] + level[1])
    return {step: tuple(level) for step, level in sums.items()}


def slices(rng, end, truth):
    yield twin.ALL
    for _ in range(2):
        start, stop = sorted(rng.randrange(-5, end + 9) for _ in range(2))
        threads = rng.choice([None, (1,), (2, 3)])
        yield rng.choice([None, start]), rng.choice([None, stop]), threads
    if borders := borders_of(truth):
        border = rng.choice(borders)
        yield border, None, None
        yield None, border, None


def borders_of(truth):
    """Return times between the halves of a realloc that failed, where others are."""
    return [
        change.event.time
        for change in truth.changes
        if change.freed and change.freed.time < change.event.time
    ]


def check(path, rng):
    truth = twin.replay(recording_reader.read(path.read_bytes(), _zstd.unpack))
    with whence.open(path) as whole:
        duration = whole.info.duration
        for slice_ in slices(rng, duration, truth):
            recording = whole.slice(slice_[0], slice_[1], threads=slice_[2])
            check_slice(recording.memory, truth, slice_, duration, rng)
            check_rows(recording, truth, slice_, rng)
        memory = whole.memory
        counts = memory.counts._asdict()
        assert (counts.pop("left_out"), counts.pop("disorder")) == (0, 0)
        assert counts == truth.counts
    return truth


def check_slice(memory, truth, slice_, duration, rng):
    size, time, groups = truth.peak(slice_)
    peak = memory.peak
    assert (peak.bytes, peak.time, as_dict(peak.groups)) == (size, time, groups)
    assert peak.groups.total.bytes & (2**64 - 1) == size
    at, start, end = (rng.randrange(-5, duration + 5) for _ in range(3))
    assert as_dict(memory.live_at(at)) == truth.live(slice_, at=at)
    leaks = memory.leaks()
    assert as_dict(leaks) == truth.live(slice_)
    assert leaks.by_tag("step") == expected_by_step(truth, truth.live(slice_))
    two = {k: v for k, v in truth.live(slice_).items() if truth.tags(k[3])}
    two = {k: v for k, v in two.items() if truth.tags(k[3])["step"] == 2}
    assert as_dict(leaks.tagged(step=2)) == two
    assert as_dict(memory.leaks(start, end)) == truth.live(slice_, start, end)
    found = as_dict(memory.leaks(start, end, at=at))
    assert found == truth.live(slice_, start, end, at)
    for within in (1, 3, 1_000):
        assert as_dict(memory.churn(within)) == truth.churn(slice_, within)
    usage = memory.usage()
    points, resident = truth.usage(slice_, duration, _memory._MOST_POINTS)
    assert list(map(point_of, usage.points)) == [
        expected_point(truth, point) for point in points
    ]
    assert list(map(tuple, usage.resident)) == resident
    failures = [(*failure[:5], failure.tags) for failure in memory.failures]
    assert failures == [expected_failure(truth, e) for e in truth.failures(slice_)]
    for address in (*rng.sample(ADDRESSES, 2), ADDRESSES[3] + 5):
        for pool in (None, 1):
            events = memory.history(address, pool=pool)
            expected = truth.history(slice_, address, pool)
            expected = [expected_event(truth, event) for event in expected]
            assert list(map(event_of, events)) == expected


def rows_of(data, layout):
    return [
        (*row[:4], domain_of(row[4]), *row[5:])
        for row in struct.iter_unpack(layout, data)
    ]


def check_rows(recording, truth, slice_, rng):
    """What exports are made of: all blocks, the largest ones, the newest events."""
    reader = parts_of(recording)[0].reader
    bounds = tuple(recording._bounds)
    taken = as_dict(recording.memory.allocated())
    assert taken == memory_rows.taken(truth, slice_)

    blocks = memory_rows.blocks(truth, slice_)
    found, left_out, lost = reader.memory_largest(bounds, False, 10**6)[0]
    begun = [b for b in blocks if slice_[0] is None or b.start >= slice_[0]]
    ends = [b._replace(end=2**63 - 1 if b.end is None else b.end) for b in begun]
    assert sorted(rows_of(found, "=qqQQQQQ"), key=repr) == sorted(ends, key=repr)
    assert (left_out, lost) == (0, 0)
    lost = reader.memory_largest(bounds, False, 0)[0][2]
    assert lost == sum(size for size, _ in taken.values()) & U64
    most = rng.randint(0, 9)
    found, left_out, lost = reader.memory_largest(bounds, True, most)[0]
    in_use = sorted((b.size for b in blocks if b.end is None), reverse=True)
    kept = [row[3] for row in rows_of(found, "=qqQQQQQ")]
    assert sorted(kept, reverse=True) == in_use[:most]
    assert (left_out, lost) == (len(in_use[most:]), sum(in_use[most:]))

    held = memory_rows.segments(truth, slice_)
    found = rows_of(reader.memory_segments(bounds, 10**6)[0], "=qqQQQQQ")
    expected = [row._replace(end=2**63 - 1) for row in held]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    most = rng.randint(0, 9)
    found = rows_of(reader.memory_segments(bounds, most)[0], "=qqQQQQQ")
    sizes = sorted((row.size for row in held), reverse=True)
    assert sorted((row[3] for row in found), reverse=True) == sizes[:most]

    events = list(memory_rows.events(truth, slice_))
    for most in (rng.randint(0, 9), 10**6):
        found, left_out = reader.memory_newest(bounds, most)[0]
        expected = events[max(len(events) - most, 0) :]
        shown = [(ACTION_OF_ROW[row[0]], *row[1:]) for row in event_rows(found)]
        assert shown == expected
        assert left_out == len(events) - len(expected)


ACTION_OF_ROW = {0: "taken", 2: "freed", 7: "out_of_memory"}
ACTION_OF_ROW |= {4: "segment_taken", 5: "segment_freed"}


def event_rows(data):
    for action, time, thread, domain, *rest in struct.iter_unpack("=QqQQQQQ", data):
        name = "?" if action == 7 else domain_of(domain)
        yield action, time, thread, name, *rest


@pytest.mark.parametrize("number", range(STORIES))
def test_random_histories_are_answered_as_the_twin_answers(
    tmp_path, seed, number, monkeypatch
):
    rng = random.Random(f"{seed}:memory:{number}")
    monkeypatch.setattr(_memory, "_MOST_POINTS", rng.choice([1, 7, 4096]))
    path = tmp_path / "random.whence"
    layout = rng.choice([FIXED, COMPACT])
    file = Story(rng).file()
    if layout == COMPACT:
        for chunk in file.chunks:
            chunk.state = 2
    path.write_bytes(write(file, layout, rng.choice([None, _zstd.pack])))
    check(path, rng)
    damaged = bytearray(path.read_bytes())
    for _ in range(3):
        damaged[rng.randrange(4096, len(damaged))] ^= 1 << rng.randrange(8)
    path.write_bytes(damaged)
    check(path, rng)


def test_histories_have_everything_that_can_go_wrong(seed):
    """Else the test above would compare nothing."""
    counts = dict.fromkeys(("before", "contradictions", "out_of_memory"), 0)
    returned = late = tagged = segments = borders = middles = 0
    for number in range(2 * STORIES):  # some are rare
        story = Story(random.Random(f"{seed}:memory:{number}"))
        truth = twin.replay(recording_reader.read(write(story.file())))
        for name in counts:
            counts[name] += truth.counts[name]
        returned += sum(change.what == "returned" for change in truth.changes)
        tagged += sum(truth.tags(c.event.tags) != {} for c in truth.changes)
        segments += sum(c.of_segment and c.what == "ended" for c in truth.changes)
        borders += len(borders_of(truth))
        middles += sum(c.is_rest and c.what == "taken" for c in truth.changes)
        frees = sum(c.event.action == "freed" and not c.is_rest for c in truth.changes)
        ended = sum(
            c.what == "ended" and c.event.action == "freed" for c in truth.changes
        )
        late += frees - ended > truth.counts["before"]
    assert all(counts.values())
    assert returned
    assert late
    assert tagged
    assert segments
    assert borders
    assert middles


def test_more_chunks_at_once_than_there_is_room_for(tmp_path):
    """The earliest are read first; what comes too late is there, and counted."""
    metadata = Chunk(1, [Raw(0x72, [0, 7, 2])], METADATA)
    chunks = [
        Chunk(
            2 + n,
            [
                Raw(0x8A, [10 + n, 16 * n + 16, 100, 1]),
                Raw(0x8A, [1_000 + n, 16 * n + 16_016, 10, 1]),
            ],
            thread=1 + n,
            start=(5, 5),
            end=(2_000, 2_000),
        )
        for n in range(100)
    ]
    file = File([metadata, *chunks], chunk_size=1 << 24, end=(3_000, 3_000), count=101)
    path = tmp_path / "many.whence"
    path.write_bytes(write(file, COMPACT))
    with whence.open(path) as recording:
        memory = recording.memory
        assert memory.counts.allocated == 200
        assert 0 < memory.counts.disorder < 200
        assert memory.leaks().total.bytes == memory.peak.bytes == 11_000


@pytest.mark.parametrize("size", [0, 16])
def test_an_empty_segment_is_no_point_of_its_own(tmp_path, size):
    """Nothing of it can be seen: as much is in use as before, and as much held."""
    metadata = Chunk(1, [Raw(0x72, [0, 7, 2]), Raw(0xE0, [9, b"gpu"])], METADATA)
    metadata.records.append(Raw(0x4C, [1, 9]))
    told = [Raw(0x8A, [500, 16, 48, 1]), Raw(0xA6, [500, 1, 4096, size, 1])]
    chunk = Chunk(2, told, thread=1, start=(500, 500), end=(500, 500))
    path = tmp_path / "segment.whence"
    path.write_bytes(write(File([metadata, chunk], end=(1_000, 1_000), count=2)))
    with whence.open(path) as recording:
        (point,) = recording.memory.usage().points
        assert (point.bytes, point.reserved) == (48, {"gpu": size} if size else {})


def test_what_a_state_tells_in_a_slice_was_not_all_taken_in_it(tmp_path):
    """A state has the blocks in use with their ages, which may be from before."""
    metadata = Chunk(1, [Raw(0x72, [0, 7, 2])], METADATA)
    old, new = [900, 1, 16, 100, 1, 800], [900, 1, 48, 30, 1, 400]  # since 100 and 500
    told = [Raw(0x4E, [900, 2]), Raw(0xCA, old), Raw(0xCA, new)]
    chunk = Chunk(2, told, thread=1, start=(900, 900), end=(900, 900))
    path = tmp_path / "state.whence"
    path.write_bytes(write(File([metadata, chunk], end=(1_000, 1_000), count=2)))
    totals = {0: 130, 100: 130, 101: 30, 500: 30, 501: 0, 950: 0}
    with whence.open(path) as recording:
        for start, expected in totals.items():
            part = recording.slice(start)
            reader, bounds = parts_of(part)[0].reader, tuple(part._bounds)
            taken = part.memory.allocated().total.bytes
            assert (taken, part.memory.leaks().total.bytes) == (expected, 130)
            assert reader.memory_largest(bounds, False, 0)[0][2] == expected
