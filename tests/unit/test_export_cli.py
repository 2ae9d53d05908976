"""whence export."""

import errno
import os
import pty
import resource
import signal
import subprocess
import sys

import pytest

import whence
from harness import command, exported
from harness.command import one_line_of
from reference import call_trees, recordings
from reference import recording as twin
from whence import export
from whence.cli import _terminal

pytestmark = pytest.mark.store

FUNCTIONS = [("first", "/app.py", 1), ("second", "/app.py", 2)]
STEPS = [[0, -1, 0, -1, 1, -1, 1, -1], [1, -1]]


def run(*arguments, **options):
    return command.run("export", *arguments, **options)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "app.whence"
    path.write_bytes(call_trees.recording(FUNCTIONS, STEPS))
    return path


@pytest.fixture
def calls(path, tmp_path):
    """Export with these options; how often each function was called."""

    def calls(*options):
        out = tmp_path / "part.pstats"
        done = run(path, "-f", "-o", out, *options)
        assert (done.returncode, done.stderr) == (0, "")
        found = exported.read("pstats", out)
        return {key[2]: total.calls for key, total in found.items() if total.calls}

    return calls


@pytest.mark.parametrize(
    ("suffix", "name", "opening"),
    [
        (".speedscope.json", "speedscope", "open it at https://www.speedscope.app"),
        (".pb.gz", "pprof", "open it with: go tool pprof {}"),
        (".collapsed", "collapsed", "flamegraph.pl --countname=ns {} > flame.svg"),
        (".pstats", "pstats", "open it with: python -m pstats {}"),
        (".callgrind", "callgrind", "open it with: callgrind_annotate {}"),
    ],
)
def test_every_format(path, tmp_path, suffix, name, opening):
    out = tmp_path / f"out{suffix}"
    done = run(path, "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert first == f"{out}: {name}, {out.stat().st_size} bytes"
    assert second.endswith(opening.format(out))
    with whence.open(path) as recording:
        assert exported.read(name, out) == exported.expected(name, recording)
    other = tmp_path / "other's file"
    done = run(path, "--output", other, "--format", name)
    assert other.read_bytes() == out.read_bytes()
    if "{}" in opening:
        assert "other'\"'\"'s file'" in done.stdout  # as a shell takes it


def test_a_stretch_of_time(calls):
    assert calls() == {"first": 2, "second": 3}
    assert calls("--from", "0", "--to", "80ns") == {"first": 2, "second": 3}
    assert calls("--from", "20ns") == {"first": 1, "second": 2}
    assert calls("--to", "20ns") == {"first": 1, "second": 1}
    assert calls("--from", "20ns", "--to=40ns") == {"first": 1}
    assert calls("--from", "0ms", "--to", "2 m") == {"first": 2, "second": 3}


@pytest.mark.parametrize(
    ("options", "stretch"),
    [
        (["--from", "0", "--to", "0"], "0 and 0"),
        (["--from=20ns", "--to=20ns"], "20ns and 20ns"),
        (["--to", "0s"], "its beginning and 0s"),
        (["--from", "100s"], "100s and its end"),
        (["--from", "100s", "--to", "2m"], "100s and 2m"),
    ],
)
def test_a_stretch_in_which_nothing_can_be(path, tmp_path, options, stretch):
    with whence.open(path) as recording:
        lasted = _terminal.duration(recording.info.duration)
    for each in export.FORMATS:
        done = run(path, "-o", tmp_path / "out", "--format", each.name, *options)
        expected = f"there is nothing between {stretch}: the recording lasts {lasted}"
        assert one_line_of(done) == expected
    assert os.listdir(tmp_path) == ["app.whence"]


def test_what_was_dropped_is_told(path, tmp_path):
    path.write_bytes(twin.write(recordings.every_kind(20)))
    done = run(path, "-o", tmp_path / "a.pstats")
    lost = "5 events dropped (ring), 7 events dropped (disk), "
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"whence: not all is in it: {lost}")
    assert done.returncode == 0


def test_threads(calls, path, tmp_path):
    assert calls("--thread", "2") == {"second": 1}
    assert calls("--thread", "1", "--thread", "2") == {"first": 2, "second": 3}
    assert calls("--thread", "2", "--from", "50ns") == {}
    line = one_line_of(run(path, "-o", tmp_path / "a.pstats", "--thread", "x"))
    assert line == "there is no thread x; there are: 1, 2"


def test_threads_by_name(tmp_path):
    path, out = tmp_path / "app.whence", tmp_path / "a.speedscope.json"
    program = "import threading, whence\nwith whence.record({!r}):\n"
    program += " for n in ('pool', 'pool', '1'):\n"
    program += (
        "  t = threading.Thread(target=len, args=[()], name=n);t.start();t.join()"
    )
    subprocess.run([sys.executable, "-c", program.format(str(path))], check=True)
    with whence.open(path) as recording:
        pool = [t for t in recording.threads if t.name == "pool"]
    assert len(pool) == 2
    assert run(path, "-o", out, "--thread", "pool").returncode == 0
    titles = [p["name"] for p in exported.speedscope_file(out)["profiles"]]
    assert titles == ["all threads", *(f"pool ({t.id})" for t in pool)]
    # An id comes before a name.
    assert run(path, "-o", out, "-f", "--thread", "1").returncode == 0
    line = one_line_of(run(path, "-o", out, "-f", "--thread", "none"))
    assert line.endswith("there are: 1 (MainThread), 2 (pool), 3 (pool), 4 (1)")


def test_processes(calls, path, tmp_path):
    assert calls("--process", "1") == {"first": 2, "second": 3}
    line = one_line_of(run(path, "-o", tmp_path / "a.pstats", "--process", "77"))
    assert line == "there is no process 77; there are: 1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["-o", "a.txt"],
            "a.txt does not say which format: the formats are perfetto",
        ),
        (
            ["-o", "a.pstats", "--format", "x"],
            "there is no format 'x': the formats are",
        ),
        (["-o", "a.pstats", "--from", "x"], "--from must be a time like '1.5s' or"),
        (["-o", "a.pstats", "--to=-5s"], "--to must be a time like '1.5s' or '500ms'"),
        (
            ["-o", "a.pstats", "--from", "2s", "--to", "1s"],
            "--to 1s is before --from 2s",
        ),
        (["-o", "no/a.pstats"], "no/a.pstats: No such file or directory"),
        (["-o", "a.pstats/b.pstats"], "a.pstats/b.pstats: No such file or directory"),
    ],
)
def test_what_cannot_be_done_is_one_line(path, tmp_path, options, message):
    done = run(path, *options, cwd=tmp_path)
    assert one_line_of(done).startswith(message)
    assert os.listdir(tmp_path) == ["app.whence"]


def test_broken_input_is_one_line(path, tmp_path):
    out = tmp_path / "a.pstats"
    good = path.read_bytes()
    for data, message in (
        (b"hello", f"{path} is not a recording"),
        (b"", f"{path} is not a recording: empty"),
        (good[:300], f"{path} is a recording cut off within its header"),
        (
            good[:60] + b"\xff" * 60 + good[120:],
            f"{path} is a recording with a damaged",
        ),
    ):
        path.write_bytes(data)
        assert one_line_of(run(path, "-o", out)).startswith(message)
    path.unlink()
    assert one_line_of(run(path, "-o", out)) == f"{path}: No such file or directory"
    assert one_line_of(run(tmp_path, "-o", out)).endswith("not a regular file")
    assert os.listdir(tmp_path) == []


def test_what_is_left_of_a_damaged_recording_is_exported(path, tmp_path):
    data = bytearray(path.read_bytes())
    data[-4096 + 130] ^= 1  # the second thread's chunk
    path.write_bytes(data)
    done = run(path, "-o", tmp_path / "a.pstats")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("whence: not all is in it: it is damaged, ")
    assert line.endswith(f" (damaged): whence verify {path}")
    found = exported.read("pstats", tmp_path / "a.pstats")
    assert sum(total.calls for total in found.values()) == 4


def test_force(path, tmp_path):
    out = tmp_path / "a.pstats"
    out.write_text("mine")
    assert one_line_of(run(path, "-o", out)) == f"{out}: File exists"
    assert out.read_text() == "mine"
    assert run(path, "-o", out, "--force").returncode == 0
    line = one_line_of(run(path, "-o", path, "-f", "--format", "pstats"))
    assert line == f"{path} is the recording itself"
    assert path.read_bytes() == call_trees.recording(FUNCTIONS, STEPS)


def test_a_full_disk_leaves_nothing_behind(path, tmp_path):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))

    for name in exported.FORMATS:
        out = tmp_path / f"a{exported.suffix(name)}"
        done = run(path, "-o", out, preexec_fn=limit)
        assert one_line_of(done) == f"{out}: {os.strerror(errno.EFBIG)}"
        assert os.listdir(tmp_path) == ["app.whence"]


def test_names_of_files_cannot_reach_the_terminal(path, tmp_path):
    done = run(path, "-o", tmp_path / "a\x1b[31m.pstats")
    assert done.returncode == 0
    assert all(c.isprintable() or c == "\n" for c in done.stdout + done.stderr)


def test_a_terminal_is_shown_that_something_is_under_way(path, tmp_path):
    master, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    out = tmp_path / "a.pstats"
    child = subprocess.run(
        [sys.executable, "-m", "whence", "export", path, "-o", out],
        stdout=subprocess.PIPE,
        stderr=terminal,
        env=environment,
        timeout=60,
    )
    os.close(terminal)
    shown = os.read(master, 100_000).decode()
    os.close(master)
    assert child.returncode == 0
    assert f"exporting {path}" in shown
    assert b"exporting" not in child.stdout
    assert b"\x1b" not in child.stdout


def test_calls_without_room_are_told(path, tmp_path):
    """A small file that claims more paths than a reader has room for."""
    chain = [[n % 2 for n in range(400_000)]]
    path.write_bytes(call_trees.recording(FUNCTIONS, chain))
    done = run(path, "-o", tmp_path / "a.pstats")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("whence: calls left out: ")


def test_help_lists_the_formats():
    text = " ".join(run("--help").stdout.split())
    for name in exported.FORMATS:
        assert f"{name} (" in text


def test_to_standard_output(path, tmp_path):
    out = tmp_path / "app.collapsed"
    assert run(path, "-o", out).returncode == 0
    done = run(path, "-o", "-", "--format", "collapsed")
    assert (done.returncode, done.stdout, done.stderr) == (0, out.read_text(), "")
    assert "does not say which format" in one_line_of(run(path, "-o", "-"))
    line = one_line_of(run(path, "-o", "-", "--format", "parquet"))
    assert line == "parquet is a directory: it cannot be written to stdout"
