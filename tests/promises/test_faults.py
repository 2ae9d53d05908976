"""Every system call of the recorder fails in turn: the program goes on unchanged."""

import errno
import os
import subprocess
import threading
from pathlib import Path

import pytest

import whence
from harness import runner

pytestmark = pytest.mark.store

FOR_EVER = 2**40


def program():
    """Something with threads and a result, marked and counted all over."""
    results = []

    def work(number):
        with whence.span("work", number=number):
            for turn in range(150):
                whence.counter("turn", turn)
                results.append(number * turn)

    threads = [threading.Thread(target=work, args=[n]) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whence.mark("done")
    return sum(results)


def record_it(folder, **options):
    """Run the program in a recording with a dump in it; its result, and the files."""
    path, copy = folder / "faulty.whence", folder / "copy.whence"
    for old in folder.iterdir():
        old.unlink()
    recorder = whence.record(path, chunk_size=4096, **options, calls=False)
    with recorder:
        result = program()
        try:
            recorder.dump(copy)
            dumped = True
        except (OSError, RuntimeError):
            dumped = False  # whoever asks for a copy is told that there is none
        result += program()
    return result, recorder, path, copy if dumped else None


def check_files(recorder, path, copy, *, removable):
    """What is there can be read, and nothing else is left behind.

    Unless it could not even be removed: then there is a file that begins with nothing.
    """
    for file in path.parent.iterdir():
        assert file.name in (path.name, "copy.whence")
        if file.read_bytes()[:4096].strip(b"\0") == b"":
            assert not removable
            continue
        assert file in (path, copy)
        with whence.open(file) as recording:
            losses = recording.losses
            assert losses.produced == losses.recorded + sum(losses.dropped.values())
            assert "damaged" not in losses.dropped
            assert sum(1 for _ in recording) >= losses.recorded
            if file == path:
                assert recording.info.ended == recorder.reason


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "recordings"
    made.mkdir()
    return made


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("last", [0, FOR_EVER], ids=["once", "for_ever"])
@pytest.mark.parametrize(
    "error",
    ["ENOSPC", "EDQUOT", "EIO", "EINTR", "ENOMEM", "EOPNOTSUPP", "SHORT"],
)
def test_every_call_fails_in_turn(faults, folder, error, last):
    number = faults.SHORT if error == "SHORT" else getattr(errno, error)
    expected, *_ = record_it(folder, max_size=24 * 4096)
    faults.arm(0, -1, 0)  # none fails
    record_it(folder, max_size=24 * 4096)
    calls = faults.disarm()
    assert calls > 60
    for point in range(calls + 5):  # how threads take turns moves it a little
        faults.arm(point, point + last, number)
        try:
            result, recorder, path, copy = record_it(folder, max_size=24 * 4096)
        finally:
            faults.disarm()
        assert result == expected, f"call {point} of {calls}"
        check_files(recorder, path, copy, removable=last == 0)


def test_an_unbounded_recording_ends_with_its_reason(faults, folder):
    faults.arm(20, FOR_EVER, errno.ENOSPC, "fallocate")
    try:
        recorder = whence.record(
            folder / "full.whence", chunk_size=4096, pack=False, calls=False
        )
        with recorder:
            for value in range(100_000):
                whence.counter("value", value)
            assert recorder.state == "ended"
            assert recorder.reason == "disk"
    finally:
        faults.disarm()
    assert recorder.recorded + sum(recorder.dropped.values()) >= 100_000
    with whence.open(folder / "full.whence") as recording:
        assert recording.info.ended == "disk"
        assert recording.info.error == errno.ENOSPC
        losses = recording.losses
        kept = [counter.value for counter in recording.counters]
    assert kept == list(range(len(kept)))
    assert len(kept) > 5_000
    assert losses.dropped["disk"] == losses.produced - losses.recorded > 0


def test_a_file_system_that_cannot_reserve_space(faults, folder):
    faults.arm(0, FOR_EVER, errno.EOPNOTSUPP, "fallocate")
    try:
        recorder = whence.record(folder / "zeros.whence", pack=False, calls=False)
        with recorder:
            program()
        assert recorder.reason is None
    finally:
        faults.disarm()
    with whence.open(folder / "zeros.whence") as recording:
        assert sum(1 for _ in recording.counters) == 450
    file = folder / "zeros.whence"
    assert file.stat().st_blocks * 512 >= file.stat().st_size  # no holes


def test_a_failing_start_says_so_and_the_program_goes_on(faults, folder):
    faults.arm(0, FOR_EVER, errno.EMFILE, "open")
    try:
        recorder = whence.record(folder / "never.whence", calls=False)
        with recorder:
            assert program() == 3 * sum(range(150))
            assert recorder.state == "ended"
    finally:
        faults.disarm()
    assert recorder.reason == "io"
    assert list(folder.iterdir()) == []
    with whence.record(folder / "later.whence", calls=False) as later:
        assert later.state == "on"


BUSY = """
import sys, threading, whence
def work():
    for value in range(100_000):
        with whence.span("busy"):
            whence.counter("value", value)
def program():
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print("result", sum(range(1000)))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system needs root")
@pytest.mark.parametrize("size", ["1m", "4m"])
def test_a_file_system_that_fills_up(tmp_path, size):
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", small], check=True
    )
    try:
        path = small / "full.whence"
        recorded = BUSY + f"with whence.record({str(path)!r}, calls=False): program()"
        outcome = runner.same_as_without(BUSY + "program()", recorded)
        assert outcome.status == 0
        with whence.open(path) as recording:
            assert recording.info.ended == "disk"
            losses = recording.losses
            assert losses.dropped["disk"] > 0
            assert losses.produced == losses.recorded + sum(losses.dropped.values())
            assert sum(1 for _ in recording.counters) > 1000
        assert [file.name for file in small.iterdir()] == ["full.whence"]
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_limit_on_the_size_of_files(tmp_path):
    """SIGXFSZ would end a program that has not asked for it to be ignored."""
    path = tmp_path / "limited.whence"
    limit = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
"""
    recorded = (
        BUSY + limit + f"with whence.record({str(path)!r}, calls=False): program()"
    )
    outcome = runner.same_as_without(BUSY + limit + "program()", recorded)
    assert outcome.status == 0
    with whence.open(path) as recording:
        assert recording.info.ended == "file_limit"
    assert Path(path).stat().st_size <= 2**20


def test_a_program_that_closes_our_descriptor(tmp_path):
    """Daemons close all of them, and their own files get the same numbers."""
    path, theirs = tmp_path / "daemon.whence", tmp_path / "theirs"
    outcome = runner.run(
        f"""
        import os, whence
        recorder = whence.record({str(path)!r}, chunk_size=4096, calls=False)
        recorder.start()
        whence.mark("before")
        os.closerange(3, 50)
        files = [open({str(theirs)!r} + str(n), "w+") for n in range(20)]
        for value in range(10_000):
            whence.counter("value", value)
        print(recorder.state, recorder.reason)
        recorder.stop()
        for file in files:
            file.write("theirs")
            file.close()
        """
    )
    assert outcome == runner.Outcome(0, "ended io\n", "")
    for number in range(20):
        assert Path(f"{theirs}{number}").read_text() == "theirs"
    with whence.open(path) as recording:
        assert recording.info.ended == "io"
        assert any(r.kind == "mark" for r in recording)
        assert recording.losses.dropped["io"] > 1000
