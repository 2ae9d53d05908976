"""Allocators that report their own memory while they hold a lock of their own."""

from pathlib import Path

import pytest

from harness import runner

STORM = """
import sys, threading
sys.path.insert(0, {folder!r})
import pool, whence

path, rounds, native, python = {path!r}, {rounds}, 4, 3
sys.setswitchinterval(0.0001)
done = []

def use():
    # Takes the pool's lock with the GIL held, is asked for its stack in there, and
    # gives back in destructors; a thread without the GIL may have the lock meanwhile.
    # The lock is nobody's in turn, so a thread may have to wait for all the others.
    taken = 0
    held = []
    while not (done and taken):
        held.append(pool.take(taken % 500))
        whence.capture()
        taken += 1
        if len(held) > 20:
            held.clear()
    counts.append(taken)

counts = []
with whence.record(path, calls=False, gc=False, memory=True, memory_detail="full"):
    threads = [threading.Thread(target=use) for _ in range(python)]
    for thread in threads:
        thread.start()
    pool.storm(native, rounds // native)
    done.append(True)
    for thread in threads:
        thread.join()
taken = sum(counts) + rounds // native * native
with whence.open(path) as recording:
    assert "test pool" not in recording.memory.leaks().by_domain()
    assert not recording.losses.dropped
    kinds = ("pool_allocated", "pool_freed")
    events = [  # as one number each: there may be millions
        record.time << 64 | record.fields["address"] << 1 | kinds.index(record.kind)
        for record in recording
        if record.kind in kinds
    ]
assert len(events) == 2 * taken, (len(events), taken)
live = set()
for event in sorted(events):  # each block is taken and given back in turn
    address, freed = event >> 1 & 2**63 - 1, event & 1
    assert (address in live) == freed, address
    live ^= {{address}}
print("all there")
"""


@pytest.mark.timeout(900)
def test_threads_with_and_without_the_gil_under_the_lock_of_a_pool(
    tmp_path, pool, request
):
    """Nobody waits for anybody for ever, and every event is there."""
    rounds = request.config.getoption("--pool-rounds")
    program = STORM.format(
        folder=str(Path(pool.__file__).parent),
        path=str(tmp_path / "a.whence"),
        rounds=rounds,
    )
    done = runner.run(program, timeout=60 + rounds // 2_000)
    assert (done.status, done.out, done.err) == (0, "all there\n", "")


def test_a_child_of_a_program_whose_pool_is_recorded(tmp_path, pool):
    """It has the domain, and records into a file of its own."""
    program = f"""
        import os, sys, warnings
        warnings.simplefilter("ignore")
        sys.path.insert(0, {str(Path(pool.__file__).parent)!r})
        import pool, whence
        from whence import memory

        with memory.tag(where="parent"):
            whence.record({str(tmp_path / "a")!r}, calls=False, memory=True).start()
            kept = pool.take(10)
            child = os.fork()
            if child == 0:
                more = pool.take(20)
                with whence.record({str(tmp_path / "b")!r}, calls=False, memory=True):
                    other = pool.take(30)
                with whence.open({str(tmp_path / "b")!r}) as recording:
                    leaks = recording.memory.leaks().tagged(where="parent")
                    os._exit(leaks.by_domain()["test pool"] != (30, 1))
            print(os.waitpid(child, 0)[1])
    """
    done = runner.run(program)
    assert (done.status, done.out, done.err) == (0, "0\n", "")
