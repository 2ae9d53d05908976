"""What users are told about memory: the peak, what is missing, where to look."""

import os
import re
import tracemalloc
from pathlib import Path

import pytest

import whence
from harness import command
from harness.walks import IS_FAST, needs_stacks
from whence._recording import has_memory

pytestmark = pytest.mark.store

NO_STACKS = "memory has no stacks: the frames of this Python are read through its"
PROGRAM = """
    kept = [bytes(1_000_000) for _ in range(5)]
    del kept[1:]
    print("out")
"""


def test_nothing_is_missing_where_frames_are_read_quickly(tmp_path):
    path = tmp_path / "a.whence"
    with whence.record(path, memory=True):
        pass
    with whence.open(path) as recording:
        assert recording.info.memory == (None if IS_FAST else "no_stacks")
        assert recording.processes[0].info.memory == recording.info.memory
        assert has_memory(recording)
    with whence.record(path, overwrite=True):
        pass
    with whence.open(path) as recording:
        assert recording.info.memory is None
        assert not has_memory(recording)


def test_without_stacks_events_are_there_all_the_same(run_python, tmp_path):
    path = tmp_path / "a.whence"
    program = f"import whence\nwith whence.record({str(path)!r}, memory=True):\n"
    program += "    kept = bytes(54_321)"
    run_python(program, env={"WHENCE_FRAMES": "public"})
    with whence.open(path) as recording:
        assert recording.info.memory == "no_stacks"
        assert recording.memory.peak.bytes > 54_321
        assert {group.stack for group in recording.memory.allocated()} == {()}
    for verb in ("info", "summary"):
        shown = command.run(verb, path).stdout
        assert NO_STACKS in shown


def test_hooks_that_are_gone_are_told(tmp_path):
    path = tmp_path / "a.whence"
    tracemalloc.start()
    with whence.record(path, memory=True):
        tracemalloc.stop()
    with whence.open(path) as recording:
        reasons = ["hook_replaced", *([] if IS_FAST else ["no_stacks"])]
        assert recording.info.memory == ", ".join(reasons)
    for verb in ("info", "summary"):
        shown = command.run(verb, path).stdout
        assert "memory was not recorded, or not all: hook_replaced" in shown


@pytest.fixture
def app(beside):
    beside.write("app.py", PROGRAM)
    return beside


def lines_of(app, *options):
    done = app.run("-f", "-o", "app.whence", *options, "app.py")
    assert (done.status, done.out) == (0, b"out\n"), done.err
    return done.err.decode().splitlines()


def test_a_run_tells_the_peak_and_how_to_look_further(app):
    lines = lines_of(app, "--memory", "--no-calls")
    (memory,) = [line for line in lines if line.startswith("  memory: ")]
    pattern = r"  memory: at most 5\.\d MB in use, after [\d.]+ \w+; 1\.\d MB at the "
    assert re.fullmatch(pattern + r"end; [\d,]+ blocks taken", memory)
    assert lines[-3:] == [
        "    whence summary app.whence",
        "    whence export app.whence -o app.pftrace",
        "    whence export app.whence -o app.speedscope.json --metric peak",
    ]
    assert any(NO_STACKS in line for line in lines) is not IS_FAST


def test_a_run_without_memory_does_not_speak_of_it(app):
    assert not any("memory" in line or "peak" in line for line in lines_of(app))


RING = """
kept = bytearray(50_000_000)
for _ in range(100_000):
    list(range(40))
"""


def test_of_a_ring_only_what_it_has_kept_is_told(tmp_path):
    script, path = tmp_path / "churns.py", tmp_path / "a.whence"
    script.write_text(RING)
    options = "--memory", "--no-calls", "--max-size", "1MB", "-o", path
    ran = command.run("run", *options, script)
    told = r"at most .* in use, after .*, of what the ring has kept; .* at the end"
    assert re.search(told, ran.stderr), ran.stderr
    shown = command.run("summary", path).stdout
    assert re.search(r"memory: at most .*, of what the ring has kept\n", shown)
    out = tmp_path / "a.collapsed"
    exported = command.run("export", path, "-o", out, "--metric", "peak")
    assert "the ring wrapped: memory that was taken before" in exported.stderr


C_LIBRARY = """
import ctypes
take = ctypes.CDLL(None).calloc
take.restype = ctypes.c_void_p
kept = [bytes(100), take(150_000_000, 1)]
ctypes.memset(kept[1], 1, 150_000_000)
for _ in range(1_000_000):  # some milliseconds later the system is asked
    kept[0] = bytes(100)
"""


@pytest.mark.skipif("WHENCE_SANITIZED" in os.environ, reason="a calloc() of its own")
def test_resident_memory_is_told_and_what_is_missing_in_it(tmp_path):
    script, path = tmp_path / "native.py", tmp_path / "a.whence"
    script.write_text(C_LIBRARY)
    held = r"resident memory: at most (1[5-9]\d|2\d\d)\.\d MB, as the system counts it"
    for option, missing in ("--memory", True), ("--memory-all", False):
        options = option, "--no-calls", "-f", "-o", path
        ran = command.run("run", *options, script).stderr
        shown = command.run("summary", path).stdout
        for text in ran, shown:
            assert re.search(held, text), text
            assert ("--memory-all records that, too" in text) == missing


@pytest.mark.skipif(not IS_FAST, reason="without stacks there is nobody to look for")
def test_nothing_of_ours_is_in_use_at_the_end(tmp_path):
    script, path = tmp_path / "tags.py", tmp_path / "a.whence"
    script.write_text(
        "from whence import memory\n"
        "kept = []\n"
        "for number in range(3):\n"
        "    with memory.tag(number=number):\n"
        "        kept.append(bytes(54_321))\n"
    )
    command.run("run", "--memory", "--no-calls", "-o", path, script)
    ours = str(Path(whence.__file__).parent)
    with whence.open(path) as recording:
        found = [g for g in recording.memory.leaks() if g.stack]
        taken = {g.stack[0].filename for g in found if g.bytes > 54_321}
        assert str(script) in taken
        by = [g.stack[0] for g in found if g.stack[0].filename.startswith(ours)]
        assert {frame.name for frame in by} <= {"tag.__init__", "<dictcomp>"}, by


@needs_stacks
@pytest.mark.parametrize("options", [[], ["--follow"], ["--memory-all"]])
@pytest.mark.parametrize("end", ["pass", "sys.exit(3)", "1 / 0", "sys.stdout = None"])
def test_a_run_takes_nothing_while_it_is_recorded(tmp_path, end, options):
    """Between the start of the recording and the program, and after that."""
    script, path = tmp_path / "app.py", tmp_path / "a.whence"
    at_exit = "atexit.register(lambda: kept.append(bytes(44_321)))"
    script.write_text(f"import atexit, sys; kept = [bytes(54_321)]; {at_exit}\n{end}\n")
    command.run("run", "--memory", *options, "-o", path, script)
    ours = Path(whence.__file__).parent
    with whence.open(path) as recording:
        memory = recording.memory
        for groups in (memory.allocated(), memory.churn(), memory.leaks()):
            places = {(f.filename, f.name) for g in groups for f in g.stack}
            files = {Path(file) for file, _ in places if Path(file).is_absolute()}
            found = {file for file in files if file.is_relative_to(ours)}
            # An exit goes through what is around it, as its traceback says.
            allowed = {ours / "__main__.py", ours / "cli" / "__init__.py"}
            assert found <= (set() if end == "pass" else allowed), found
        taken = {g.bytes // 1000 for g in memory.allocated() if g.stack}
        assert {44, 54} <= taken  # of the program


@needs_stacks
def test_a_start_takes_nothing_that_is_recorded(tmp_path):
    path = tmp_path / "a.whence"
    with whence.record(path, memory=True, calls=False, follow=True):
        kept = bytes(54_321)
    ours = str(Path(whence.__file__).parent)
    with whence.open(path) as recording:
        stacks = [g.stack for g in recording.memory.allocated() if g.stack]
        assert any(stack[0].filename == __file__ for stack in stacks)
        assert [s for s in stacks if s[0].filename.startswith(ours)] == []
    del kept
