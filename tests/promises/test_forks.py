"""A forked child never hangs, and never writes into its parent's recording."""

import os
from pathlib import Path

import pytest

import whence
from harness import numbered, runner

pytestmark = pytest.mark.store

BUSY_PARENT = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {folder!r})
import rude, whence
from harness import numbered

path, page_path, forks = {path!r}, {page!r}, {forks}
page = numbered.Page(page_path)
recorder = whence.record(path, chunk_size=4096, gc=False, pack=False, calls=False)
recorder.start()
stop = threading.Event()
sys.setswitchinterval(0.0005)  # or the forks would wait for the writers
numbered.write_in_python(page, range(8), stop, 300)
rude.write_numbered([f"w{{n}}" for n in range(8, 16)], 8, page.memory, 20_000)

def in_child(number):
    for value in range(200):
        whence.counter("child", value)
        with whence.span("child"):
            whence.capture()
    if recorder.state != "idle" or recorder.recorded:
        return 1
    recorder.stop()  # does nothing here
    if number % 10 == 0:
        own = f"{{path}}.{{number}}"
        with whence.record(own, gc=False, calls=False) as second:
            whence.counter("own", number)
        with whence.open(own) as recording:
            values = [c.value for c in recording.counters]
            if values != [number] or len(recording.threads) != 1:
                return 2
    return 0

def wait(child):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.001)
    os.kill(child, 9)
    return "hangs"

for number in range(forks // 2):
    child = os.fork()
    if child == 0:
        status = 3
        try:
            status = in_child(number)
        finally:
            os._exit(status)
    status = wait(child)
    assert status == 0, (number, status)
    status = rude.raw_fork()
    assert status == 0, (number, status)
print("parent recorded", recorder.state, recorder.recorded > 1000, flush=True)
os._exit(0)  # with all threads still writing
"""


@pytest.mark.skipif(
    bool(os.environ.get("WHENCE_SANITIZED")),
    reason="AddressSanitizer's allocator can stay locked in a forked child",
)
@pytest.mark.timeout(1800)
def test_forks_from_a_process_with_16_busy_threads(request, tmp_path, rude):
    path, page_path = tmp_path / "parent.whence", tmp_path / "page"
    page = numbered.Page(page_path, create=True)
    code = BUSY_PARENT.format(
        folder=str(Path(rude.__file__).parent),
        path=str(path),
        page=str(page_path),
        forks=request.config.getoption("--forks"),
    )
    outcome = runner.run(code, timeout=600)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == "parent recorded on True\n"
    numbered.check(path, page.published(16))
    page.close()


def test_a_child_that_goes_on_after_fork_records_nothing_and_leaves_no_hooks(tmp_path):
    path = tmp_path / "parent.whence"
    outcome = runner.run(
        f"""
        import gc, os, sys, threading, whence
        original = threading.Thread._bootstrap
        triggers = ["exception", "SIGUSR2"]
        recorder = whence.record({str(path)!r}, dump_on=triggers, calls=False)
        hook = sys.excepthook
        with recorder:
            whence.mark("before")
            child = os.fork()
            if child == 0:
                assert threading.Thread._bootstrap is original
                assert sys.excepthook is hook
                assert not any("whence" in repr(c) for c in gc.callbacks)
                whence.mark("in the child")
                gc.collect()
                thread = threading.Thread(target=whence.mark, args=["thread"])
                thread.start()
                thread.join()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            whence.mark("after")
        print("fine")
        """
    )
    assert outcome == runner.Outcome(0, "fine\n", "")
    with whence.open(path) as recording:
        marks = [r.fields["name"] for r in recording if r.kind == "mark"]
        assert marks == ["before", "after"]
        assert [thread.name for thread in recording.threads] == ["MainThread"]


def test_a_child_that_python_was_not_told_of_goes_on_in_python(tmp_path, rude):
    """Its hooks have not run, and somebody may have held the recorder's lock."""
    path = tmp_path / "parent.whence"
    outcome = runner.run(
        f"""
        import os, sys, threading, whence
        sys.path.insert(0, {str(Path(rude.__file__).parent)!r})
        import rude
        held, done = threading.Event(), threading.Event()
        recorder = whence.record({str(path)!r}, calls=False).start()

        def hold():
            with whence._process.lock:
                held.set()
                done.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        child = rude.fork_quietly()
        if child == 0:
            whence.mark("child")
            recorder.stop()
            with whence.record(sys.argv[1], pack=False, calls=False):
                whence.mark("own")
            os._exit(0)
        assert rude.wait(child) == 0
        done.set()
        thread.join()
        recorder.stop()
        print("fine")
        """,
        str(tmp_path / "child"),
    )
    assert outcome == runner.Outcome(0, "fine\n", "")
    with whence.open(path) as recording:
        assert [r for r in recording if r.kind == "mark"] == []
    with whence.open(tmp_path / "child") as recording:
        (mark,) = [r for r in recording if r.kind == "mark"]
        assert mark.fields["name"] == "own"


def test_the_file_is_closed_on_exec(tmp_path):
    outcome = runner.run(
        f"""
        import os, subprocess, sys, whence
        with whence.record({str(tmp_path / "exec.whence")!r}, calls=False):
            code = "import os; print(os.listdir('/proc/self/fd'))"
            child = [sys.executable, "-c", code]
            done = subprocess.run(child, close_fds=False, capture_output=True)
        print(len(eval(done.stdout)))
        """
    )
    assert outcome == runner.Outcome(0, "4\n", "")
