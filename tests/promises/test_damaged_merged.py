"""F3 for merged recordings: any bytes give a recording or one line, within bounds."""

import io
import json
import os
import zipfile
import zlib

import pytest

import whence
from harness import merging
from promises.test_damaged_recordings import BOMBS, MEGABYTE, SANITIZED, bomb
from reference import recording as twin
from reference import recordings
from whence import _merged, _part, _recording, export

pytestmark = pytest.mark.store

STEP = 16 if SANITIZED else 3


def data_of(number, copies=1):
    file = recordings.every_kind(copies)
    file.file_id = bytes([number]) * 16
    return twin.write(file)


def archive(parts, index=None, *, method=zipfile.ZIP_STORED, large=False, **changes):
    """Write parts, (name, bytes), as a merged recording whose index may be changed."""
    listed = [
        {
            "name": name,
            "pid": 1,
            "time_shift": 10 * n,
            "thread_base": 2 * n,
            "task_base": 2 * n,
        }
        for n, (name, _) in enumerate(parts)
    ]
    content = {"version": 1, "processes": listed, **changes}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("processes.json", json.dumps(content) if index is None else index)
        for name, data in parts:
            entry = zipfile.ZipInfo(name)
            entry.compress_type = method
            with file.open(entry, "w", force_zip64=large) as part:
                part.write(data)
    return out.getvalue()


@pytest.fixture
def parts():
    return [("1-1.whence", data_of(1)), ("2-1.whence", data_of(2))]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "all.whence"


def read(path):
    """Read everything, or return the one line that says why not."""
    before = len(os.listdir("/proc/self/fd"))
    try:
        recording = whence.open(path)
    except whence.RecordingError as error:
        (line,) = str(error).splitlines()
        assert line.startswith(str(path))
        assert len(line) < len(str(path)) + 200
        return line
    finally:
        assert len(os.listdir("/proc/self/fd")) <= before + 5
    with recording:
        list(recording), recording.threads, recording.tasks, recording.processes
        list(recording.spans), list(recording.exceptions), recording.losses
        calls = recording.calls().read()
        assert sum(calls.count) >= sum(node.calls for node in recording.call_tree())
        return [process.id for process in recording.processes]


def refused(path, data):
    path.write_bytes(data)
    line = read(path)
    assert isinstance(line, str), line
    return line.removeprefix(f"{path} ")


def test_what_these_tests_write_is_good(path, parts):
    path.write_bytes(archive(parts))
    assert read(path) == [1, 2]
    path.write_bytes(archive(parts, large=True))  # as entries beyond 4 GB are written
    assert read(path) == [1, 2]


def test_every_prefix(path, parts):
    data = archive(parts)
    end = data.index(parts[1][1]) + len(parts[1][1])
    for size in range(0, len(data), 97 * STEP):
        path.write_bytes(data[:size])
        found = read(path)
        assert (found == [1, 2]) if size >= end else found != [], size


def test_parts_before_a_cut_are_read(path, parts):
    data = archive(parts)
    begins = [data.index(part) for _, part in parts]
    ends = [begin + len(part) for begin, (_, part) in zip(begins, parts, strict=True)]
    header = 512  # as much of a recording as says what it is
    for size, parts_read, lacks in (
        (begins[0], [], "1-1.whence is missing: the file ends before it"),
        (begins[0] + header - 1, [], "1-1.whence is a recording cut off within its"),
        (begins[0] + header, [1], "2-1.whence is missing: the file ends before it"),
        (ends[0], [1], "2-1.whence is missing: the file ends before it"),
        (begins[1], [1], "2-1.whence is missing: the file ends before it"),
        (begins[1] + header - 1, [1], "2-1.whence is a recording cut off within its"),
        (begins[1] + header, [1, 2], "the end of 2-1.whence is missing: 512 of "),
        (ends[1] - 1, [1, 2], "the end of 2-1.whence is missing: "),
    ):
        path.write_bytes(data[:size])
        found = read(path)
        assert parts_read == (found if isinstance(found, list) else []), size
        if parts_read:
            with whence.open(path) as recording:
                bad = _recording.unreadable(recording)
            assert any(each.startswith(lacks) for each in bad), (size, bad)
            cut = size < ends[0]
            assert any("the end of 1-1.whence" in each for each in bad) == cut
        else:
            assert found.startswith(f"{path}: {lacks}")


def test_what_is_left_of_a_part_is_read_as_a_file_that_was_cut(path, parts):
    data = archive(parts)
    for left in (600, 4_200, 6_000, len(parts[1][1]) - 1):
        path.write_bytes(data[: data.index(parts[1][1]) + left])
        with whence.open(path) as recording:
            second = recording.slice(processes=[2]).losses
        path.write_bytes(parts[1][1][:left])
        with whence.open(path) as recording:
            assert recording.losses == second


def test_an_index_of_parts_that_are_not_there(path, parts):
    listed = [
        {"name": f"{n}.whence", "time_shift": 0, "thread_base": 0, "task_base": 0}
        for n in range(_merged.MOST_PARTS)
    ]
    data = archive(
        parts[:1], processes=[{**listed[0], "name": parts[0][0]}, *listed[1:]]
    )
    end = data.index(parts[0][1]) + len(parts[0][1])
    path.write_bytes(data[:end])
    assert read(path) == [1]
    with whence.open(path) as recording:
        assert len(_recording.unreadable(recording)) == _merged.MOST_PARTS - 1


def test_every_flip_of_one_bit_around_the_parts(path, parts, rng):
    data = archive(parts)
    places = [*range(data.index(parts[0][1]))]
    middle = data.index(parts[0][1]) + len(parts[0][1])
    places += range(middle, data.index(parts[1][1]))
    refusals, bits = 0, 1 if SANITIZED else 3
    for place in places:
        for bit in rng.sample(range(8), bits):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            path.write_bytes(changed)
            found = read(path)
            refusals += isinstance(found, str)
            assert isinstance(found, str) or found in ([1, 2], [1])
    assert refusals > bits * len(places) / 2


def test_flips_in_one_part_leave_the_other(path, parts, rng):
    data = archive(parts)
    begin = data.index(parts[1][1])
    path.write_bytes(data)
    with whence.open(path) as recording:
        good = list(recording.slice(processes=[1]).calls().read())
    for _ in range(300 // STEP):
        changed = bytearray(data)
        changed[begin + rng.randrange(len(parts[1][1]))] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        assert read(path) in ([1, 2], [1])
        with whence.open(path) as recording:
            found = recording.slice(processes=[1]).calls().read()
            assert list(found) == good


def test_archives_of_others(path, parts):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("a.txt", "text")
    what = "is a zip archive, not a recording: it has no processes.json"
    assert refused(path, out.getvalue()) == what
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w"):
        pass
    assert refused(path, out.getvalue()) == "is not a recording"  # an empty one
    assert refused(path, b"PK\x03\x04") == what
    assert refused(path, b"PK\x03\x04" + bytes(26) + b"processes.json").endswith(
        "makes no sense"
    )


def test_packed_entries(path, parts):
    line = refused(path, archive(parts, method=zipfile.ZIP_DEFLATED))
    assert line.startswith("is a damaged merged recording: the entry at byte ")
    assert line.endswith(" is packed, or changed")


NONSENSE = [
    *("", "null", "[]", "{}", "1", '"text"', "{", "\xff", "NaN", "[" * 100_000),
    *('{"version": 1}', '{"version": 1, "processes": {}}', '{"processes": []}'),
    *('{"version": 1, "processes": []}', '{"version": 1, "processes": [1]}'),
    *('{"version": 1, "processes": [{}]}', '{"version": true, "processes": [{}]}'),
    '{"version": 1, "processes": [{"name": "1-1.whence"}]}',
    '{"version": ' + "9" * 5_000 + ', "processes": []}',
    '{"version": 0, "processes": []}',
]


@pytest.mark.parametrize("index", NONSENSE, ids=range(len(NONSENSE)))
def test_an_index_that_makes_no_sense(index, path, parts):
    line = refused(path, archive(parts, index))
    assert line == "is a damaged merged recording: processes.json makes no sense"


WRONG = {
    "time_shift": [(5, 10), (0, -1), (0, 2**62 + 1), (0, 1.5), (0, None), (0, "1")],
    "thread_base": [(1, 2), (0, -2), (0, 2**31 + 1), (0, 10**300), (0, [])],
    "task_base": [(3, 4), (0, -1), (0, 2**62 + 1), (0, True), (0, {})],
    "name": [
        *((1, 2), ("1-1.whence", None), ("", "2"), ("1", "2" * 256)),
        *(("1", "a\nb"), ("1", "a\x1b"), ("1", "\u00e9")),
    ],
}


@pytest.mark.parametrize("key", WRONG)
def test_absurd_numbers(key, path, parts):
    for pair in WRONG[key]:
        listed = [
            {"name": name, "time_shift": 0, "thread_base": 0, "task_base": 0}
            for name, _ in parts
        ]
        for each, value in zip(listed, pair, strict=True):
            each[key] = value
        line = refused(path, archive(parts, processes=listed))
        assert line == "is a damaged merged recording: processes.json makes no sense"


def test_the_largest_numbers_that_make_sense(path, parts):
    listed = [
        {"name": name, "time_shift": 0, "thread_base": 0, "task_base": 0}
        for name, _ in parts
    ]
    limits = {"time_shift": 2**62, "thread_base": 2**31, "task_base": 2**62}
    listed[1].update(limits)
    path.write_bytes(archive(parts, processes=listed))
    assert read(path) == [1, 2]
    with whence.open(path) as recording:
        assert recording.threads[2].id == 2**31 + 1
        assert recording.tasks[2].id == 2**62 + 1
        assert min(call.start for call in recording.calls().read()) < 2**62
        for suffix in ("json", "pftrace", "pstats", "speedscope.json"):
            export.export(recording, path.with_suffix(f".{suffix}"))


def test_a_newer_version(path, parts):
    line = refused(path, archive(parts, version=2))
    assert line == (
        "was written by a newer whence (merged recordings of version 2); "
        "upgrade whence to read it"
    )


def test_an_index_with_another_checksum(path, parts):
    data = archive(parts)
    line = refused(path, data.replace(b'"time_shift": 10', b'"time_shift": 11'))
    assert line == (
        "is a damaged merged recording: processes.json does not agree with its checksum"
    )


def test_other_entries_than_the_index_lists(path, parts):
    other = archive(parts).replace(b"\n2-1.whence", b"\n3-1.whence")
    data = archive(parts)
    at = data.rindex(b"2-1.whence", 0, data.index(parts[1][1]))
    changed = data[:at] + b"3" + data[at + 1 :]
    assert refused(path, changed) == (
        "is a damaged merged recording: another entry is in the place of 2-1.whence"
    )
    assert other == data  # names are not between lines: only the entry was changed
    listed = json.loads(data[44 : data.index(b"}]}") + 3])["processes"]
    three = [*listed, {**listed[1], "name": "3-1.whence"}]
    line = refused(path, archive(parts, processes=three))
    assert line.startswith("is a damaged merged recording: there is no entry at byte ")
    again = [listed[0], listed[0]]
    assert "another entry" in refused(path, archive(parts, processes=again))


@pytest.mark.parametrize("size", [1, 2**31, 2**32 - 2, 2**32 - 1])
def test_entries_that_overlap_or_go_beyond_the_file(size, path, parts):
    data = bytearray(archive(parts))
    for begin in (0, data.index(parts[0][1]) - 40, data.index(parts[1][1]) - 40):
        changed = bytearray(data)
        sizes = size.to_bytes(4, "little")
        changed[begin + 18 : begin + 26] = sizes * 2
        path.write_bytes(changed)
        found = read(path)
        if (size, begin) == (1, data.index(parts[1][1]) - 40):
            assert found == [1]  # what is left of the last is no recording
        else:
            assert found.startswith(f"{path} is a damaged merged recording: ")


def test_large_sizes_that_lie(path, parts):
    data = archive(parts, large=True)
    begin = data.index(parts[0][1]) - 16
    for size in (2**63, 2**64 - 1, 10**12):
        sizes = size.to_bytes(8, "little") * 2
        line = refused(path, data[:begin] + sizes + data[begin + 16 :])
        assert line.endswith("1-1.whence goes beyond the end of the file")


def test_ten_thousand_entries(path):
    line = refused(path, archive([(f"{n}.whence", b"") for n in range(10_000)]))
    assert line == "is a damaged merged recording: it has more than 4,096 processes"
    huge = json.dumps({"version": 1, "processes": [{"name": "x" * 10**7}]})
    line = refused(path, archive([], huge))
    assert line.endswith("processes.json is longer than it can be")


def test_as_many_parts_as_there_may_be(path):
    data = data_of(1)
    parts = [(f"{n}.whence", data) for n in range(_merged.MOST_PARTS)]
    path.write_bytes(archive(parts))
    with whence.open(path) as recording:
        assert len(recording.processes) == len(parts)
        assert len(recording.threads) == 2 * len(parts)


def test_parts_that_are_no_recordings(path, parts):
    merged = archive(parts)
    bad = ("2.whence", b"nothing"), ("3.whence", b""), ("4.whence", merged)
    path.write_bytes(archive([parts[0], *bad]))
    assert read(path) == [1]
    line = refused(path, archive([*bad]))
    assert line == f"{path}: 2.whence is not a recording"


BOMB = """
    import re, sys, time
    import whence
    from whence import _zstd

    def peak():
        with open("/proc/self/status") as status:
            return int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1]) * 1024

    _zstd.unpack(_zstd.pack(b"warm up"), 7)
    before = peak()
    start = time.monotonic()
    with whence.open({path!r}) as recording:
        recording.processes, recording.info
        counts = [len(recording.threads), len(recording.tasks)]
        counts += [sum(1 for _ in recording.spans), len(recording.call_tree())]
    print(peak() - before, round(time.monotonic() - start), *counts)
"""


@pytest.mark.parametrize("what", ["strings", "threads", "tasks", "generators"])
def test_memory_goes_with_the_size_not_with_the_parts(what, path, run_python):
    copies = 24 if what == "strings" else 1  # as much as a reader has room for
    data = bomb(*((payload, kind, copies) for payload, kind, _ in BOMBS[what]))
    grown, sizes = [], []
    for count in (_part._MOST_READERS + 1, 3 * _part._MOST_READERS):
        path.write_bytes(archive([(f"{n}.whence", data) for n in range(count)]))
        told = run_python(BOMB.format(path=str(path)))
        bytes_, seconds, *_ = map(int, told.split())
        grown.append(bytes_)
        sizes.append(path.stat().st_size)
        if not SANITIZED:
            assert seconds < 60
    if not SANITIZED:
        assert grown[1] < grown[0] + 64 * MEGABYTE + 32 * (sizes[1] - sizes[0])


def test_the_helpers_agree_with_the_standard_library(parts):
    """Or else these tests would be about files that nobody writes."""
    data = archive(parts)
    index = data[44 : data.index(b"}]}") + 3]
    assert zlib.crc32(index) == int.from_bytes(data[14:18], "little")
    assert merging.SECOND == 10**9
