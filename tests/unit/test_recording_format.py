"""The native reader against its slow twin, and against files kept for ever."""

import json
import random
from pathlib import Path

import pytest

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
    assert list(reader.calls()) == found.calls, where
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
    header = reader.header()
    return plain(
        {
            "header": {k: v for k, v in header.items() if k != "opened"},
            "records": list(reader.records()),
            "spans": list(reader.spans()),
            "threads": reader.threads(),
            "tasks": reader.tasks(),
            "calls": list(reader.calls()),
            "exceptions": list(reader.exceptions()),
            "totals": reader.totals(),
        }
    )


@pytest.mark.parametrize("name", ["fixed-1.0", "packed-1.0"])
def test_golden_recordings_read_as_they_always_did(name):
    """tests/data/make.py wrote them; never write them again, add new ones."""
    data = (DATA / f"{name}.whence").read_bytes()
    assert contents(data) == json.loads((DATA / f"{name}.json").read_text())
    assert_same(data)


def test_later_ticks_are_never_earlier(rng):
    for _ in range(200):
        file = recordings.random_file(rng)
        marks = [twin.Raw(0x43, [file.start[0] + n * n * 1_000, 0]) for n in range(200)]
        file.chunks.append(twin.Chunk(99, marks, start=file.start, state=twin.OPEN))
        records = _core.Reader(twin.write(file), _zstd.unpack).records()
        times = [r[2] for r in records if r[0] == "mark"][-200:]
        assert times == sorted(times)
