"""What start, stop, pause, resume, step and dump do in each state.

The table is the one in docs/reference/recording.md: tests read it there, so that what
it says is what happens.
"""

import itertools
import random
import re
import resource
import threading
from pathlib import Path

import pytest

import whence
from harness import runner
from whence import _options

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "recording.md"
STATES = ("idle", "on", "paused", "ended", "waiting")
NOTHING = "\N{EN DASH}"
COPIES = itertools.count()
METHODS = ("start", "stop", "pause", "resume", "step", "dump")


def read_table():
    """Return what the page says: the cell of each state and method."""
    text = PAGE.read_text().split("### What each does in each state")[1]
    header, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in re.findall(
            r"^\|.*\|$", text.split("\n\n`waiting`")[0], re.MULTILINE
        )
    ]
    methods = [re.match(r"`(\w+)\(", cell)[1] for cell in header[1:]]
    return {
        (row[0].strip("`"), method): cell
        for row in rows
        for method, cell in zip(methods, row[1:], strict=True)
    }


TABLE = read_table()


def expected(state, method, scheduled):
    """Return the state afterwards, as the page has it, and whether it raises."""
    plain, _, with_schedule = TABLE[state, method].partition("; ")
    cell = with_schedule if scheduled and "schedule" in with_schedule else plain
    if cell == "`RuntimeError`":
        return {state}, RuntimeError
    if cell in (NOTHING, "a copy"):
        return {state}, None
    if "next step" in cell:
        return {"waiting", "on", *re.findall(r"`(\w+)` until", cell)}, None
    return set(re.findall(r"`(\w+)`", cell)), None


class Subject:
    """A recorder in one of the states."""

    def __init__(self, folder, state, **options):
        self.folder = folder
        self.scheduled = state == "waiting"
        if self.scheduled:
            options["schedule"] = whence.schedule(wait=2, warmup=1, active=2)
        elif state == "ended":
            options["chunk_size"] = 4096
        path = folder / f"{state}.whence"
        options = {"overwrite": True, "pack": False, **options}
        self.recorder = whence.record(path, **options)
        if state != "idle":
            self.recorder.start()
        if state == "paused":
            self.recorder.pause()
        if state == "ended":
            self._find_no_room(path)
        assert self.recorder.state == state

    def _find_no_room(self, path):
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, limits[1]))
        try:
            while self.recorder.state == "on":
                whence.counter("number", 1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert self.recorder.reason == "file_limit"

    def call(self, method):
        arguments = []
        if method == "dump":
            arguments = [self.folder / f"copy-{next(COPIES)}.whence"]
        getattr(self.recorder, method)(*arguments)
        if arguments:
            with whence.open(*arguments) as recording:
                assert recording.info.closed

    def check(self, method, call=None):
        """Call a method, and compare what comes of it with the page."""
        before = self.recorder.state
        states, error = expected(before, method, self.scheduled)
        if error is None:
            (call or self.call)(method)
        else:
            with pytest.raises(error):
                (call or self.call)(method)
        assert self.recorder.state in states, (before, method)


@pytest.fixture
def subject(tmp_path):
    made = []

    def make(state, **options):
        made.append(Subject(tmp_path, state, **options))
        return made[-1]

    yield make
    for one in made:
        one.recorder.stop()
        assert one.recorder.state == "idle"


def elsewhere(call):
    """Have a method called by another thread, and raise here what it raises there."""

    def run(method):
        raised = []

        def work():
            try:
                call(method)
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(30)
        assert not thread.is_alive()
        if raised:
            raise raised[0]

    return run


def test_the_page_has_every_state_and_method():
    assert set(TABLE) == {(state, method) for state in STATES for method in METHODS}


@pytest.mark.parametrize("calls", [True, False])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("state", STATES)
def test_once_and_twice_here_and_elsewhere(subject, state, method, calls):
    for turns in (1, 2):
        for where in (lambda call: call, elsewhere):
            one = subject(state, calls=calls)
            for _ in range(turns):
                one.check(method, where(one.call))
            one.recorder.stop()


@pytest.mark.parametrize("state", ["idle", "waiting"])
def test_any_sequence_from_any_thread(subject, state, seed):
    rng = random.Random(f"{seed}:{state}")
    one = subject(state)
    for _ in range(150):
        where = rng.choice([lambda call: call, elsewhere])
        one.check(rng.choice(METHODS), where(one.call))


def test_all_of_them_at_once_from_many_threads(subject):
    """Nobody hangs, whichever order they come in, and only what is documented comes."""
    one = subject("on")
    wrong = []

    def work(number):
        rng = random.Random(number)
        for turn in range(40):
            method = rng.choice(METHODS)
            path = one.folder / f"copy-{number}-{turn}.whence"
            try:
                getattr(one.recorder, method)(*([path] if method == "dump" else []))
            except RuntimeError:
                pass
            except BaseException as error:
                wrong.append((method, error))

    threads = [threading.Thread(target=work, args=[n]) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert wrong == []
    assert not any(thread.is_alive() for thread in threads)


def test_a_recording_that_could_not_begin_is_not_running(subject, faults):
    recorder = whence.record(subject("idle").folder / "a.whence", overwrite=True)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        recorder.start()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (recorder.state, recorder.reason) == ("ended", "file_limit")
    recorder.stop()
    for method in ("pause", "resume", "step"):
        getattr(recorder, method)()
    with pytest.raises(RuntimeError, match="not running"):
        recorder.dump("copy.whence")
    recorder.start()
    assert (recorder.state, recorder.reason) == ("on", None)
    recorder.stop()


AT_EXIT = """
import atexit, os, sys, threading, time, whence
folder, state, moment = sys.argv[1:]

class Caller:
    # It has all that it needs: at finalization, modules are empty.

    def __init__(self):
        self.write, self.clock, self.folder = os.write, time.monotonic_ns, folder

    def __call__(self, tell=True):
        for method in ("pause", "step", "resume", "dump", "step", "stop", "start",
                       "stop", "start", "pause", "dump"):
            path = f"{self.folder}/copy-{self.clock()}.whence"
            try:
                getattr(self.recorder, method)(*([path] if method == "dump" else []))
            except RuntimeError:
                pass
        if tell:
            self.write(1, b"done\\n")

class AtFinalization:
    def __del__(self):
        self.caller()

all_of_them = Caller()
if moment == "after us":
    atexit.register(all_of_them)
schedule = None
if state == "waiting":
    schedule = whence.schedule(wait=2, warmup=1, active=2)
path = os.path.join(folder, "a.whence")
recorder = whence.record(path, overwrite=True, pack=False, schedule=schedule)
all_of_them.recorder = recorder
if state != "idle":
    recorder.start()
if state == "paused":
    recorder.pause()
if moment == "before us":
    atexit.register(all_of_them)
if moment in ("finalization", "after us"):
    kept = AtFinalization()
    kept.caller = all_of_them
if moment == "daemon":
    def forever():
        while True:
            all_of_them(tell=False)
    for _ in range(3):
        threading.Thread(target=forever, daemon=True).start()
    time.sleep(0.05)
    os.write(1, b"done\\n")
if moment == "main thread gone":
    def late():
        threading.main_thread().join()
        all_of_them()
    threading.Thread(target=late).start()
"""


@pytest.mark.parametrize(
    "moment", ["before us", "after us", "main thread gone", "daemon", "finalization"]
)
@pytest.mark.parametrize("state", ["idle", "on", "paused", "waiting"])
def test_at_exit_nothing_crashes_and_nothing_hangs(tmp_path, state, moment):
    outcome = runner.run(AT_EXIT, str(tmp_path), state, moment)
    done = "done\n" * (2 if moment == "after us" else 1)
    assert outcome == runner.Outcome(0, done, "")
    for path in tmp_path.glob("*.whence"):
        with whence.open(path) as recording:
            losses = recording.losses
        assert losses.produced == losses.recorded + sum(losses.dropped.values())


@pytest.mark.parametrize("name", _options.FLAGS)
def test_flags_are_true_or_false(name):
    for wrong in ("no", 3, None):
        with pytest.raises(TypeError, match=f"{name} must be True or False, not "):
            whence.record(**{name: wrong})
