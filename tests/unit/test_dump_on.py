"""dump_on=: copies that a recording leaves of its own accord."""

import os
import signal
import sys
import threading
import time

import pytest

import whence
from harness import runner
from whence import _session

pytestmark = pytest.mark.store


def marks(path):
    with whence.open(path) as recording:
        found = sorted(
            (r.time, r.fields["name"]) for r in recording if r.kind == "mark"
        )
        return [name for _, name in found]


def dumps(folder):
    return sorted(folder.glob("*-dump-*.whence"))


def test_an_exception_that_nobody_catches(tmp_path):
    path = tmp_path / "a.whence"
    program = """
import threading, whence
{start}
whence.mark("before")
def fail():
    raise KeyError("in a thread")
thread = threading.Thread(target=fail, name="T")
thread.start()
thread.join()
whence.mark("between")
try:
    raise ValueError("caught")
except ValueError:
    pass
raise LookupError("at the end")
"""
    start = f"whence.record({str(path)!r}, dump_on=['exception'], calls=False).start()"
    outcome = runner.run(program.format(start=start))
    expected = runner.run(program.format(start="pass"))
    assert outcome == expected
    assert outcome.status == 1
    first, second = dumps(tmp_path)
    assert marks(first) == ["before", "dump: exception"]
    assert marks(second)[-2:] == ["between", "dump: exception"]
    assert marks(path) == marks(second)


def test_a_signal(tmp_path):
    heard = []
    before = signal.signal(signal.SIGUSR2, lambda *args: heard.append(args))
    try:
        theirs = signal.getsignal(signal.SIGUSR2)
        with whence.record(tmp_path / "a.whence", dump_on=["SIGUSR2"], calls=False):
            whence.mark("one")
            os.kill(os.getpid(), signal.SIGUSR2)
            whence.mark("two")
            os.kill(os.getpid(), signal.SIGUSR2)
        assert signal.getsignal(signal.SIGUSR2) is theirs
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert len(heard) == 2
    first, second = dumps(tmp_path)
    assert marks(first) == ["one", "dump: SIGUSR2"]
    assert marks(second) == ["one", "dump: SIGUSR2", "two", "dump: SIGUSR2"]


def test_a_signal_outside_the_main_thread_is_one_clear_error(tmp_path):
    errors = []

    def start():
        try:
            whence.record(
                tmp_path / "a.whence", dump_on=[signal.SIGUSR2], calls=False
            ).start()
        except ValueError as error:
            errors.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert "main thread" in str(errors[0])
    with whence.record(tmp_path / "b.whence", calls=False):  # nothing is left running
        pass
    assert threading.Thread.__dict__["_bootstrap"].__module__ == "threading"


def test_a_span_that_takes_long(tmp_path):
    options = {"dump_on": ["span>50ms", "span load>20ms", "span other>1h"]}
    with whence.record(tmp_path / "a.whence", **options, calls=False):
        with whence.span("other"):
            time.sleep(0.06)
        with whence.span("load"):
            time.sleep(0.03)
        try:
            with whence.span("slow"):
                time.sleep(0.06)
                raise LookupError
        except LookupError:
            pass
    first, second = dumps(tmp_path)
    assert marks(first) == ["dump: span load"]
    assert marks(second) == ["dump: span load", "dump: span slow"]
    with whence.span("load"):
        time.sleep(0.03)
    assert len(dumps(tmp_path)) == 2


def test_what_goes_wrong_with_a_dump_is_not_heard(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with whence.record(
        folder / "a.whence", dump_on=["span>1ms"], calls=False
    ) as recorder:
        (folder / "a-dump-1.whence").write_text("in the way")
        for _ in range(2):
            with whence.span("slow"):
                time.sleep(0.005)
        assert recorder.state == "on"
    assert (folder / "a-dump-1.whence").read_text() == "in the way"
    assert marks(folder / "a-dump-2.whence") == ["dump: span slow"]
    assert marks(folder / "a-dump-3.whence") == ["dump: span slow"] * 2
    folder.rename(tmp_path / "moved")
    with whence.record(
        tmp_path / "b.whence", dump_on=["span>1ms"], calls=False
    ) as recorder:
        recorder._session.path = str(folder / "nowhere.whence")
        with whence.span("slow"):
            time.sleep(0.005)
        recorder._session.path = str(tmp_path / "b.whence")


def test_there_is_an_end_to_it(tmp_path, monkeypatch):
    monkeypatch.setattr(_session, "MOST_DUMPS", 3)
    with whence.record(tmp_path / "a.whence", dump_on=["span>1ms"], calls=False):
        for _ in range(6):
            with whence.span("slow"):
                time.sleep(0.002)
    assert len(dumps(tmp_path)) == 3


def test_hooks_of_others_stay(tmp_path):
    before = sys.excepthook
    try:
        with whence.record(tmp_path / "a.whence", dump_on=["exception"], calls=False):
            ours = sys.excepthook
            assert ours is not before

            def theirs(*args):
                ours(*args)

            sys.excepthook = theirs
        assert sys.excepthook is theirs
    finally:
        sys.excepthook = before


def test_stop_on_another_thread_leaves_a_handler_that_does_nothing(tmp_path):
    heard = []
    before = signal.signal(signal.SIGUSR2, lambda *_: heard.append(1))
    try:
        recorder = whence.record(
            tmp_path / "a.whence", dump_on=["SIGUSR2"], calls=False
        ).start()
        thread = threading.Thread(target=recorder.stop)
        thread.start()
        thread.join()
        assert recorder.state == "idle"
        os.kill(os.getpid(), signal.SIGUSR2)
        assert heard == [1]
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert dumps(tmp_path) == []
    assert recorder.recorded == 0


@pytest.mark.parametrize("number", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_that_ends_the_program_still_does(tmp_path, number):
    path = tmp_path / "a.whence"
    program = f"""
import os, signal, time, whence
if signal.{number} != signal.SIGINT:  # which Python turns into an exception
    signal.signal(signal.{number}, signal.SIG_DFL)  # nohup has it ignored
{{start}}
os.kill(os.getpid(), signal.{number})
time.sleep(1)
print("survived")
"""
    start = f"whence.record({str(path)!r}, dump_on=[{number!r}], calls=False).start()"
    outcome = runner.run(program.format(start=start))
    expected = runner.run(program.format(start="pass"))
    assert (outcome.status, outcome.out) == (expected.status, "")
    assert outcome.status < 0
    assert marks(dumps(tmp_path)[0]) == [f"dump: {number}"]


def test_a_signal_that_somebody_handles_in_c_is_left_to_them(tmp_path):
    outcome = runner.run(
        f"""
        import faulthandler, signal, sys, whence
        faulthandler.register(signal.SIGUSR1, file=sys.stdout)
        try:
            path = {str(tmp_path / "a.whence")!r}
            whence.record(path, dump_on=["SIGUSR1"], calls=False).start()
        except ValueError as error:
            print(error)
        signal.raise_signal(signal.SIGUSR1)
        """
    )
    assert outcome.status == 0
    assert outcome.out.startswith("SIGUSR1 has a handler that Python knows nothing of")
    assert "most recent call first" in outcome.out
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_it_dumps_is_not_lost(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(whence._core, "try_dump", interrupted)
    with whence.record(
        tmp_path / "a.whence", dump_on=["span>1ms"], calls=False
    ) as recorder:
        with pytest.raises(KeyboardInterrupt), whence.span("slow"):
            time.sleep(0.005)
        assert recorder.state == "on"


@pytest.mark.parametrize("turn", range(3))
def test_a_daemon_thread_that_dumps_while_the_program_exits(tmp_path, turn):
    outcome = runner.run(
        f"""
        import threading, time, whence
        path = {str(tmp_path / "a.whence")!r}
        whence.record(path, dump_on=["span>1ms"], max_size="4MB", calls=False).start()

        def slow():
            while True:
                with whence.span("slow"):
                    time.sleep(0.002)

        for _ in range(4):
            threading.Thread(target=slow, daemon=True).start()
        time.sleep(0.02 + {turn} / 100)
        """
    )
    assert outcome == runner.Outcome(0, "", "")
