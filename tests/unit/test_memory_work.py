"""Questions about memory take work in proportion to what is read, and can be ended."""

import signal
import time

import pytest

import whence
from reference.recording import METADATA, OPEN, Chunk, File, Raw, write

pytestmark = pytest.mark.store

CHUNK = 1 << 24
BLOCKS = 100_000
UNKNOWN = 0x5F  # a kind with two fields


def file_of(path, records):
    metadata = Chunk(1, [Raw(0x72, [0, 7, 1])], METADATA)
    # One that was never closed needs no checksum, which the twin would take long for.
    chunk = Chunk(2, records, thread=1, start=(10, 10), end=(90, 90), state=OPEN)
    file = File([metadata, chunk], chunk_size=CHUNK, end=(99, 99), count=2)
    path.write_bytes(write(file))
    return path


def time_of(path, expected):
    """Return the least that it took of three times, in seconds of this process."""
    times = []
    with whence.open(path) as recording:
        for _ in range(3):
            start = time.process_time()
            assert recording.memory.leaks().total.count == expected
            times.append(time.process_time() - start)
    return min(times)


def blocks(code, *about):
    return [Raw(code, [20, *about, 64 * n + 64, 32, 1]) for n in range(BLOCKS)]


def told(address):
    """Return a state of one block."""
    return [Raw(0x4E, [20, 1]), Raw(0xCA, [20, 1, address, 32, 1, 5])]


@pytest.mark.parametrize("kind", ["none", "one", "pool", "freed"])
def test_states_cost_what_they_tell(tmp_path, kind):
    """And not what was in use once, or is in use in a pool."""
    states = [Raw(0x4E, [20, 0])] * 10_000
    if kind != "none":
        states = [record for n in range(5_000) for record in told(16 * n + 16)]
    many, left = blocks(0x8A), int(kind != "none")
    if kind == "pool":
        many = blocks(0xA2, 9)
        left += BLOCKS
    elif kind == "freed":
        many += [Raw(0x49, [20, record.values[1]]) for record in many]
    few = file_of(tmp_path / "few.whence", many + states[:2])
    all_ = file_of(tmp_path / "all.whence", many + states)
    # 2 ms for each, if all room that blocks ever had is looked through.
    assert time_of(all_, left) < 10 * time_of(few, left)


def test_what_is_cleared_makes_room(tmp_path):
    """Each state may be as large as the first: there are some bytes for each block."""
    state = [Raw(0x4E, [20, 2_000])]
    state += [Raw(0xCA, [20, 1, 16 * n + 16, 32, 1, 5]) for n in range(2_000)]
    with whence.open(file_of(tmp_path / "a.whence", state * 20)) as recording:
        assert recording.memory.counts.left_out == 0
        assert recording.memory.leaks().total == (64_000, 2_000)


def test_signals_are_looked_at_where_there_is_no_memory(tmp_path):
    """As among millions of calls: who waits for an answer may want to leave."""
    marks = b"\x43\0\1" * ((CHUNK - 4_096) // 3)
    path = file_of(tmp_path / "a.whence", [Raw(UNKNOWN, [b"\0\0" + marks])])
    seen = []
    before = signal.signal(signal.SIGVTALRM, lambda *_: seen.append(1))
    try:
        with whence.open(path) as recording:
            memory = recording.memory
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.001, 0.001)
            del seen[:]
            assert list(memory.churn()) == []
            count = len(seen)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    assert count > 3  # one may come before it reads, and one at the end
