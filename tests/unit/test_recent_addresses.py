"""Payloads in which recent addresses are small numbers, against the slow twin."""

import os
import random

import pytest

import whence
from harness.recorded import recorded
from reference import recent_addresses, recording_reader
from reference import recording as twin
from whence import _core, _zstd

pytestmark = pytest.mark.store


def events(rng, count):
    """Blocks that are taken and given back, some of them again and again."""
    blocks = [rng.choice([16, 48, 2**47, 2**63]) * n + 2**20 for n in range(1, 40)]
    now, out = 1_000, []
    for _ in range(count):
        now += rng.choice([0, 0, 3, 500])
        address = rng.choice(blocks[: rng.choice([3, 20, 39])])
        address += rng.choice([0, 0, 0, 1, rng.getrandbits(64)])
        values = [now, address % 2**64]
        code = rng.choice([0x49, 0x71, 0x8A, 0x92, 0xA2, 0x43, 0x65, 0x40])
        if code in {0x71, 0x8A, 0x92}:
            values += [
                *([rng.randint(0, 500)] if code != 0x71 else []),
                rng.randint(0, 9),
            ]
        elif code == 0xA2:
            values = [now, 7, address % 2**64, rng.randint(0, 500), rng.randint(0, 9)]
        elif code in {0x43, 0x65, 0x40}:
            values = [now, rng.randint(1, 3), *([0] if code == 0x65 else [])]
        out.append(twin.Raw(code, values))
    return out


def packed_file(rng):
    chunk = twin.Chunk(1, events(rng, rng.randint(1, 120)), thread=1)
    return twin.File([chunk], chunk_size=16_384), chunk


def test_files_agree_with_the_twin(seed):
    codings = set()
    for number in range(200):
        rng = random.Random(f"{seed}:{number}")
        file, chunk = packed_file(rng)
        payload, _ = chunk.payload()
        recoded = recent_addresses.recode(payload)
        assert not recoded or recent_addresses.restore(recoded) == payload
        data = twin.write(file, twin.COMPACT, _zstd.pack)
        codings.add(data[file.header_size + 92])
        where = f"--seed {seed}, file {number}"
        found = recording_reader.read(data, _zstd.unpack)
        assert found.damaged_chunks == 0, where
        reader = _core.Reader(data, _zstd.unpack)
        assert list(reader.records()) == found.records, where
    assert twin.RECODED in codings


def test_packing_makes_what_the_twin_makes(seed, tmp_path):
    for number in range(100):
        rng = random.Random(f"{seed}:{number}")
        file, _ = packed_file(rng)
        reader = _core.Reader(twin.write(file), _zstd.unpack)
        target = tmp_path / f"{number}.whence"
        with target.open("w+b") as out:
            reader.rewrite(out.fileno(), _zstd.pack, 0)
        data = target.read_bytes()
        wanted = twin.write(file, twin.COMPACT, _zstd.pack)
        where = f"--seed {seed}, file {number}"
        header = 4096
        assert (
            data[header + 92 : header + 104] == wanted[-len(data) + header :][92:104]
        ), where
        assert data[header + 128 :] == wanted[file.header_size + 128 :], where


def test_any_bytes_are_restored_or_refused_as_by_the_twin(seed):
    """The checksum is of whatever the twin takes them for."""
    for number in range(600):
        rng = random.Random(f"{seed}:{number}")
        file, chunk = packed_file(rng)
        recoded = bytearray(
            recent_addresses.recode(chunk.payload()[0]) or b"\x49\x00\x20"
        )
        for _ in range(rng.randint(1, 3)):
            recoded[rng.randrange(len(recoded))] = rng.choice(
                [0, 1, 15, 16, 127, 128, 255]
            )
        payload = recent_addresses.restore(bytes(recoded))
        wrong = payload is None or len(payload) > 16_000
        packed = _zstd.pack(bytes(recoded))
        how = 0, len(packed), twin.RECODED, len(recoded)
        header = twin.write_chunk_header(file, chunk, b"" if wrong else payload, *how)
        data = twin.write_file_header(file, twin.COMPACT) + header + packed
        found = recording_reader.read(data, _zstd.unpack)
        reader = _core.Reader(data, _zstd.unpack)
        where = f"--seed {seed}, file {number}"
        assert reader.totals()["chunks_damaged"] == found.damaged_chunks, where
        assert found.damaged_chunks == (wrong and payload != b""), where
        assert list(map(repr, reader.records())) == list(map(repr, found.records)), (
            where
        )


@pytest.mark.skipif(
    "WHENCE_SANITIZED" in os.environ, reason="a sanitizer hands out no block again soon"
)
def test_a_loop_that_takes_and_gives_back_takes_few_bytes(tmp_path):
    sizes = {}
    for pack in (False, True):
        path = tmp_path / f"{pack}.whence"
        with recorded(path, pack=pack) as recorder:
            for number in range(100_000):
                kept = [number, str(number)]
        with whence.open(path) as recording:
            sizes[pack] = path.stat().st_size / recording.losses.recorded
            assert recording.losses.dropped == {}
        del kept, recorder
    assert sizes[True] < 0.25 * sizes[False]


def test_both_say_the_same_of_memory(tmp_path):
    found = []
    for pack in (False, True):
        path = tmp_path / f"{pack}.whence"
        with recorded(path, pack=pack):
            kept = [bytes(number % 700) for number in range(3_000)]
            del kept[::2]
        with whence.open(path) as recording:
            live = recording.memory.leaks()
            found.append(sum(group.count for group in live if group.bytes > 10_000))
        del kept
    assert found[0] == found[1] > 0
