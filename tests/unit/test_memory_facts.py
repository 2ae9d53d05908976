"""What users are told about memory: the peak, what is missing, where to look."""

import re
import tracemalloc

import pytest

import whence
from harness import command
from harness.walks import IS_FAST
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
