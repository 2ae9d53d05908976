"""Memory that is mapped where nobody waits: in signal handlers, between threads."""

import pytest

import whence
from harness import runner

SIGNALS = """
import sys, time
sys.path.insert(0, sys.argv[1])
import mapper, whence

def work(n):
    return [n] * 3 + [bytes(600)]

with whence.record(sys.argv[2], gc=False, {options}):
    mapper.interrupt(100)
    end = time.monotonic() + 1
    while time.monotonic() < end:
        for n in range(1_000):
            work(n)
        whence.capture()
        with whence.span("turn"):
            pass
    count = mapper.interrupt(0)
with whence.open(sys.argv[2]) as recording:
    losses, reasons = recording.losses, (recording.info.memory or "").split(", ")
    assert losses.produced == losses.recorded and not losses.dropped, losses
    assert set(reasons) <= {"", "signal_handlers", "no_stacks"}, reasons
    level = recording.memory.leaks().by_domain().get("mmap")
    assert level is None or "signal_handlers" in reasons, level
with open(sys.argv[2], "rb") as file:
    assert whence._core.Reader(file.read(), None).totals()["problems"] == []
print(count > 100)
"""


@pytest.mark.parametrize(
    "options",
    [
        "memory='all'",
        "memory='all', memory_detail='full'",
        "memory='all', memory_detail='state'",
        "memory='all', native=True",
        "memory='all', calls=False, native=True",
    ],
)
def test_signal_handlers_that_map_memory(mapper, tmp_path, options):
    """They may come in the middle of a record, of a lock, of the interpreter."""
    program = SIGNALS.replace("{options}", f"pack=False, {options}")
    path = tmp_path / "a.whence"
    done = runner.run(program, str(mapper.__file__).rpartition("/")[0], str(path))
    assert (done.status, done.out, done.err) == (0, "True\n", "")


@pytest.mark.parametrize("detail", ["alloc", "full", "state"])
def test_a_mapping_given_back_by_one_thread_and_taken_by_another(
    mapper, tmp_path, detail
):
    path = tmp_path / "a.whence"
    with whence.record(path, calls=False, memory="all", memory_detail=detail):
        kept = mapper.hand_over(30_000)
    with whence.open(path) as recording:
        level = recording.memory.leaks().by_domain()["mmap"]
    assert (level.count, level.bytes) == (len(kept), sum(size for _, size in kept))
