"""The native reader against its slow twin, and against files kept for ever."""

import json
import random
from pathlib import Path

import pytest

from harness.traced import calls_of
from reference import recording as twin
from reference import recording_reader, recordings
from whence import _core, _zstd

pytestmark = pytest.mark.store

DATA = Path(__file__).resolve().parents[1] / "data"


def assert_same(data, where=""):
    reader = _core.Reader(data, _zstd.unpack)
    assert reader.header()["opened"] == "good"
    found = recording_reader.read(data, _zstd.unpack)
    # as text: not a number is not equal to itself
    assert list(map(repr, reader.records())) == list(map(repr, found.records)), where
    totals = reader.totals()
    assert totals["recorded"] == found.recorded, where
    assert totals["dropped"] == found.dropped, where
    assert totals["produced"] == found.produced, where
    assert totals["chunks_damaged"] == found.damaged_chunks, where
    assert len(totals["problems"]) == found.problems, where
    assert reader.threads() == found.threads, where
    assert reader.tasks() == found.tasks, where
    assert calls_of(reader) == found.calls, where
    assert list(reader.exceptions()) == found.exceptions, where


def test_300_random_recordings_agree_with_the_twin(seed):
    for number in range(300):
        rng = random.Random(f"{seed}:{number}")
        file = recordings.random_file(rng)
        where = f"--seed {seed}, recording {number}"
        assert_same(twin.write(file), where)
        for chunk in file.chunks:
            chunk.state = twin.SEALED
        assert_same(twin.write(file, twin.COMPACT), where)
        assert_same(twin.write(file, twin.COMPACT, _zstd.pack), where)


def test_random_damage_agrees_with_the_twin(seed):
    for number in range(300):
        rng = random.Random(f"{seed}:{number}")
        file = recordings.random_file(rng)
        data = bytearray(twin.write(file))
        at = rng.randrange(file.header_size, len(data))
        data[at] ^= 1 << rng.randrange(8)
        del data[rng.randint(file.header_size, 2 * len(data)) :]
        assert_same(bytes(data), f"--seed {seed}, recording {number}")


def test_spans_are_what_the_threads_did(seed):
    for number in range(300):
        rng = random.Random(f"{seed}:{number}")
        file, expected = recordings.span_story(rng)
        reader = _core.Reader(twin.write(file), _zstd.unpack)
        spans = list(reader.spans())
        where = f"--seed {seed}, story {number}"
        assert sorted(map(repr, spans)) == sorted(map(repr, expected)), where
        still_open = [span for span in spans if span[6]]
        assert spans[len(spans) - len(still_open) :] == still_open, where
        starts = [span[2] for span in still_open]
        assert starts == sorted(starts), where


def test_every_kind_is_in_the_recording_that_says_so():
    file = recordings.every_kind()
    codes = {record.code for chunk in file.chunks for record in chunk.records}
    assert codes == set(twin.KINDS)
    assert_same(twin.write(file))


def plain(value):
    """Anything that a reader gives, as JSON has it."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value


def contents(data):
    reader = _core.Reader(data, _zstd.unpack)
    return plain(
        {
            "header": reader.header(),
            "records": list(reader.records()),
            "spans": list(reader.spans()),
            "threads": reader.threads(),
            "tasks": reader.tasks(),
            "calls": calls_of(reader),
            "exceptions": list(reader.exceptions()),
            "totals": reader.totals(),
        }
    )


@pytest.mark.parametrize(
    "name", ["fixed-1.0", "packed-1.0", "recoded-1.0", "native-1.0"]
)
def test_golden_recordings_read_as_they_always_did(name):
    """tests/data/make.py wrote them; never write them again, add new ones."""
    data = (DATA / f"{name}.whence").read_bytes()
    golden = json.loads((DATA / f"{name}.json").read_text())
    found = contents(data)
    # A reader may say more of a file than earlier ones did, never less.
    found["header"] = {key: found["header"][key] for key in golden["header"]}
    assert found == golden
    assert_same(data)


def test_later_ticks_are_never_earlier(rng):
    for _ in range(200):
        file = recordings.random_file(rng)
        marks = [twin.Raw(0x43, [file.start[0] + n * n * 1_000, 0]) for n in range(200)]
        file.chunks.append(twin.Chunk(99, marks, start=file.start, state=twin.OPEN))
        records = _core.Reader(twin.write(file), _zstd.unpack).records()
        times = [r[2] for r in records if r[0] == "mark"][-200:]
        assert times == sorted(times)


def test_a_chunk_that_begins_at_the_last_tick_hides_nothing():
    """No number of ticks is the end of what is read."""
    last = (twin.U64, twin.U64)
    marks = [twin.Raw(0x43, [twin.U64, 0])], [twin.Raw(0x43, [1_500, 0])]
    file = twin.File(
        [
            twin.Chunk(1, marks[0], thread=1, start=last, end=last),
            twin.Chunk(2, marks[1], thread=2, start=(1_200, 1_200), end=(1_500, 1_500)),
        ],
        start=(1_000, 1_000),
        end=(2_000, 2_000),
        count=2,
    )
    for layout in (twin.FIXED, twin.COMPACT):
        data = twin.write(file, layout)
        assert_same(data)
        reader = _core.Reader(data, _zstd.unpack)
        assert len(list(reader.records())) == reader.totals()["recorded"] == 2


def whole_records(found):
    """Give the numbers of records and of events that were read."""
    return len(found.records), found.recorded


WAYS = {
    "fixed": (twin.FIXED, None),
    "compact": (twin.COMPACT, None),
    "packed": (twin.COMPACT, _zstd.pack),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_before_a_cut_is_read(way, rng):
    """Of each chunk, record by record; all events are accounted for."""
    file = recordings.every_kind(12)
    data = twin.write(file, *WAYS[way])
    produced = recording_reader.read(data, _zstd.unpack).produced
    before = 0, 0
    sizes = rng.sample(range(file.header_size + twin.HEADER, len(data)), 25)
    for size in sorted(sizes):
        assert_same(data[:size], f"cut at {size}")
        totals = _core.Reader(data[:size], _zstd.unpack).totals()
        found = recording_reader.read(data[:size], _zstd.unpack)
        assert totals["produced"] == produced
        assert whole_records(found) >= before
        before = whole_records(found)
        assert totals["problems"] or totals["recorded"] == produced - sum(
            file.dropped.values()
        )


def one_large_chunk(rng):
    """A recording whose only chunk takes several blocks of zstd."""
    frees, now = [], 1_000
    for _ in range(40_000):
        now += rng.getrandbits(16)
        frees.append(twin.Raw(0x49, [now, rng.getrandbits(3) << 40]))
    end = now + 1, now + 1
    chunk = twin.Chunk(1, frees, thread=1, start=(1_000, 1_000), end=end)
    file = twin.File([chunk], chunk_size=1 << 20, end=end, count=1)
    file.produced = len(frees)
    return file


def test_a_packed_chunk_that_is_cut_is_unpacked_as_far_as_it_goes(rng):
    file = one_large_chunk(rng)
    events = file.produced
    data = twin.write(file, twin.COMPACT, _zstd.pack)
    assert data[file.header_size + 92] == twin.RECODED
    found = []
    for cut in (len(data) // 4, 1_000, 1):
        totals = _core.Reader(data[:-cut], _zstd.unpack).totals()
        assert totals["produced"] == events
        assert [what for _, what in totals["problems"]] == [
            "the file ends within a chunk"
        ]
        found.append(totals["recorded"])
    assert_same(data[:-1_000])
    assert events / 5 < found[0] <= found[1] <= found[2] <= events


def never_closed(rng, **changes):
    """A recording as a killed program leaves it, with room in its last chunk."""
    file = recordings.every_kind()
    file.state, file.end, file.produced, file.count = twin.RECORDING, (0, 0), 0, 0
    for chunk in file.chunks:
        chunk.state = rng.choice([twin.OPEN, twin.SEALED])
        for name, value in changes.items():
            setattr(chunk, name, value)
    return file


def problems_of(data):
    return [what for _, what in _core.Reader(data, _zstd.unpack).totals()["problems"]]


def test_a_file_that_was_never_closed_ends_with_a_chunk(rng):
    file = never_closed(rng)
    data = twin.write(file)
    assert problems_of(data) == []
    chunks = range(file.header_size, len(data) + 1, file.chunk_size)
    for size in [*chunks, *rng.sample(range(file.header_size, len(data)), 40)]:
        assert_same(data[:size], f"cut at {size}")
        # Nothing tells of what was in whole chunks that are missing.
        assert bool(problems_of(data[:size])) == (size not in chunks)
    assert problems_of(data[: file.header_size - 1]) == [
        "the file ends within its header"
    ]


def test_chunks_that_are_free_tell_of_a_cut_too(rng):
    data = twin.write(never_closed(rng, state=twin.FREE))
    assert_same(data)
    assert problems_of(data) == []
    assert_same(data[:-1])
    assert problems_of(data[:-1]) == ["the file ends within a chunk"]


def test_a_chunk_that_was_being_made_is_no_damage(rng):
    data = twin.write(never_closed(rng)) + bytes(2048)
    assert_same(data)
    assert problems_of(data) == []


def test_a_closed_file_that_was_cut_says_so_though_nothing_is_missing():
    data = twin.write(recordings.every_kind())
    assert data.endswith(b"\0")
    assert_same(data[:-1])
    assert problems_of(data[:-1]) == ["the file ends within a chunk"]
