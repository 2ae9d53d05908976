"""kill -9 at any moment loses nothing that was committed, and adds nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import numbered

WRITER = Path(numbered.__file__).with_name("writer.py")
TESTS = WRITER.parents[1]


def wait_for(page, enough):
    """Let the writers write as much as that, on a machine of any speed."""
    deadline = time.monotonic() + 60
    while sum(page.published()) < enough:
        assert time.monotonic() < deadline, page.published()
        time.sleep(0.001)


def kill_once(folder, rude, rng, *, ring, least=0):
    """Start the writer, kill it at a random moment, and check what it left."""
    path, page_path = folder / "killed.whence", folder / "page"
    path.unlink(missing_ok=True)
    page = numbered.Page(page_path, create=True)
    chunk_size = rng.choice([4096, 16384, 65536])
    max_size = chunk_size * rng.randrange(20, 60) if ring else 0
    command = [sys.executable, WRITER, path, page_path, Path(rude.__file__).parent]
    command += [str(chunk_size), str(max_size), str(rng.choice([20, 60, 200]))]
    env = {**os.environ, "PYTHONPATH": str(TESTS)}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, env=env)
    assert child.stdout.read(8) == b"writing\n"
    wait_for(page, least)
    time.sleep(rng.random() * 0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    published = page.published()
    page.close()
    assert path.stat().st_size <= max_size or not ring
    return numbered.check(path, published, ring=ring)


@pytest.mark.store
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("ring", [False, True], ids=["all", "ring"])
def test_what_was_committed_before_a_kill_is_there(request, tmp_path, rude, rng, ring):
    kills = request.config.getoption("--kills") // 2
    recorded = overwritten = 0
    for number in range(kills):
        # The first ring surely wraps: its chunks have less room than that.
        least = 60 * 65536 // 4 if ring and number == 0 else 0
        losses = kill_once(tmp_path, rude, rng, ring=ring, least=least)
        recorded += losses.recorded
        overwritten += losses.dropped.get("ring", 0)
    assert recorded > kills * 100  # the writers were really writing
    assert bool(overwritten) == ring
