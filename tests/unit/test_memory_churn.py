"""Blocks given back at once, where only a part of one goes, or none after all."""

import pytest

import whence
from reference.recording import METADATA, Chunk, File, Raw, write

pytestmark = pytest.mark.store

PAGE = 4096
PLACE = 0x7F00_0000_0000


def recording_of(path, *records):
    metadata = Chunk(1, [Raw(0x72, [0, 31, 2])], METADATA)
    chunk = Chunk(2, list(records), thread=1, start=(1, 1), end=(900, 900))
    path.write_bytes(write(File([metadata, chunk], end=(1_000, 1_000), count=2)))
    return whence.open(path)


def mapped(time, pages, place=PLACE):
    return Raw(0x8C, [time, place, pages * PAGE, 1])


def unmapped(time, first, pages):
    return Raw(0x97, [time, PLACE + first * PAGE, pages * PAGE, 1])


def test_the_middle_of_a_mapping(tmp_path):
    records = mapped(10, 5), unmapped(20, 2, 1)
    with recording_of(tmp_path / "a.whence", *records) as recording:
        assert recording.memory.churn().total == (PAGE, 1)
        assert recording.memory.leaks().total == (4 * PAGE, 2)


@pytest.mark.parametrize("first", [0, 3])
def test_an_end_of_a_mapping(tmp_path, first):
    records = mapped(10, 5), unmapped(20, first, 2)
    with recording_of(tmp_path / "a.whence", *records) as recording:
        assert recording.memory.churn().total == (2 * PAGE, 1)


def test_a_mapping_that_goes_by_parts(tmp_path):
    """Each part that is given back counts, and all bytes once."""
    parts = [unmapped(20, 1, 1), unmapped(30, 3, 1), unmapped(40, 0, 5)]
    with recording_of(tmp_path / "a.whence", mapped(10, 5), *parts) as recording:
        assert recording.memory.churn().total == (5 * PAGE, 5)
        assert recording.memory.leaks().total == (0, 0)
        assert recording.slice("35ns").memory.churn().total == (3 * PAGE, 3)


def test_a_slice_that_begins_within_a_realloc_that_fails(tmp_path):
    """What the slice has not seen go cannot come back in it."""
    taken, freed = Raw(0x8B, [10, PLACE, 1_000, 1]), Raw(0x49, [20, PLACE])
    records = taken, freed, Raw(0x4A, [30, PLACE])
    with recording_of(tmp_path / "a.whence", *records) as recording:
        for start in (None, 5, 20, 25, 30, 35):
            memory = recording.slice(start).memory
            assert list(memory.churn()) == []
            assert memory.leaks().total == (1_000, 1)
        assert recording.slice(end=25).memory.churn().total == (1_000, 1)


def test_what_comes_back_is_taken_from_what_has_gone(tmp_path):
    """Also where others of its origin have gone: each counts for itself."""
    other = PLACE + PAGE
    records = [Raw(0x8B, [5, other, 7, 1]), Raw(0x49, [6, other])]
    records += [Raw(0x8B, [10, PLACE, 1_000, 1]), Raw(0x49, [20, PLACE])]
    records += [Raw(0x4A, [30, PLACE])]
    records += [Raw(0x8B, [40, other, 3, 1]), Raw(0x49, [50, other])]
    with recording_of(tmp_path / "a.whence", *records) as recording:
        assert recording.memory.churn().total == (10, 2)
        assert recording.slice(25).memory.churn().total == (3, 1)
