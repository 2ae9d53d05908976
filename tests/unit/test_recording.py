"""whence.open() and what it gives."""

import datetime
import errno
import os
import subprocess
import sys
import threading

import pytest

import whence
from reference import recording as twin
from reference import recordings
from whence import _recording, _zstd

pytestmark = pytest.mark.store


@pytest.fixture
def path(tmp_path):
    return tmp_path / "app.whence"


def write(path, file=None, layout=twin.FIXED, pack=None):
    path.write_bytes(twin.write(file or recordings.every_kind(), layout, pack))
    return path


def test_info(path):
    with whence.open(write(path)) as recording:
        info = recording.info
    assert info.path == str(path)
    assert info.version == "1.0"
    assert info.file_id == bytes(range(16)).hex()
    assert (info.pid, info.program, info.python) == (777, "app.py", "3.14.0")
    assert info.whence == "0.1.0"
    assert info.start == datetime.datetime(
        2023, 11, 14, 22, 13, 20, tzinfo=datetime.UTC
    )
    assert info.clock == "tsc"
    assert info.chunk_size == 4096
    assert info.size == path.stat().st_size
    assert info.duration > 0
    assert (info.packed, info.closed) == (False, True)
    assert (info.ended, info.error) == (None, None)


def test_info_of_recordings_that_did_not_end_well(path):
    file = recordings.every_kind()
    file.state, file.reason, file.error = twin.ENDED, 2, errno.ENOSPC
    for file.sealed in (True, False):
        with whence.open(write(path, file)) as recording:
            info = recording.info
            assert info.closed is file.sealed
            assert (info.ended, info.error) == ("disk", errno.ENOSPC)
            assert info.duration > 0
    file.state, file.reason, file.error = twin.RECORDING, 0, 0
    for chunk in file.chunks:
        chunk.state = twin.OPEN
    with whence.open(write(path, file)) as recording:
        info = recording.info
        assert (info.closed, info.ended, info.error) == (False, None, None)
        assert info.duration == max(record.time for record in recording)


def test_threads(path):
    with whence.open(write(path)) as recording:
        main, other = recording.threads
    assert (main.id, main.os_id, main.name) == (1, 4242, "MainThread")
    assert (main.start, main.end) == (None, None)
    assert (other.id, other.os_id, other.name) == (2, 4243, "part one, part two")
    assert 0 < other.start < other.end


def test_spans(path):
    with whence.open(write(path)) as recording:
        spans = list(recording.spans)
        assert list(recording.spans) == spans  # as often as one likes
    names = ["load", "request", "\x1b[31mred", "\ud800 lone"]
    assert [span.name for span in spans] == names
    error, plain, away, still_open = spans
    assert (still_open.open, still_open.duration) == (True, None)
    assert not any(span.open for span in spans[:3])
    assert (error.error, plain.error, away.error) == (True, False, True)
    assert (away.thread, still_open.thread) == (1, 2)
    assert plain.start < error.start
    assert error.start + error.duration < plain.start + plain.duration
    tags = next(span.tags for span in spans if span.tags)
    assert tags == {
        "program": None,
        "python": False,
        "whence": True,
        "app.py": -5,
        "3.14.0": 2.5,
        "0.1.0": "tëxt",
        "MainThread": "<list>",
    }


def test_a_span_whose_begin_was_overwritten_is_whole(path):
    tags = twin.write_tags([(1, 5)])
    end = [twin.Raw(0xE2, [40, tags]), twin.Raw(0x80, [5_000, 40, 1, 3_000])]
    file = recordings.every_kind()
    file.chunks = [
        file.chunks[0],
        twin.Chunk(50, end, thread=1, start=(4_900, 5_039_000)),
    ]
    file.count = 0
    file.chunks[1].end = (5_000, 5_040_000)
    with whence.open(write(path, file)) as recording:
        (span,) = recording.spans
    assert (span.name, span.thread, span.tags) == ("program", 1, {"program": 5})
    assert not span.open
    assert span.duration > 0


def test_counters_and_collections(path):
    with whence.open(write(path)) as recording:
        whole, part = recording.counters
        (collection,) = recording.gc
        assert repr(recording.gc) == f"<collections of {path}>"
        assert repr(recording) == f"<whence.Recording {path}>"
    assert (whole.name, whole.value, part.value) == ("größe", -12, 0.1)
    assert whole.thread == part.thread == 1
    assert whole.time < part.time
    assert collection[3:] == (2, 30, 1)
    assert collection.duration > 0


def test_losses_add_up(path):
    with whence.open(write(path)) as recording:
        losses = recording.losses
    assert losses.dropped == {"ring": 5, "disk": 7, "too_large": 1}
    assert losses.produced == losses.recorded + 13
    assert losses.names == 2


def test_records(path):
    with whence.open(write(path)) as recording:
        records = list(recording)
    kinds = [record.kind for record in records]
    assert kinds[0] == "string"
    assert {kind.name for kind in twin.KINDS.values()} == set(kinds)
    mark = next(record for record in records if record.kind == "mark")
    assert mark.fields == {"name": "load"}
    lost = next(record for record in records if record.kind == "lost")
    assert lost.fields == {"reason": "disk", "events": 7}
    broken = [r.fields["name"] for r in records if r.kind == "mark" and r.thread == 2]
    assert broken == ["not \ufffd utf-8"]


def test_all_layouts_say_the_same(path):
    file = recordings.every_kind(20)
    seen = []
    for layout, pack in ((0, None), (1, None), (1, _zstd.pack)):
        with whence.open(write(path, file, layout, pack)) as recording:
            seen.append([list(recording), list(recording.spans), recording.losses])
            assert recording.info.packed == (pack is not None)
    assert seen[0] == seen[1] == seen[2]


# Errors


def test_what_is_no_recording_says_so_in_one_line(path, tmp_path):
    good = twin.write(recordings.every_kind())
    cases = {
        b"": "is not a recording: empty",
        b"hello" * 1000: "is not a recording",
        good[
            :300
        ]: "is a recording cut off within its header: nothing of it can be read",
        good[:50] + b"x" + good[51:]: "is a recording with a damaged header: "
        "nothing of it can be read",
    }
    for data, message in cases.items():
        path.write_bytes(data)
        with pytest.raises(whence.RecordingError) as raised:
            whence.open(path)
        assert str(raised.value) == f"{path} {message}"
    with pytest.raises(whence.RecordingError, match="not a regular file"):
        whence.open(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(whence.RecordingError, match="not a regular file"):
        whence.open(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        whence.open(tmp_path / "nowhere")


def test_a_newer_format_is_refused(path):
    file = recordings.every_kind()
    file.version = (2, 3)
    with pytest.raises(whence.RecordingError) as raised:
        whence.open(write(path, file))
    assert str(raised.value) == (
        f"{path} was written by a newer whence (format 2.3); upgrade whence to read it"
    )


def test_no_zstd(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "whence._zstd", None)
    monkeypatch.delattr(whence, "_zstd", raising=False)
    write(path, recordings.every_kind(20), twin.COMPACT, _zstd.pack)
    with pytest.raises(
        whence.RecordingError, match="is packed with zstd, and"
    ) as error:
        whence.open(path)
    if sys.version_info < (3, 14):
        assert str(error.value).endswith(
            "backports.zstd is not installed: pip install backports.zstd"
        )
    with whence.open(write(path)) as recording:  # what is not packed needs none
        assert recording.losses.recorded


def test_failed_opens_leave_no_file_open(path):
    before = len(os.listdir("/proc/self/fd"))
    path.write_bytes(b"nothing")
    for _ in range(50):
        with pytest.raises(whence.RecordingError):
            whence.open(path)
    recording = whence.open(write(path))
    del recording
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_closed_recording_says_so(path):
    recording = whence.open(write(path))
    spans = iter(recording.spans)
    next(spans)
    recording.close()
    recording.close()
    for use in (lambda: next(spans), lambda: recording.info, lambda: recording.losses):
        with pytest.raises(ValueError, match="the recording is closed"):
            use()


def test_what_unpacking_raises_comes_out(path, monkeypatch):
    write(path, recordings.every_kind(20), twin.COMPACT, _zstd.pack)
    recording = whence.open(path)

    def interrupted(packed, size):
        raise KeyboardInterrupt

    monkeypatch.setattr(_zstd, "unpack", interrupted)
    for use in (
        lambda: list(recording),
        lambda: list(recording.spans),
        lambda: recording.losses,
        lambda: _recording.rewrite(recording, 1, pack=False),
    ):
        with pytest.raises(KeyboardInterrupt):
            use()


def test_threads_share_a_recording(path):
    write(path, recordings.every_kind(40), twin.COMPACT, _zstd.pack)
    with whence.open(path) as recording:
        expected = list(recording.spans)
        seen = []

        def read():
            for _ in range(5):
                seen.append(list(recording.spans) == expected)
                seen.append(recording.losses.recorded > 0)

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == [True] * 80


# Live and unclosed files


def test_a_ring_is_counted_wherever_the_kill_came(path):
    file = recordings.every_kind()
    file.state, file.dropped, file.produced = twin.RECORDING, {1: 2}, 0
    taken = file.chunks[1]
    for file.journal, ring in (
        ((0, 0, 0, 0), 2),
        ((2, taken.sequence, 10, 30), 12),
        ((2, taken.sequence - 1, 10, 30), 32),
        ((99, 1, 10, 30), 32),
    ):
        with whence.open(write(path, file)) as recording:
            assert recording.losses.dropped == {"ring": ring}
    taken.state = twin.FREE
    file.journal = (2, taken.sequence, 10, 30)
    with whence.open(write(path, file)) as recording:
        assert recording.losses.dropped == {"ring": 32}


def test_what_is_written_after_opening_is_not_read(path):
    file = recordings.every_kind()
    file.state = twin.RECORDING
    chunk = file.chunks[1]
    chunk.state = twin.OPEN
    kept = chunk.records[:5]
    more = chunk.records
    chunk.records = kept
    with whence.open(write(path, file)) as recording:
        before = list(recording)
        chunk.records = more
        write(path, file)
        assert list(recording) == before
        chunk.state = twin.SEALED
        write(path, file)
        assert list(recording) == before


def test_a_chunk_that_is_taken_while_it_is_read_is_dropped(path):
    file = recordings.every_kind()
    file.state, file.dropped, file.produced = twin.RECORDING, {}, 0
    with whence.open(write(path, file)) as recording:
        everything = recording.losses.recorded
        taken = twin.write(file)
        file.chunks[1].sequence = 77
        write(path, file)
        losses = recording.losses
        assert taken != path.read_bytes()
    assert losses.recorded + losses.dropped["ring"] == everything


# Rewriting


def rewrite(path, out, **options):
    with whence.open(path) as recording, out.open("xb") as file:
        return _recording.rewrite(recording, file.fileno(), **options)


def read(path):
    with whence.open(path) as recording:
        return list(recording), list(recording.spans), recording.threads


@pytest.mark.parametrize("pack", [False, True])
def test_a_rewritten_recording_says_the_same(path, tmp_path, pack):
    write(path, recordings.every_kind(20))
    totals = rewrite(path, tmp_path / "out", pack=pack)
    assert totals["problems"] == []
    assert read(tmp_path / "out") == read(path)
    with whence.open(path) as old, whence.open(tmp_path / "out") as new:
        assert new.losses == old.losses
        assert new.info._replace(path="", size=0, packed=False) == old.info._replace(
            path="", size=0
        )
        assert new.info.packed == pack
        assert new.info.size < old.info.size
    rewrite(tmp_path / "out", tmp_path / "again", pack=pack)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "out").read_bytes()


def test_what_never_was_closed_is_closed_by_rewriting(path, tmp_path):
    file = recordings.every_kind(20)
    file.state, file.journal = twin.RECORDING, (99, 1, 10, 30)
    for chunk in file.chunks[2:]:
        chunk.state = twin.OPEN
    write(path, file)
    rewrite(path, tmp_path / "out")
    with whence.open(path) as old, whence.open(tmp_path / "out") as new:
        assert new.info.closed
        assert new.losses == old.losses
        assert new.losses.dropped["ring"] == 35
        assert new.info.duration == old.info.duration
        kinds = [[(r.kind, r.thread, r.time) for r in it] for it in (old, new)]
        assert [k[:2] for k in kinds[0]] == [k[:2] for k in kinds[1]]
        for a, b in zip(*kinds, strict=True):
            assert abs(a[2] - b[2]) <= 1  # a time may fall between other pairs now


def test_why_a_recording_ended_is_kept(path, tmp_path):
    file = recordings.every_kind()
    file.state, file.reason, file.error, file.sealed = twin.ENDED, 2, 28, False
    rewrite(write(path, file), tmp_path / "out")
    with whence.open(tmp_path / "out") as recording:
        info = recording.info
    assert (info.closed, info.ended, info.error) == (True, "disk", 28)


def test_what_is_damaged_is_left_out_and_counted(path, tmp_path):
    file = recordings.every_kind(40)
    data = bytearray(twin.write(file))
    data[4096 + 2 * 4096 + 1000] ^= 1  # in the second chunk of events
    path.write_bytes(data)
    totals = rewrite(path, tmp_path / "out")
    lost = totals["dropped"]["damaged"]
    assert lost == file.chunks[2].payload()[1]
    with whence.open(tmp_path / "out") as recording:
        assert recording.losses.dropped["damaged"] == lost
        assert recording.losses.produced == file.produced
        assert recording._parts[0].reader.totals()["problems"] == []


def test_a_chunk_with_a_bad_record_is_kept_up_to_there(path, tmp_path):
    file = recordings.every_kind()
    chunk = file.chunks[1]
    whole = len(chunk.records)
    chunk.records.insert(10, twin.Raw(0x01, [b""]))
    rewrite(write(path, file), tmp_path / "out")
    with whence.open(tmp_path / "out") as recording:
        losses = recording.losses
        seen = [r for r in recording if r.thread == 1]
        assert recording._parts[0].reader.totals()["problems"] == []
    assert losses.dropped["damaged"] == file.produced - 13 - losses.recorded
    assert 10 <= len(seen) < whole


def test_keep_leaves_old_chunks_out(path, tmp_path):
    file = recordings.every_kind(60)
    ends = sorted(c.end[1] for c in file.chunks if c.what == twin.EVENTS)
    keep = ends[-1] - ends[len(ends) // 2]
    totals = rewrite(write(path, file), tmp_path / "out", keep=keep)
    with whence.open(tmp_path / "out") as recording:
        losses = recording.losses
        assert [t[:3] for t in recording.threads] == [t[:3] for t in read(path)[2]]
    assert losses.produced == file.produced
    assert losses.dropped["ring"] > 5
    assert losses.recorded == totals["recorded"]
    old = [
        c for c in file.chunks if c.what == twin.EVENTS and c.end[1] < ends[-1] - keep
    ]
    assert losses.dropped["ring"] == 5 + sum(c.payload()[1] for c in old)


def test_errors_of_the_file_system_come_out(path):
    write(path)
    with whence.open(path) as recording, open("/dev/full", "wb") as full:
        with pytest.raises(OSError, match="No space left") as raised:
            _recording.rewrite(recording, full.fileno(), pack=False)
        assert raised.value.errno == errno.ENOSPC


# S5: reading runs nothing and opens nothing

AUDIT = """
import sys
import whence
from whence import _events, _processes, _zstd
import datetime
seen = []
sys.addaudithook(lambda name, args: seen.append((name, args)))
with whence.open(sys.argv[1]) as recording:
    list(recording), list(recording.spans), list(recording.counters)
    list(recording.gc), recording.threads, recording.info, recording.losses
print([name for name, _ in seen])
print([args[0] for name, args in seen if name == "open"])
"""


def test_reading_runs_nothing_and_opens_one_file(path, tmp_path):
    file = recordings.every_kind(20)
    canary = tmp_path / "canary.py"
    canary.write_text("raise SystemExit('run')")
    names = [twin.Raw(0xE0, [90, str(canary).encode()]), twin.Raw(0xE0, [91, b"os"])]
    names += [twin.Raw(0xC0, [90, 91, 91, 90, 1, 91])]
    file.chunks.append(twin.Chunk(90, names, what=twin.METADATA, end=(1, 1)))
    file.count += 1
    write(path, file, twin.COMPACT, _zstd.pack)
    done = subprocess.run(
        [sys.executable, "-c", AUDIT, path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    events, opened = done.stdout.splitlines()
    assert eval(opened) == [str(path)]
    assert set(eval(events)) <= {"open", "sys.addaudithook", "object.__getattr__"}


def test_importing_whence_imports_no_reader(run_python):
    out = run_python(
        """
        import sys
        before = set(sys.modules)
        import whence
        print(*sorted(set(sys.modules) - before))
        """
    ).split()
    heavy = {"typing", "pathlib", "threading", "datetime", "argparse", "rich"}
    assert not heavy & set(out)
    assert not {"whence._events", "whence._zstd", "whence.cli"} & set(out)
