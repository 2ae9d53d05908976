"""whence run: what happens around the program: threads, processes, exit, streams."""

import subprocess
import sys
from pathlib import Path

import pytest

import whence
from harness.beside_python import environment, execute
from harness.beside_python import whence as command

pytestmark = pytest.mark.store


def names(path):
    with whence.open(path) as recording:
        assert recording.info.closed
        return {call.function for call in recording.calls().read()}


def test_functions_of_atexit_run_in_their_order_and_are_recorded(beside):
    code = """
        import atexit, sys, __main__
        def first():
            print("first", hasattr(__main__, "__file__"), sys.exc_info())
        def second():
            print("second", file=sys.stderr)
            1 / 0
        def third():
            print("third")
            sys.exit(9)
        for function in (first, second, third):
            atexit.register(function)
        {}
    """
    for end in ("pass", "1/0", "sys.exit(3)", "raise KeyboardInterrupt", "exit()"):
        beside.same_text(code.format(end))
        assert {"first", "second", "third"} <= names(beside.recording)
        beside.same("-m", "app")
        beside.same("-c", (beside.folder / "app.py").read_text())


def test_threads_are_waited_for_and_recorded(beside):
    code = """
        import threading, time, sys, atexit
        def late(name):
            time.sleep(0.2)
            print(name, threading.current_thread().name)
            last()
        def last():
            print("last")
        def daemon():
            while True:
                time.sleep(0.01)
        atexit.register(print, "at exit")
        threading.Thread(target=late, args=["late"], name="late").start()
        threading.Thread(target=daemon, daemon=True).start()
        threading.Thread(target=sys.exit, args=[7]).start()
        print("main is over", threading.main_thread().name)
        {}
    """
    for end in ("pass", "sys.exit(4)", "1/0"):
        beside.same_text(code.format(end))
        assert {"late", "last", "daemon"} <= names(beside.recording)


def test_exceptions_in_threads(beside):
    code = """
        import threading
        def fail():
            1 / 0
        thread = threading.Thread(target=fail, name="failing")
        thread.start()
        thread.join()
        print("goes on")
    """
    done = beside.same_text(code)
    assert b"ZeroDivisionError" in done.err


def test_objects_die_as_late_as_they_would(beside):
    code = """
        import sys, weakref, __main__
        class Loud:
            def __init__(self, name):
                self.name = name
            def __del__(self):
                print("gone", self.name, sys is None)
        kept = Loud("kept")
        weakref.finalize(kept, print, "finalized")
        cycle = Loud("cycle")
        cycle.self = cycle
        {}
    """
    for end in ("pass", "1/0", "sys.exit(1)", "raise KeyboardInterrupt"):
        assert b"gone kept" in beside.same_text(code.format(end)).out


POOL = """
    import dataclasses, multiprocessing, os, pickle, sys

    @dataclasses.dataclass
    class Item:
        number: int

    def work(item):
        return Item(item.number ** 2), __name__ in sys.modules, sys.argv[1:]

    if __name__ == "__main__":
        context = multiprocessing.get_context(sys.argv[1])
        with context.Pool(2) as pool:
            print(pool.map(work, [Item(n) for n in range(5)]))
        process = context.Process(target=print, args=[Item(7)])
        process.start()
        process.join()
        print(process.exitcode, pickle.loads(pickle.dumps(Item(3))))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(beside, method):
    done = beside.same_text(POOL, method)
    assert done.status == 0
    assert b"Item(number=16)" in done.out
    beside.same("-m", "app", method)
    beside.same("-m", "app", method, options=["--follow"])


def test_forks(beside):
    code = """
        import atexit, os, sys
        atexit.register(print, "exit of", "parent" if os.getpid() else "")
        print("before", flush=True)
        child = os.fork()
        if child == 0:
            print("child", flush=True)
            sys.exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    """
    beside.same_text(code)
    done = beside.run("-f", "-o", beside.recording, "app.py")
    assert done.err.count(b"whence: recorded") == 1


def test_what_looks_into_the_main_module(beside):
    code = """
        from __future__ import annotations
        import dataclasses, doctest, enum, inspect, pickle, typing, unittest

        @dataclasses.dataclass
        class Point:
            '''
            >>> Point(1, 2)
            Point(x=1, y=2)
            '''
            x: int
            y: typing.ClassVar[int] = 2

        class Colour(enum.Enum):
            RED = 1

        class Test(unittest.TestCase):
            def test(self):
                self.assertEqual(pickle.loads(pickle.dumps(Colour.RED)), Colour.RED)
                self.assertEqual(typing.get_type_hints(Point)["x"], int)

        print(doctest.testmod(), [f.name for f in dataclasses.fields(Point)])
        print(inspect.getsource(Point), inspect.getmodule(Point).__name__)
        result = unittest.main(argv=["app"], exit=False, verbosity=0).result
        print(result, file=__import__("sys").stdout)
    """
    beside.write("app.py", code)
    done = beside.same("app.py", varies=rb"Ran 1 test in \S+")
    assert b"TestResults" in done.out
    assert b"run=1 errors=0 failures=0" in done.out


def test_asyncio_and_subprocesses(beside):
    beside.same_text(
        """
        import asyncio, subprocess, sys
        async def main():
            done = await asyncio.create_subprocess_exec(
                sys.executable, "-c", "import sys; print('whence' in sys.modules)")
            return await done.wait()
        print(asyncio.run(main()), flush=True)
        asyncio.run(asyncio.wait_for(asyncio.sleep(1), 0.01))
        """
    )


def shell(beside, line, **more):
    """Run a line with $PYTHON as both; return what each did."""
    outcomes = []
    for how in ([sys.executable], command("run", "-f", "-o", beside.recording)):
        text = line.replace("PYTHON", " ".join(map(str, how)))
        done = subprocess.run(
            ["bash", "-c", text],
            cwd=beside.folder,
            env=environment(**more),
            capture_output=True,
            timeout=60,
        )
        outcomes.append((done.returncode, done.stdout, done.stderr))
    return outcomes


def test_readers_that_have_seen_enough(beside):
    beside.write("app.py", "for n in range(100_000): print(n)\n")
    line = "PYTHON app.py 2>err | head -1; echo ${PIPESTATUS[0]}; cat err"
    (_, plain, _), (_, ours, _) = shell(beside, line)
    before, _, summary = ours.partition(b"whence: recorded")
    assert before == plain
    assert b"Traceback" not in summary
    # Nobody reads the summary; and the program wants SIGPIPE to end it.
    for setting in ("SIG_IGN", "SIG_DFL"):
        text = f"import signal; signal.signal(signal.SIGPIPE, signal.{setting})\n"
        beside.write("app.py", text + "print('out')\nimport sys; sys.exit(5)\n")
        line = "mkfifo f$$; (exec 3<f$$; exec 3<&-) & PYTHON app.py 2>f$$; echo $?"
        plain, ours = shell(beside, line)
        assert ours == plain
        assert plain[1].endswith(b"5\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed(beside, closed):
    code = "import sys\nprint(sys.stdin is None, sys.stdout is None)\n"
    beside.write("app.py", code + "open('said', 'w').write(str(sys.stderr is None))\n")
    (plain, ours) = shell(beside, f"PYTHON app.py {closed}; echo $?; cat said")
    assert ours[:2] == plain[:2]
    assert names(beside.recording)
    beside.write("fails.py", "1/0\n")
    (plain, ours) = shell(beside, f"PYTHON fails.py {closed}; echo $?")
    assert ours[1] == plain[1]
    assert ours[2].partition(b"whence: recorded")[0] == plain[2]
    (_, ours) = shell(beside, f"PYTHON --unknown {closed}; echo $?")
    assert ours[1] == b"2\n"


def test_a_program_that_closes_its_own_streams(beside):
    for code in ("sys.stderr.close()", "os.close(2)", "os.close(1)", "sys.stderr = 1"):
        beside.write("app.py", f"import os, sys\n{code}\nsys.exit(6)\n")
        done = beside.run("-f", "-o", beside.recording, "app.py")
        plain = subprocess.run([sys.executable, "app.py"], cwd=beside.folder)
        assert done.status == plain.returncode
        assert b"Traceback" not in done.err


def test_hard_ends_leave_a_recording(beside):
    for code, status in (
        ("os._exit(3)", 3),
        ("os.kill(os.getpid(), 9)", -9),
        ("os.execv(sys.executable, [sys.executable, '-c', 'raise SystemExit(4)'])", 4),
    ):
        beside.write("app.py", f"import os, sys\ndef f(): pass\nf()\n{code}\n")
        done = beside.run("-f", "-o", beside.recording, "app.py")
        assert done.status == status
        assert b"whence" not in done.err
        with whence.open(beside.recording) as recording:
            assert "f" in {call.function for call in recording.calls().read()}


def test_a_program_that_records_itself(beside):
    code = """
        import whence
        with whence.span("mine"):
            try:
                whence.record("own.whence").start()
            except RuntimeError as error:
                print(error)
    """
    beside.write("app.py", code)
    done = beside.run("-q", "-f", "-o", beside.recording, "app.py")
    expected = f"already recording to {beside.recording}; stop() that first\n"
    assert done == (0, expected.encode(), b"")
    with whence.open(beside.recording) as recording:
        assert [span.name for span in recording.spans] == ["mine"]


def test_the_installed_script_and_a_prompt(beside):
    """An exit that a prompt would take the place of is not shown as an error."""
    script = Path(sys.executable).with_name("whence")
    command = [script, "run", "-q", "-o", beside.recording, "-c", "print(42)"]
    done = execute(command, cwd=beside.folder, env={"PYTHONINSPECT": "1"})
    assert done == (0, b"42\n", b"")


def test_a_run_within_a_run(beside):
    code = """
        import subprocess, sys
        inner = [sys.executable, "-m", "whence", "run", "-q", "-o", "inner.whence"]
        print(subprocess.run([*inner, "-c", "print('ran')"]).returncode)
    """
    beside.write("app.py", code)
    alone = beside.run("-q", "-f", "-o", beside.recording, "app.py")
    assert alone == (0, b"ran\n0\n", b"")
    followed = beside.run("-q", "-f", "--follow", "-o", beside.recording, "app.py")
    assert (followed.status, followed.out) == (0, b"2\n")
    (line,) = followed.err.splitlines()
    assert line.startswith(b"whence: already recording to ")
