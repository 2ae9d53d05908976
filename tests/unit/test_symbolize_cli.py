"""``whence symbolize``: what it takes from a recording, and what it must not take."""

import os
import signal
import stat
import subprocess
import sys
import time

import pytest

import whence
from harness import native_files
from harness.command import one_line_of, run
from reference import recording as twin
from whence import _running

pytestmark = pytest.mark.store

GONE = "/nowhere/libgone.so"
PLACEHOLDER = "<libgone.so+0x1000>"
NAMED = [("gone::f(int)", "/src/gone.cpp", 12), ("gone::g()", "/src/gone.cpp", 30)]


@pytest.fixture
def path(tmp_path):
    """A recording with a name that nobody can look up any more, and one without."""
    symbols = [(1, 0x1000, *each) for each in NAMED]
    symbols.append((1, 0x2000, "<libgone.so+0x2000>", GONE, 0))
    modules = [(GONE, "abcdef", [0x1000, 0x2000])]
    return native_files.write(tmp_path / "a.whence", modules, symbols)


def state_of(path):
    lines = run("info", path).stdout.splitlines()
    return next(line for line in lines if line.startswith("state: "))


# Names


@pytest.mark.parametrize("mode", ["full", "symbols"])
def test_names_stay_that_cannot_be_looked_up_now(path, mode):
    done = run("symbolize", path, "--symbols", mode)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 places" in done.stdout
    symbols = native_files.symbols_of(path)
    assert symbols[1, 0x1000] == NAMED
    assert [name for name, _, _ in symbols[1, 0x2000]] == ["<libgone.so+0x2000>"]


def test_off_forgets_them(path):
    assert run("symbolize", path, "--symbols", "off").returncode == 0
    ((name, _, line),) = native_files.symbols_of(path)[1, 0x1000]
    assert (name, line) == (PLACEHOLDER, 0)


def test_what_is_found_now_takes_the_place_of_what_is_less(tmp_path):
    library = os.path.realpath(sys.executable)
    address, name = _exported(library)
    nothing = f"<{library.rpartition('/')[2]}+{address:#x}>"
    known = {
        "nothing": [],
        "a placeholder": [(1, address, nothing, library, 0)],
        "a name": [(1, address, "by_another_name", library, 0)],
        "a line": [(1, address, "by_another_name", "/src/a.c", 3)],
    }
    found = {}
    for what, symbols in known.items():
        modules = [(library, "", [address])]
        path = native_files.write(tmp_path / f"{len(found)}.whence", modules, symbols)
        done = run("symbolize", path, "--symbols", "symbols")
        assert "1 of 1 places" in done.stdout
        ((found[what], _, line),) = native_files.symbols_of(path)[1, address]
        assert line == (3 if what == "a line" else 0)
    assert found == {
        **dict.fromkeys(("nothing", "a placeholder"), name),
        **dict.fromkeys(("a name", "a line"), "by_another_name"),
    }


def _exported(library):
    from whence import _core

    file = _core.ElfFile(library)
    start = file.load_address
    for address in range(start, start + (1 << 24), 0x40):
        (found,) = file.find([address])
        if found is not None:
            return address, found[0]
    raise AssertionError


def test_names_that_begin_like_a_placeholder_count(tmp_path):
    symbols = [(1, 0x1000, "<T as Trait>::f", GONE, 0)]
    modules = [(GONE, "abcdef", [0x1000])]
    path = native_files.write(tmp_path / "a.whence", modules, symbols)
    assert "1 of 1 places" in run("symbolize", path).stdout


# A recording that was never closed


def test_a_killed_recording_stays_one_that_was_never_closed(tmp_path):
    modules = [(GONE, "abcdef", [0x1000])]
    path = native_files.write(
        tmp_path / "a.whence", modules, boot="another", state=twin.RECORDING
    )
    before, state = _facts(path), state_of(path)
    assert state.startswith("state: never closed")
    out = tmp_path / "out.whence"
    for done in (run("symbolize", path, "-o", out), run("symbolize", path)):
        assert done.returncode == 0, done.stderr
    for copy in (out, path):
        assert (state_of(copy), _facts(copy)) == (state, before)
        assert run("verify", copy).returncode == 0
    assert run("symbolize", path).returncode == 0
    assert (state_of(path), _facts(path)) == (state, before)


def test_why_a_recording_ended_stays_too(tmp_path):
    modules = [(GONE, "abcdef", [0x1000])]
    for sealed in (True, False):
        path = native_files.write(
            tmp_path / "a.whence",
            modules,
            state=twin.ENDED,
            reason=2,
            error=28,
            sealed=sealed,
        )
        state = state_of(path)
        assert run("symbolize", path).returncode == 0
        assert state_of(path) == state


def _facts(path):
    with whence.open(path) as recording:
        info = recording.info._replace(path="", size=0, packed=False)
        return info, recording.losses, len(list(recording.calls()))


RECORDS = """
import sys, whence
with whence.record(sys.argv[1], gc=False):
    print("on", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def running(tmp_path):
    """A program that records until its standard input ends."""
    path = tmp_path / "live.whence"
    with subprocess.Popen(
        [sys.executable, "-c", RECORDS, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as program:
        program.stdout.readline()
        yield path, program
        program.stdin.close()


def test_a_recording_that_is_being_written_is_not_replaced(running, tmp_path):
    path, program = running
    link = tmp_path / "link.whence"
    link.symlink_to(path)
    identity = path.stat().st_ino
    for arguments in ([path], [link], [path, "-f", "-o", link]):
        line = one_line_of(run("symbolize", *arguments))
        assert line == (
            f"{arguments[0]} was never closed, and its program, process {program.pid}, "
            "is still running: wait for its end, or give -o for a copy"
        )
    assert path.stat().st_ino == identity
    copy = tmp_path / "copy.whence"
    assert run("symbolize", path, "-o", copy).returncode == 0
    assert state_of(copy).startswith("state: never closed")
    # The copy is nobody's but ours.
    assert run("symbolize", copy).returncode == 0
    program.send_signal(signal.SIGKILL)
    program.wait()
    assert run("symbolize", path).returncode == 0
    assert state_of(path).startswith("state: never closed")


def test_a_process_that_is_not_waited_for_is_not_running(running):
    path, program = running
    program.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
    done = run("symbolize", path)
    assert done.returncode == 0, done.stderr


def test_another_process_with_the_same_number_is_not_taken_for_it(tmp_path):
    modules = [(GONE, "abcdef", [0x1000])]
    now, boot = time.monotonic_ns(), _running.boot()
    own = {"pid": os.getpid(), "state": twin.RECORDING}
    for began, where, refused in [
        (now, boot, True),
        (now, "another", False),
        (1, boot, False),  # we began later
    ]:
        path = tmp_path / "a.whence"
        native_files.write(path, modules, boot=where, began=began, **own)
        done = run("symbolize", path)
        assert (done.returncode == 2) == refused, (began, done.stderr)


# Links, modes, names of files


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400, 0o664])
def test_the_file_keeps_its_mode_and_a_link_to_it_stays_one(path, tmp_path, mode):
    path.chmod(mode)
    folder = tmp_path / "folder"
    folder.mkdir()
    link = folder / "link.whence"
    link.symlink_to("../a.whence")
    before = path.stat()
    assert run("symbolize", link).returncode == 0
    assert str(link.readlink()) == "../a.whence"
    after = path.stat()
    assert not path.is_symlink()
    assert after.st_ino != before.st_ino
    assert stat.S_IMODE(after.st_mode) == mode
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert sorted(os.listdir(folder)) == ["link.whence"]
    assert native_files.symbols_of(link)[1, 0x1000] == NAMED


def test_a_new_file_is_its_owners_alone(path, tmp_path):
    path.chmod(0o666)
    out = tmp_path / "out.whence"
    assert run("symbolize", path, "-o", out).returncode == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_an_output_that_is_the_file_itself_is_named_so(path, tmp_path):
    data = path.read_bytes()
    link = tmp_path / "link.whence"
    link.symlink_to(path)
    for out in (path, link, os.path.relpath(path)):
        line = one_line_of(run("symbolize", path, "-o", out))
        assert line == f"{out} is the recording itself: without -o it is replaced"
    assert path.read_bytes() == data
    assert run("symbolize", path, "-f", "-o", link).returncode == 0
    assert link.is_symlink()
    assert native_files.symbols_of(path)[1, 0x1000] == NAMED


def test_a_directory_that_is_none_is_named(path, tmp_path):
    data = path.read_bytes()
    for place, why in [
        (tmp_path / "nowhere", "No such file or directory"),
        (path, "Not a directory"),
    ]:
        done = run("symbolize", path, "--debug-dir", tmp_path, "--debug-dir", place)
        assert one_line_of(done) == f"--debug-dir {place}: {why}"
    assert path.read_bytes() == data


def test_links_that_lead_nowhere_are_no_matter(path, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "round").symlink_to("round")
    done = run("symbolize", path, "--debug-dir", folder)
    assert (done.returncode, done.stderr) == (0, "")
