"""whence merge: what it takes, what it says, and how other verbs see its files."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import whence
from harness import merging
from harness.command import one_line_of, run
from harness.merging import SECOND
from reference import recording as twin
from reference import recordings
from whence import _clocks, _merged
from whence._clocks import Moment

pytestmark = pytest.mark.store


def write(path, number, **options):
    return merging.write(path, recordings.every_kind(3), number, **options)


@pytest.fixture
def paths(tmp_path):
    return [
        write(tmp_path / f"{n}.whence", n, later=(n - 1) * SECOND) for n in (1, 2, 3)
    ]


@pytest.fixture
def merged(paths, tmp_path):
    out = tmp_path / "all.whence"
    assert run("merge", *paths, "-o", out).returncode == 0
    return out


def shifts(path):
    with whence.open(path) as recording:
        return {process.pid: process.start for process in recording.processes}


def test_it_says_what_it_wrote(paths, tmp_path):
    out = tmp_path / "all.whence"
    done = run("merge", *paths, "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(rf"{out}: 3 processes, [\d.]+ KB\n", done.stdout)
    assert out.stat().st_mode & 0o777 == 0o600
    assert len(os.listdir(tmp_path)) == 4


def test_the_order_of_the_files_does_not_matter(paths, merged, tmp_path):
    other = tmp_path / "other"
    assert run("merge", *paths[::-1], "--output", other).returncode == 0
    assert other.read_bytes() == merged.read_bytes()


# What cannot be done


def test_nothing_to_merge(tmp_path):
    line = one_line_of(run("merge", "-o", tmp_path / "out"))
    assert line == "nothing to merge: name the recordings before -o"


@pytest.mark.parametrize("content", [b"", b"no recording", b"PK\x03\x04 no recording"])
def test_what_is_no_recording(content, paths, tmp_path):
    bad = tmp_path / "bad"
    bad.write_bytes(content)
    line = one_line_of(run("merge", paths[0], bad, "-o", tmp_path / "out"))
    assert line.startswith(f"{bad} is ")
    assert not (tmp_path / "out").exists()
    missing = one_line_of(run("merge", tmp_path / "none", "-o", tmp_path / "out"))
    assert missing == f"{tmp_path / 'none'}: No such file or directory"


def test_the_same_recording_twice(paths, merged, tmp_path):
    out = tmp_path / "out"
    copy = tmp_path / "copy"
    copy.write_bytes(paths[0].read_bytes())
    for other in (paths[0], copy):
        line = one_line_of(run("merge", paths[0], other, "-o", out))
        assert line == f"{paths[0]} and {other} are the same recording"
    line = one_line_of(run("merge", paths[1], merged, "-o", out))
    assert line == f"{paths[1]} and {merged}: 2-1002.whence are the same recording"
    assert not out.exists()


def test_files_are_replaced_only_by_force(paths, tmp_path):
    out = tmp_path / "out"
    out.write_text("precious")
    line = one_line_of(run("merge", *paths, "-o", out))
    assert line == f"{out}: File exists"
    assert out.read_text() == "precious"
    assert run("merge", *paths, "-f", "-o", out).returncode == 0
    assert len(shifts(out)) == 3


def test_the_output_is_no_input(paths, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(paths[0])
    before = paths[0].read_bytes()
    for out in (paths[0], link):
        for force in ([], ["-f"]):
            line = one_line_of(run("merge", *paths, "-o", out, *force))
            assert line == f"{out} is one of the recordings to merge"
    assert paths[0].read_bytes() == before


def test_a_folder_that_is_not_there(paths, tmp_path):
    out = tmp_path / "none" / "out"
    line = one_line_of(run("merge", *paths, "-o", out))
    assert line == f"{out}: No such file or directory"


def test_clocks_and_threads_that_leave_no_room(paths, tmp_path):
    out = tmp_path / "out"
    far = write(tmp_path / "far", 7, wall=2**62 + SECOND, later=2**62 + SECOND)
    line = one_line_of(run("merge", paths[0], far, "-o", out))
    assert line == "they began centuries apart: one of their clocks was wrong"
    file = recordings.every_kind()
    file.chunks[0].records.append(twin.Raw(0xA0, [0, 2**32 - 1, 1, 0, 0]))
    many = merging.write(tmp_path / "many", file, 8)
    line = one_line_of(run("merge", paths[1], many, paths[2], "-o", out))
    assert line == "there is no room for all of their threads: 4,294,967,297"
    assert not out.exists()


def test_more_recordings_than_fit(paths, tmp_path, monkeypatch, capsys):
    from whence.cli import main

    monkeypatch.setattr(_merged, "MOST_PARTS", 2)
    out = tmp_path / "out"
    assert main(["merge", *map(str, paths), "-o", str(out)]) == 2
    assert capsys.readouterr().err == (
        "whence: 3 recordings are too many: 2 can be merged\n"
    )


# What is not whole


def test_one_that_was_never_closed(paths, tmp_path):
    file = recordings.every_kind(3)
    file.state = twin.RECORDING
    file.chunks[-1].state = twin.OPEN
    live = merging.write(tmp_path / "live", file, 9)
    out = tmp_path / "out"
    done = run("merge", paths[1], live, "-o", out)
    assert done.returncode == 0
    assert done.stderr == f"whence: {live} was never closed: merged as it is now\n"
    with whence.open(out) as merged, whence.open(live) as alone:
        assert not merged.info.closed
        assert [p.info.closed for p in merged.processes] == [False, True]
        part = merged.slice(processes=[1])
        assert list(part.calls().read()) == list(alone.calls().read())
    assert len(os.listdir(tmp_path)) == 5


def test_one_that_is_being_written(tmp_path):
    import threading

    live, out = tmp_path / "live.whence", tmp_path / "out"
    go_on = threading.Event()

    def busy():
        while not go_on.wait(0.001):
            whence.counter("turns", 1)

    other = write(tmp_path / "other", 5, wall=0)
    with whence.record(live, max_size="64KB", chunk_size=4096):
        thread = threading.Thread(target=busy)
        thread.start()
        done = run("merge", live, other, "-o", out)
        go_on.set()
        thread.join()
    assert done.returncode == 0
    assert f"{live} was never closed" in done.stderr
    with whence.open(out) as merged:
        assert os.getpid() in [process.pid for process in merged.processes]
        losses = merged.losses
        assert losses.produced == losses.recorded + sum(losses.dropped.values())


def test_one_that_is_damaged(paths, tmp_path):
    data = bytearray(paths[1].read_bytes())
    data[4096 + 200] ^= 1
    paths[1].write_bytes(data)
    out = tmp_path / "out"
    done = run("merge", *paths, "-o", out)
    assert done.returncode == 0
    assert done.stderr == f"whence: {paths[1]} is damaged: merged as it is\n"
    assert run("verify", out).returncode == 1


def test_threads_that_metadata_have_lost_keep_ids_of_their_own(tmp_path):
    file = recordings.every_kind()
    mark = [twin.Raw(0x65, [0, 40, 0]), twin.Raw(0x43, [0, 8])]
    file.chunks[-1].records += mark
    file.produced += 1
    first = merging.write(tmp_path / "first", file, 1)
    second = write(tmp_path / "second", 2, later=5)
    with merging.merge(tmp_path / "out", first, second) as merged:
        threads = {record.thread for record in merged.slice(processes=[1])}
        assert max(threads) == 40
        assert [t.id for t in merged.slice(processes=[2]).threads] == [41, 42]


# Clocks


def test_one_boot_is_one_clock_whatever_the_wall_clock_says(tmp_path):
    boots = {"boot": b"b00"}
    files = [
        write(tmp_path / "1", 1, wall=0, **boots),
        write(tmp_path / "2", 2, later=3 * SECOND, wall=-90 * SECOND, **boots),
    ]
    done = run("merge", *files, "-o", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert shifts(tmp_path / "out") == {1001: 0, 1002: 3 * SECOND}


def test_two_boots_meet_by_the_wall_clock(tmp_path):
    files = [
        write(tmp_path / "1", 1, later=500 * SECOND, wall=0, boot=b"one"),
        write(tmp_path / "2", 2, later=503 * SECOND, wall=77, boot=b"one"),
        write(tmp_path / "3", 3, later=2 * SECOND, wall=5 * SECOND, boot=b"two"),
    ]
    done = run("merge", *files, "-o", tmp_path / "out")
    assert done.returncode == 0
    assert done.stderr == (
        "whence: not all are of one boot of one machine: "
        "times agree as well as the wall clocks did\n"
    )
    assert shifts(tmp_path / "out") == {1001: 0, 1002: 3 * SECOND, 1003: 5 * SECOND}


def test_without_a_boot_the_clocks_have_to_agree_within_a_second(tmp_path):
    near = [
        write(tmp_path / "1", 1, boot=b"one"),
        write(tmp_path / "2", 2, later=9 * SECOND, wall=9 * SECOND + SECOND // 2),
    ]
    done = run("merge", *near, "-o", tmp_path / "near")
    assert done.stderr == ""
    assert shifts(tmp_path / "near") == {1001: 0, 1002: 9 * SECOND}
    far = write(tmp_path / "3", 3, later=9 * SECOND, wall=11 * SECOND)
    done = run("merge", near[0], far, "-o", tmp_path / "far")
    assert "times agree as well as the wall clocks did" in done.stderr
    assert shifts(tmp_path / "far") == {1001: 0, 1003: 11 * SECOND}


def test_moments_on_one_clock():
    one, two = Moment(100, 5, "a"), Moment(0, 9, "a")
    assert _clocks.align([one]) == ([100], True)
    assert _clocks.align([one, two]) == ([100, 104], True)
    assert _clocks.align([two, one]) == ([104, 100], True)
    assert _clocks.align([one, Moment(70, 5, "b")]) == ([100, 70], False)


def test_recordings_know_their_boot(tmp_path):
    boots = set()
    for number in range(2):
        path = tmp_path / f"{number}"
        code = f"import whence\nwith whence.record({str(path)!r}): pass"
        subprocess.run([sys.executable, "-c", code], check=True)
        with whence.open(path) as recording:
            boots.add(recording._parts[0].fact("boot"))
    (boot,) = boots
    if not Path("/proc/self/ns/time").exists():
        assert boot is None
        return
    assert re.fullmatch("[0-9a-f]{1,16}", boot)
    with open("/proc/sys/kernel/random/boot_id") as file:
        assert boot not in file.read().replace("-", "")


# Other verbs


def test_summary_shows_processes(merged):
    done = run("summary", merged)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1].startswith("3 processes, ")
    rows = re.findall(
        r"^ +(\d+) +([\d.]+ n?s) +[\d.]+ \w+  app.py$", done.stdout, re.MULTILINE
    )
    assert rows == [("1001", "0 ns"), ("1002", "1.00 s"), ("1003", "2.00 s")]


def test_info_shows_processes(merged):
    out = run("info", merged).stdout
    assert out.startswith(f"{merged}: a merged recording of 3 processes, ")
    assert "3-1003.whence: a recording of app.py" in out
    assert "begins: 2.00 s after the first" in out
    assert re.findall(r"^  (\d+): ", out, re.MULTILINE) == [
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
    ]


def test_verify_goes_part_by_part(merged, paths):
    done = run("verify", merged)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "sound")
    assert done.stdout.count("state: closed") == 3
    data = bytearray(merged.read_bytes())
    place = data.index(paths[1].read_bytes())
    data[place + 4096 + 200] ^= 1
    merged.write_bytes(data)
    done = run("verify", merged)
    assert done.returncode == 1
    assert "damaged: 2-1002.whence: at byte 4,096: a chunk does not" in done.stdout


def test_a_part_that_cannot_be_read_leaves_the_others(merged, paths, tmp_path):
    data = bytearray(merged.read_bytes())
    place = data.index(paths[1].read_bytes())
    data[place + 20] ^= 1
    merged.write_bytes(data)
    with whence.open(merged) as recording:
        assert [process.id for process in recording.processes] == [1, 3]
        assert [thread.id for thread in recording.threads] == [1, 2, 5, 6]
    what = "2-1002.whence is a recording with a damaged header: nothing of it"
    for verb, code in (("verify", 1), ("summary", 0), ("info", 0)):
        done = run(verb, merged)
        assert (done.returncode, done.stderr) == (code, "")
        assert f"damaged: {what} can be read" in done.stdout
    done = run("export", merged, "-o", tmp_path / "a.pstats")
    assert done.returncode == 0
    first, second = done.stderr.splitlines()
    assert first == f"whence: left out: {what} can be read"
    assert second.startswith("whence: not all is in it: 10 events dropped (ring), ")
    line = one_line_of(run("merge", merged, "-o", tmp_path / "out"))
    assert line == f"{merged}: {what} can be read"


def test_a_merged_recording_that_was_cut_leaves_what_is_there(merged, paths, tmp_path):
    data = merged.read_bytes()
    merged.write_bytes(data[: data.index(paths[1].read_bytes()) + 4_096 + 300])
    whole = len(paths[1].read_bytes())
    with whence.open(merged) as recording:
        assert [process.id for process in recording.processes] == [1, 2]
    lines = [
        f"the end of 2-1002.whence is missing: 4,396 of {whole:,} bytes are there",
        "3-1003.whence is missing: the file ends before it",
    ]
    for verb, code in (("verify", 1), ("summary", 0), ("info", 0)):
        done = run(verb, merged)
        assert (done.returncode, done.stderr) == (code, "")
        for line in lines:
            assert f"damaged: {line}\n" in done.stdout
        if verb != "info":
            inside = "damaged: 2-1002.whence: at byte 4,096: the file ends within a"
            assert inside in done.stdout
    done = run("export", merged, "-o", tmp_path / "a.pstats")
    assert done.returncode == 0
    *said, last = done.stderr.splitlines()
    assert said == [f"whence: left out: {line}" for line in lines]
    assert last.startswith("whence: not all is in it: it is damaged, ")


def test_recover_says_what_to_do(merged, tmp_path):
    line = one_line_of(run("recover", merged, "-o", tmp_path / "out"))
    assert line == f"{merged} is a merged recording: unzip it, recover its parts"
    assert not (tmp_path / "out").exists()


def test_names_cannot_reach_the_terminal(paths, tmp_path):
    bad = tmp_path / "a\x1b[31m"
    bad.write_bytes(paths[0].read_bytes())
    done = run("merge", paths[0], bad, "-o", tmp_path / "out")
    assert "\x1b" not in one_line_of(done)
