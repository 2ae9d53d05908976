"""Another tool that takes the place of our hooks in allocators, and puts them back."""

import pytest

from harness import runner, walks

pytestmark = walks.needs_stacks

PROGRAM = """
import sys, tracemalloc
sys.path.insert(0, {folder!r})
import replaces, whence

def work():
    return [bytes(1234) for _ in range(10)]

def seen(recorder):
    with whence.open(recorder.path) as recording:
        size = sys.getsizeof(bytes(1234))
        taken = sum(record.fields.get("size") == size for record in recording)
        return taken, recording.info.memory

def start(number):
    path = f"{{sys.argv[1]}}/{{number}}"
    return whence.record(path, calls=False, memory=True, pack=False).start()

for number, step in enumerate({steps!r}.split()):
    if step == "start":
        recorder = start(number)
    elif step == "stop":
        recorder.stop()
        print(*seen(recorder), sep=",")
    elif step in ("pause", "resume"):
        getattr(recorder, step)()
    elif step == "trace":
        tracemalloc.start()
    elif step == "untrace":
        tracemalloc.stop()
    elif step == "work":
        work()
    else:
        getattr(replaces, step)()
    work() if step not in ("work", "stop", "pause") else None
"""


@pytest.mark.parametrize(
    "steps",
    [
        "start replace pause resume restore work stop",
        "start replace stop work start restore work stop start work stop",
        "start trace replace pause resume restore work untrace stop",
        "replace start restore pause resume replace work stop restore start stop",
        "start" + 10 * " replace work pause resume work restore work" + " stop",
    ],
)
def test_hooks_that_are_put_back_later(tmp_path, replaces, steps):
    """They still pass on to whom they were put before, with that one's context."""
    program = PROGRAM.format(folder=str(replaces), steps=steps)
    done = runner.run(program, str(tmp_path))
    assert (done.status, done.err) == (0, "")
    parts = done.out.split()
    assert len(parts) == steps.split().count("stop")
    for part in parts:
        taken, reason = part.split(",")
        assert reason in ("None", "hook_replaced")
        assert reason == "hook_replaced" or int(taken) > 0


def test_hooks_are_left_for_when_the_other_tool_has_gone(tmp_path, replaces):
    steps = "replace start stop restore " * 10 + "start work stop"
    program = PROGRAM.format(folder=str(replaces), steps=steps)
    done = runner.run(program, str(tmp_path))
    assert (done.status, done.err) == (0, "")
    assert done.out.split()[-1] == "20,None"


def test_without_another_tool_all_is_seen(tmp_path, replaces):
    steps = "start work stop " * 10
    program = PROGRAM.format(folder=str(replaces), steps=steps)
    done = runner.run(program, str(tmp_path))
    assert (done.status, done.err) == (0, "")
    assert done.out.split() == ["20,None"] * 10
