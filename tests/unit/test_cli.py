"""whence verify and whence recover."""

import os
import signal
import stat
import subprocess
import sys
import textwrap

import pytest

import whence
from harness.command import one_line_of, run
from reference import recording as twin
from reference import recordings

pytestmark = pytest.mark.store


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "app.whence"
    path.write_bytes(twin.write(recordings.every_kind(20)))
    return path


@pytest.fixture
def damaged(path):
    data = bytearray(path.read_bytes())
    data[4096 + 4096 + 1000] ^= 1
    path.write_bytes(data)
    return path


def test_verify_a_sound_recording(path):
    done = run("verify", path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"{path}: a recording of app.py"
    assert "Python 3.14.0, whence 0.1.0" in lines[1]
    assert lines[3] == "state: closed"
    assert "dropped: 5 (ring)" in lines
    assert "dropped: 7 (disk)" in lines
    assert "names lost: 2" in lines
    assert lines[-1] == "sound"
    with whence.open(path) as recording:
        losses = recording.losses
    assert (
        f"events: {losses.produced:,} produced, {losses.recorded:,} recorded" in lines
    )


def test_verify_says_how_a_recording_ended(path):
    file = recordings.every_kind()
    file.state = twin.RECORDING
    path.write_bytes(twin.write(file))
    done = run("verify", path)
    assert done.returncode == 0
    state = "state: never closed; its program is still running, or was killed"
    assert state in done.stdout.splitlines()
    file.state, file.reason, file.error = twin.ENDED, 2, 28
    path.write_bytes(twin.write(file))
    done = run("verify", path)
    assert done.returncode == 0
    assert "state: ended early, reason disk, system error 28" in done.stdout
    file.chunks[1].records.append(recordings.unknown_kind(__import__("random")))
    path.write_bytes(twin.write(file))
    assert "1 of kinds that this version does not know" in run("verify", path).stdout


def test_verify_a_damaged_recording(damaged):
    done = run("verify", damaged)
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    where = "damaged: at byte 8,192: a chunk does not agree with its checksum"
    assert where in lines
    assert any(line.endswith("(damaged)") for line in lines)
    assert lines[-1] == "damaged, but readable"


@pytest.fixture
def cut(path):
    """A recording that was never closed, and cut where a chunk has room left."""
    file = recordings.every_kind()
    file.state, file.end, file.produced, file.count = twin.RECORDING, (0, 0), 0, 0
    path.write_bytes(twin.write(file)[:-1])
    return path


def test_a_file_that_was_cut_is_damaged(cut, tmp_path):
    what = "the file ends within a chunk"
    done = run("verify", cut)
    assert done.returncode == 1
    (line,) = (line for line in done.stdout.splitlines() if what in line)
    assert line.startswith("damaged: at byte ")
    assert done.stdout.endswith("damaged, but readable\n")
    assert line in run("summary", cut).stdout
    done = run("recover", cut, "-o", tmp_path / "out")
    assert done.returncode == 0
    assert done.stdout.splitlines()[1:] == [line]
    assert run("verify", tmp_path / "out").stdout.endswith("sound\n")


def test_a_packed_recording_that_was_cut_is_read_as_far_as_it_goes(tmp_path):
    path, cut = tmp_path / "app.whence", tmp_path / "cut.whence"
    with whence.record(path, calls=False, gc=False, chunk_size=1 << 20):
        for n in range(80_000):
            whence.counter("n", (n * 2_654_435_761) % 2**32)
    cut.write_bytes(path.read_bytes()[:-1_000])
    with whence.open(path) as recording:
        assert recording.info.packed
        whole = recording.losses
    with whence.open(cut) as recording:
        losses = recording.losses
        values = [counter.value for counter in recording.counters]
    assert losses.produced == whole.produced
    assert losses.dropped == {"damaged": whole.recorded - losses.recorded}
    assert losses.recorded == len(values) > whole.recorded / 2
    assert values == [(n * 2_654_435_761) % 2**32 for n in range(len(values))]
    assert run("verify", cut).returncode == 1


def test_what_cannot_be_read_is_one_line(tmp_path):
    for name, data, message in (
        ("text", b"hello", "is not a recording"),
        ("empty", b"", "is not a recording: empty"),
    ):
        (tmp_path / name).write_bytes(data)
        for verb in (["verify"], ["recover", "-o", tmp_path / "out"]):
            line = one_line_of(run(*verb, tmp_path / name))
            assert line == f"{tmp_path / name} {message}"
    missing = tmp_path / "missing"
    line = one_line_of(run("verify", missing))
    assert line == f"{missing}: No such file or directory"
    assert not (tmp_path / "out").exists()


def test_escape_sequences_do_not_reach_the_terminal(tmp_path):
    file = recordings.every_kind()
    program = next(r for r in file.chunks[0].records if r.code == 0xE3)
    program.values[1] = b"\x1b]0;owned\x07[red]\x9b31m\xe2\x80\xae\n[/red]"
    path = tmp_path / "a\x1b[31m.whence"
    path.write_bytes(twin.write(file))
    for done in (run("verify", path), run("verify", f"{path}\x1bno")):
        text = done.stdout + done.stderr
        assert "\\x1b" in text
        assert all(c.isprintable() or c == "\n" for c in text)
    assert "[red]" in run("verify", path).stdout


def test_recover(damaged, tmp_path):
    out = tmp_path / "out.whence"
    done = run("recover", damaged, "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{out}: ")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert run("verify", out).returncode == 0
    with whence.open(out) as new, whence.open(damaged) as old:
        assert new.losses == old.losses
        assert new.info.packed
    done = run("recover", damaged, "-o", tmp_path / "plain", "--no-pack")
    assert done.returncode == 0
    with whence.open(tmp_path / "plain") as plain:
        assert not plain.info.packed
        assert plain.losses == whence.open(out).losses


def test_recover_overwrites_only_when_told(path, tmp_path):
    out, target = tmp_path / "out", tmp_path / "target"
    out.write_text("mine")
    line = one_line_of(run("recover", path, "-o", out))
    assert line == f"{out}: File exists"
    assert out.read_text() == "mine"
    assert run("recover", path, "-o", out, "-f").returncode == 0
    assert run("verify", out).returncode == 0
    target.write_text("theirs")
    out.unlink()
    out.symlink_to(target)
    assert run("recover", path, "-o", out).returncode == 2
    assert run("recover", path, "-o", out, "--force").returncode == 0
    assert not out.is_symlink()
    assert target.read_text() == "theirs"
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nowhere")
    assert run("recover", path, "-o", dangling).returncode == 2
    assert not (tmp_path / "nowhere").exists()
    assert sorted(os.listdir(tmp_path)) == ["app.whence", "dangling", "out", "target"]


def test_recover_leaves_nothing_behind_when_it_fails(path, tmp_path):
    limit = "import resource, sys; from whence.cli import main\n"
    limit += "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
    limit += "sys.exit(main(sys.argv[1:]))"
    for force in ([], ["-f"]):
        done = subprocess.run(
            [
                *(sys.executable, "-c", limit, "recover", path, "--no-pack"),
                *("-o", tmp_path / "out", *force),
            ],
            capture_output=True,
            text=True,
        )
        assert "File too large" in one_line_of(done)
        assert os.listdir(tmp_path) == ["app.whence"]


def test_a_damaged_recording_is_not_replaced_by_what_is_left_of_it(damaged, tmp_path):
    before, link = damaged.read_bytes(), tmp_path / "link"
    link.symlink_to(damaged)
    for out in (damaged, link):
        line = one_line_of(run("recover", damaged, "-o", out, "-f"))
        assert line == f"{out} is the recording itself: it is not replaced"
    assert damaged.read_bytes() == before


@pytest.mark.parametrize(
    "command", [["recover"], ["symbolize"], ["merge"], ["export", "--format", "pstats"]]
)
def test_only_regular_files_are_replaced(path, tmp_path, command):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("pipe")
    before = sorted(os.listdir(tmp_path))
    for name in ("pipe", "folder", "link"):
        out = tmp_path / name
        line = one_line_of(run(*command, path, "-f", "-o", out))
        assert line == f"{out} is not a regular file: it is not replaced"
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("force", [[], ["-f"]])
@pytest.mark.parametrize("lacks", ["nothing", "O_TMPFILE"])
def test_nothing_is_left_of_a_verb_that_is_killed(path, tmp_path, lacks, force):
    """A file without a name goes with whoever had it open."""
    kill = """
        import os, signal, sys
        from whence import cli, _recording
        real = os.open
        def fake_open(path, flags, *more):
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(95, "not supported")
            return real(path, flags, *more)
        if sys.argv.pop(1) == "O_TMPFILE":
            os.open = fake_open
        rewrite = _recording.rewrite
        def rewrite_and_die(*args, **more):
            result = rewrite(*args, **more)
            if sys.argv[-1] == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            return result
        _recording.rewrite = rewrite_and_die
        sys.exit(cli.main([each for each in sys.argv[1:] if each != "die"]))
    """
    out = tmp_path / "out"
    command = [sys.executable, "-c", textwrap.dedent(kill), lacks]
    command += ["recover", path, "-o", out, *force]
    done = subprocess.run([*command, "die"])
    assert done.returncode == -signal.SIGKILL
    others = [name for name in os.listdir(tmp_path) if name != "app.whence"]
    assert len(others) == (lacks != "nothing")
    assert subprocess.run(command, capture_output=True).returncode == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert run("verify", out).returncode == 0
    assert sorted(os.listdir(tmp_path)) == sorted(["app.whence", "out", *others])


@pytest.mark.parametrize("force", [[], ["-f"]])
@pytest.mark.parametrize(
    "command", [["recover"], ["symbolize"], ["merge"], ["export", "--format", "pstats"]]
)
def test_a_new_file_has_a_name_and_a_folder(path, tmp_path, command, force):
    before = path.read_bytes()
    line = one_line_of(run(*command, path, "-o", "", *force))
    assert line == "'' names no file: a new file needs a name"
    out = tmp_path / "no" / "out"
    line = one_line_of(run(*command, path, "-o", out, *force))
    assert line == f"{out}: No such file or directory"
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["app.whence"]


def test_usage():
    assert run("--version").stdout == f"whence {whence.__version__}\n"
    assert "verify" in run("--help").stdout
    assert one_line_of(run()).endswith(" COMMAND (whence --help says more)")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "(whence --help says more)"),
        (["info"], "FILE (whence info --help says more)"),
        (["export", "a"], "-o/--output (whence export --help says more)"),
        (["summary", "a", "-n", "x"], "'x' (whence summary --help says more)"),
        (["summary", "a", "-n", "-1"], "--functions must be 0 or more, not -1"),
        (["verify", "a", "b\nc"], r": b\nc (whence --help says more)"),
    ],
)
def test_what_is_asked_for_wrongly_is_one_line(arguments, message):
    assert one_line_of(run(*arguments)).endswith(message)


def test_a_reader_that_has_seen_enough(path):
    command = f"{sys.executable} -m whence verify {path} | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stderr == ""
