"""Memory recording under many threads, which come, go and fork while they allocate."""

import pytest

from harness import runner

THREADS = """
import os, sys, threading, whence

path, forks = sys.argv[1], int(sys.argv[2])
done = []

def work(number):
    kept = []
    for turn in range(400):
        kept.append(bytes(50 + (number * turn) % 3_000))
        if len(kept) > 50:
            del kept[:25]
        if turn % 100 == 0:
            # Short-lived threads: their last blocks go when they are gone.
            inner = threading.Thread(target=lambda: kept.append(bytearray(600)))
            inner.start()
            inner.join()
    done.append(sum(map(len, kept)))

def fork():
    for _ in range(forks):
        child = os.fork()
        if child == 0:
            junk = [bytes(500) for _ in range(1_000)]
            os._exit(len(junk) != 1_000)
        assert os.waitpid(child, 0)[1] == 0

with whence.record(path, calls=False, memory=True, max_size="8MB") as recorder:
    threads = [threading.Thread(target=work, args=[n]) for n in range(64)]
    threads.append(threading.Thread(target=fork))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
with whence.open(path) as recording:
    losses = recording.losses
    assert losses.produced == losses.recorded + sum(losses.dropped.values())
    assert set(losses.dropped) <= {"ring"}, losses
    assert losses.recorded > 10_000
print(len(done), sum(done))
"""


@pytest.mark.timeout(180)
@pytest.mark.parametrize("memory", ["True", "'all'"])
def test_64_threads_and_forks(tmp_path, memory):
    """The same result as without; nothing is lost but to the ring, nothing hangs."""
    program = THREADS.replace("memory=True", f"memory={memory}")
    done = runner.run(program, str(tmp_path / "a.whence"), "30", timeout=120)
    assert done.status == 0, done.err
    plain = THREADS.replace("memory=True", "memory=False").replace("> 10_000", ">= 0")
    expected = runner.run(plain, str(tmp_path / "b.whence"), "0", timeout=120)
    assert done.out == expected.out


@pytest.mark.timeout(180)
@pytest.mark.parametrize("memory", ["True", "'all'"])
@pytest.mark.parametrize(
    "ending", ["sys.exit(3)", "os._exit(3)", "raise SystemExit(3)"]
)
def test_a_program_that_ends_while_it_is_recorded(tmp_path, ending, memory):
    """Daemon threads go on taking memory to the very end."""
    program = (
        "import os, sys, threading, time, whence\n"
        f"whence.record({str(tmp_path / 'a.whence')!r}, memory=True).start()\n"
        "def work():\n"
        "    while True:\n"
        "        [bytes(n) for n in range(100)]\n"
        "for _ in range(4):\n"
        "    threading.Thread(target=work, daemon=True).start()\n"
        "time.sleep(0.2)\n"
        f"{ending}\n"
    )
    for _ in range(3):
        again = f"memory={memory}, overwrite=True"
        done = runner.run(program.replace("memory=True", again))
        assert (done.status, done.out, done.err) == (3, "", "")
