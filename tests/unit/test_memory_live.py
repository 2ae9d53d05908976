"""Memory in a file that lies, or that is still written: bounded, and of one reading."""

import subprocess
import sys

import pytest

import whence
from promises.test_damaged_recordings import MEGABYTE, SANITIZED, bomb, numbered
from reference import recording as twin

pytestmark = pytest.mark.store

RING = """
import sys, threading, whence
with whence.record({path!r}, calls=False, memory=True, max_size=2_000_000, pack=False):
    threading.Thread(target=sys.stdin.read, daemon=True).start()
    kept = [None] * 500
    for turn in range({turns}):
        kept[turn % 500] = bytearray(50 + turn * 7919 % 3000)
        if turn == 500_000:  # the ring has wrapped
            print("ready", flush=True)
        if turn % 1_000 == 0 and threading.active_count() == 1:
            break
"""


def test_the_peak_of_a_ring_is_what_its_groups_are_while_it_is_written(tmp_path):
    path = str(tmp_path / "ring.whence")
    program = RING.format(path=path, turns=10**9)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout.readline() == b"ready\n"
        for _ in range(10):
            with whence.open(path) as recording:
                peak = recording.memory.peak
                assert peak.bytes == sum(group.bytes for group in peak.groups)
        writer.stdin.close()
    assert writer.returncode == 0
    with whence.open(path) as recording:
        assert "ring" in recording.losses.dropped
        assert recording.memory.peak.bytes > 0


BLOCKS = """
    import re
    from whence import _core, _zstd
    from whence._bounds import Bounds

    def peak():
        with open("/proc/self/status") as status:
            return int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1]) * 1024

    bounds = tuple(Bounds())
    with open({path!r}, "rb") as file:
        reader = _core.Reader(file.fileno(), _zstd.unpack)
        read = reader.memory_peak(bounds)
        before = peak()
        reader.memory_largest(bounds, True, 10)
    print(peak() - before, read[1][1])
"""


def test_threads_that_free_nothing_are_not_kept_beside_the_replay(tmp_path, run_python):
    """Each frees a block that nobody took: there is no row to wait for."""
    threads = 300_000
    payload = numbered(b"\x65\0", b"\0\x49\0\1", threads)
    path = tmp_path / "bomb"
    path.write_bytes(bomb((payload, twin.EVENTS, 1)))
    grown, frees = map(int, run_python(BLOCKS.format(path=str(path))).split())
    assert frees == threads
    if not SANITIZED:
        assert grown < 8 * MEGABYTE
