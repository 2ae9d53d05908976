"""F3: any bytes give records or an error, in bounded time and memory."""

import json
import os
import random
import struct
from pathlib import Path

import pytest

from harness import command
from harness.traced import calls_of
from reference import recording as twin
from reference import recording_reader, recordings
from whence import _core, _zstd

pytestmark = pytest.mark.store

SANITIZED = bool(os.environ.get("WHENCE_SANITIZED"))
# Every case, or under sanitizers, which are slow, every 16th from a random one on.
STEP = 16 if SANITIZED else 1
MEGABYTE = 1 << 20

LAYOUTS = {
    "fixed": lambda file: twin.write(file),
    "compact": lambda file: twin.write(file, twin.COMPACT),
    "packed": lambda file: twin.write(file, twin.COMPACT, _zstd.pack),
}

DAMAGE = """
    import json, re, sys
    sys.path.insert(0, {folder!r})
    import damage
    from whence import _zstd

    def peak():
        with open("/proc/self/status") as status:
            return int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1]) * 1024

    with open({path!r}, "rb") as file:
        data = file.read()
    before = peak()
    found = damage.{what}(data, _zstd.unpack, {step}, {first})
    print(json.dumps([found, peak() - before]))
"""


@pytest.mark.timeout(1200)  # the reader is compiled for it first
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("what", ["prefixes", "flips"])
def test_every_prefix_and_every_flip_of_one_bit(
    what, layout, damage, tmp_path, run_python, rng
):
    data = LAYOUTS[layout](recordings.hard_to_pack(rng))
    assert len(data) >= 16 * 1024
    path = tmp_path / "recording"
    path.write_bytes(data)
    first = rng.randrange(STEP)
    code = DAMAGE.format(
        folder=str(Path(damage.__file__).parent),
        path=str(path),
        what=what,
        step=STEP,
        first=first,
    )
    found, grown = json.loads(run_python(code, timeout=600))
    assert found["wrong"] is None, found
    cases = len(data) if what == "prefixes" else 8 * len(data)
    assert found["cases"] == len(range(first, cases, STEP))
    assert found["slowest"] < 1
    assert found["refused"] > 0
    assert found["noticed"] > 0.4 * found["cases"]
    if what == "prefixes":
        assert found["unchanged"] == 0
    elif layout == "fixed":  # the rest of a chunk that is not full may be anything
        assert found["unchanged"] > 0
    if not SANITIZED:
        assert grown < 64 * MEGABYTE + 2 * 4096


HOSTILE = """
    import re, sys, time
    from whence import _core, _zstd
    from whence._bounds import Bounds
    from whence._call_table import Calls

    def peak():
        with open("/proc/self/status") as status:
            return int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1]) * 1024

    _zstd.unpack(_zstd.pack(b"warm up"), 7)
    before = peak()
    with open({path!r}, "rb") as file:
        reader = _core.Reader(file.fileno(), _zstd.unpack)
        counts = [sum(1 for _ in reader.spans()), len(reader.threads())]
        start = time.monotonic()
        calls = Calls("", lambda: iter([reader]), Bounds())
        counts += [sum(len(batch) for batch in calls)]
        counts += [sum(1 for _ in reader.exceptions())]
        counts += [len(reader.tasks()), round(time.monotonic() - start)]
        totals = reader.totals()
        assert len(totals["problems"]) <= 100
    print(peak() - before, *counts, totals["names_left_out"])
"""
LARGEST = 16 * MEGABYTE


def bomb(*parts):
    """A small packed file of payloads, each with what it is and how often it comes."""
    file = twin.File([], chunk_size=LARGEST)
    out = twin.write_file_header(file, twin.COMPACT)
    number = 0
    for payload, what, copies in parts:
        packed = _zstd.pack(payload)
        for _ in range(copies):
            number += 1
            chunk = twin.Chunk(number, [], what, thread=1 if what == twin.EVENTS else 0)
            out += fast_header(file, chunk, payload, len(packed)) + packed
    return out


def fast_header(file, chunk, payload, stored):
    """The header of a chunk whose payload is too large for the slow checksum."""
    header = twin.write_chunk_header(file, chunk, b"", 0, stored, twin.ZSTD)
    closing = bytearray(header[64:124])
    closing[:8] = struct.pack("<Q", len(payload))
    closing[32:36] = struct.pack("<I", zeros_checksum(payload))
    return header[:64] + closing + struct.pack("<I", twin.checksum(bytes(closing)))


CHECKSUMS = {}


def zeros_checksum(payload):
    if payload not in CHECKSUMS:
        CHECKSUMS[payload] = twin.checksum(payload)
    return CHECKSUMS[payload]


def _stack(number):
    """A stack with the one before it as its parent."""
    return twin.write_record(
        twin.Raw(0x82, [number, number - 1, number % 3, 0]), twin.Deltas(0)
    )


def texts(size, count):
    """As many strings of that size, each with a number of its own."""
    out = b""
    for number in range(1, count + 1):
        out += twin.write_record(twin.Raw(0xE0, [number, bytes(size)]), twin.Deltas(0))
    return out


def numbered(before, after, count):
    """As many records, each with a number of its own in the middle."""
    return b"".join(before + twin.varint(n) + after for n in range(count))


def one(*records):
    return b"".join(twin.write_record(record, twin.Deltas(0)) for record in records)


SIZE = 2 * MEGABYTE
STACKS = 200_000
BOMBS = {
    "strings": [(texts(1000, SIZE // 1004), twin.METADATA, 60)],
    "one string": [(one(twin.Raw(0xE1, [1, bytes(SIZE)])), twin.METADATA, 60)],
    "spans": [(b"\x62\x01\x02\x01" * (SIZE // 4), twin.EVENTS, 60)],
    "threads": [(numbered(b"\xa0\x01", b"\1\1\1", SIZE // 8), twin.METADATA, 4)],
    "zeros": [(bytes(SIZE), twin.EVENTS, 60)],
    "calls": [(b"\x40\x01\x01" * (SIZE // 3), twin.EVENTS, 20)],
    "c calls": [(b"\x40\x01\x01" + b"\x46\0\0" * (SIZE // 3), twin.EVENTS, 20)],
    "generators": [(b"\x67\x01\x01\x02\x22\0" * (SIZE // 6), twin.EVENTS, 4)],
    "open generators": [(b"\x67\x01\x01\x02" * (SIZE // 4), twin.EVENTS, 6)],
    "owners": [(numbered(b"\x65\0", b"\0\x40\0\0", SIZE // 9), twin.EVENTS, 4)],
    "tasks": [(numbered(b"\xc3\0", b"\0\0\0\x02", SIZE // 9), twin.METADATA, 6)],
    "frames": [
        (b"".join(_stack(n) for n in range(1, STACKS)), twin.METADATA, 1),
        (b"\x48\0" + twin.varint(STACKS - 1) + b"\x48\0\0", twin.EVENTS, 1),
        ((b"\x48\0" + twin.varint(STACKS - 1) + b"\x48\0\0") * 50_000, twin.EVENTS, 9),
    ],
    "frames over c calls": [
        (b"".join(_stack(n) for n in range(1, STACKS)), twin.METADATA, 1),
        (b"\x48\0\x01" + b"\x46\0\0" * (SIZE // 3), twin.EVENTS, 1),
        (b"\x48\0\x01\x6b\0\0\0" * 100_000, twin.EVENTS, 5),
    ],
    "thread frames": [
        (numbered(b"\x6e\0", b"\0\x28\x01", SIZE // 9), twin.METADATA, 4),
        (numbered(b"\x65\x01", b"\0\x40\0\0", SIZE // 9), twin.EVENTS, 2),
    ],
    "lines": [
        (one(twin.Raw(0xE0, [1, b"\xf8" * SIZE])), twin.METADATA, 1),
        (one(twin.Raw(0xC0, [1, 0, 0, 0, 1, 1])), twin.METADATA, 1),
        (
            b"\x40\0\x01" + numbered(b"\x6b\0\0\xff\xff", b"", SIZE // 8),
            twin.EVENTS,
            4,
        ),
    ],
}


@pytest.mark.parametrize("what", BOMBS)
def test_a_small_file_cannot_fill_the_memory(what, tmp_path, run_python):
    path = tmp_path / "bomb"
    path.write_bytes(bomb(*BOMBS[what]))
    assert path.stat().st_size < 2 * MEGABYTE
    told = run_python(HOSTILE.format(path=str(path)))
    grown, *_, seconds, _ = map(int, told.split())
    if not SANITIZED:
        assert grown < 64 * MEGABYTE + 2 * LARGEST
        assert seconds < 60


def test_what_a_program_with_native_frames_has_is_kept_of_a_small_file():
    """Nearly every place that memory is taken from is a stack of its own."""
    stacks = numbered(b"\x87", b"\0\1\x22", 600_000)
    reader = _core.Reader(bomb((stacks, twin.METADATA, 1)), _zstd.unpack)
    assert reader.totals()["names_left_out"] == 0
    assert reader.stack(1) == (0, ~1, 0x22)
    assert reader.stack(599_999) == (0, ~1, 0x22)
    assert reader.native_frames() == [(1, 0x22)]


def test_verbs_say_that_names_are_missing(tmp_path):
    path = tmp_path / "bomb.whence"
    path.write_bytes(bomb(*BOMBS["strings"]))
    said = "names and stacks missing: some stacks are cut"
    assert said in command.run("summary", path).stdout
    done = command.run("export", path, "-o", tmp_path / "a.collapsed")
    assert said in done.stderr


def test_lengths_that_lie(tmp_path):
    """Each word of the headers set to extremes, with checksums that agree."""
    file = recordings.every_kind()
    for layout in (twin.FIXED, twin.COMPACT):
        good = bytearray(twin.write(file, layout))
        for at in range(8, 124, 4):
            for value in (0, 1, 0x7FFFFFFF, 0xFFFFFFFF):
                data = bytearray(good)
                data[at : at + 4] = struct.pack("<I", value)
                data[124:128] = struct.pack("<I", twin.checksum(bytes(data[:124])))
                read_everything(bytes(data))
        chunk = file.header_size
        for at in [*range(8, 60, 4), *range(64, 124, 4)]:
            for value in (0, 1, 0x7FFFFFFF, 0xFFFFFFFF):
                data = bytearray(good)
                data[chunk + at : chunk + at + 4] = struct.pack("<I", value)
                opening = data[chunk : chunk + 4] + bytes(4)
                opening += data[chunk + 8 : chunk + 60]
                for start, part in (
                    (60, opening),
                    (124, data[chunk + 64 : chunk + 124]),
                ):
                    seal = struct.pack("<I", twin.checksum(bytes(part)))
                    data[chunk + start : chunk + start + 4] = seal
                read_everything(bytes(data))


def read_everything(data):
    reader = _core.Reader(data, _zstd.unpack)
    if reader.header()["opened"] != "good":
        return None
    records = list(reader.records())
    list(reader.spans())
    list(reader.counters())
    list(reader.collections())
    calls_of(reader)
    list(reader.exceptions())
    list(reader.awaits())
    reader.threads()
    reader.tasks()
    totals = reader.totals()
    assert totals["produced"] >= totals["recorded"]
    return records


def test_random_bytes_in_open_chunks():
    """Nothing protects what is not sealed: anything may be there."""
    rng = random.Random(7)
    for _ in range(300):
        file = recordings.every_kind()
        file.state = twin.RECORDING
        for chunk in file.chunks:
            chunk.state = twin.OPEN
        data = bytearray(twin.write(file))
        for _ in range(rng.randint(1, 20)):
            chunk = file.header_size + 4096 * rng.randrange(len(file.chunks))
            at = chunk + rng.randrange(64, 1_000)
            data[at] = rng.randrange(256)
        found = recording_reader.read(bytes(data))
        assert repr(read_everything(bytes(data))) == repr(found.records)
        reader = _core.Reader(bytes(data), _zstd.unpack)
        assert calls_of(reader) == found.calls
        assert list(reader.exceptions()) == found.exceptions


@pytest.mark.parametrize("layout", LAYOUTS)
def test_unknown_kinds_at_every_position(layout, rng):
    plain = recordings.every_kind()
    expected = read_everything(LAYOUTS[layout](plain))
    places = [
        (number, at)
        for number, chunk in enumerate(plain.chunks)
        for at in range(len(chunk.records) + 1)
    ]
    for number, at in places:
        file = recordings.every_kind()
        file.version = (1, 9)
        file.chunks[number].records.insert(at, recordings.unknown_kind(rng))
        data = LAYOUTS[layout](file)
        assert read_everything(data) == expected
        totals = _core.Reader(data, _zstd.unpack).totals()
        assert totals["unknown"] == 1
        assert totals["problems"] == []
