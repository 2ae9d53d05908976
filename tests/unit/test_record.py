"""whence.record: where it writes, when it begins and ends, and what it refuses."""

import errno
import os
import re
import signal
import stat
import threading
from pathlib import Path

import pytest

import whence
from harness import runner
from whence import _packing

pytestmark = pytest.mark.store


def marks(path):
    with whence.open(path) as recording:
        return [r.fields["name"] for r in recording if r.kind == "mark"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_context_manager_records_from_enter_to_exit(tmp_path):
    path = tmp_path / "a.whence"
    whence.mark("before")
    with whence.record(path, calls=False) as recorder:
        assert recorder.state == "on"
        assert recorder.path == str(path)
        whence.mark("inside")
    whence.mark("after")
    assert recorder.state == "idle"
    assert recorder.reason is None
    assert marks(path) == ["inside"]


def test_start_and_stop(tmp_path):
    recorder = whence.record(tmp_path / "a.whence", calls=False)
    assert recorder.state == "idle"
    assert recorder.start() is recorder
    whence.mark("inside")
    recorder.stop()
    recorder.stop()
    assert recorder.recorded >= 1
    assert recorder.dropped == {}
    assert marks(recorder.path) == ["inside"]


def test_a_decorator_records_each_outermost_call(here):
    @whence.record(calls=False)
    def work(depth):
        """Work."""
        whence.mark(f"depth {depth}")
        return work(depth - 1) if depth else "done"

    assert work(2) == "done"
    assert work(0) == "done"
    assert (work.__name__, work.__doc__) == ("work", "Work.")
    first, second = sorted(here.glob("*.whence"), key=lambda p: len(p.name))
    assert first.name == f"whence-{os.getpid()}.whence"
    assert second.name == f"whence-{os.getpid()}-2.whence"
    assert marks(first) == ["depth 2", "depth 1", "depth 0"]
    assert marks(second) == ["depth 0"]


def test_a_decorated_function_may_run_in_many_threads(tmp_path):
    gate = threading.Barrier(4)
    errors = []

    @whence.record(tmp_path / "a.whence", overwrite=True, calls=False)
    def work():
        gate.wait(10)

    def guarded():
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_what_is_found_out_for_one_recording_does_not_get_into_another(tmp_path):
    first = whence.record(tmp_path / "1.whence", gc=False, calls=False)
    second = whence.record(tmp_path / "2.whence", gc=False, calls=False)

    class Restarts:
        def __float__(self):
            first.stop()
            second.start()
            return 1.0

    with first:
        whence.counter("a name of the first", Restarts())
    second.stop()
    with whence.open(second.path) as recording:
        assert [counter.name for counter in recording.counters] == [
            "a name of the first"
        ]
        assert recording.losses.names == 0


def test_an_exception_passes_and_the_recording_is_closed(tmp_path):
    path = tmp_path / "a.whence"

    def fail():
        with whence.record(path, calls=False):
            whence.mark("inside")
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        fail()
    assert marks(path) == ["inside"]


def test_a_second_recorder_is_refused_by_the_name_of_the_first(tmp_path):
    with whence.record(tmp_path / "first.whence", calls=False) as first:
        second = whence.record(tmp_path / "second.whence", calls=False)
        with pytest.raises(RuntimeError, match=r"first\.whence; stop\(\) that first"):
            second.start()
        second.stop()
        assert first.state == "on"
        assert second.state == "idle"
    with second:
        whence.mark("second")
    assert marks(second.path) == ["second"]


def test_recordings_one_after_the_other_know_nothing_of_each_other(tmp_path):
    for number in range(3):
        path = tmp_path / f"{number}.whence"
        with whence.record(path, calls=False):
            whence.mark(f"mark {number}")
            with whence.span("span", number=number):
                pass
        assert marks(path) == [f"mark {number}"]
        with whence.open(path) as recording:
            (span,) = recording.spans
            assert span.tags == {"number": number}
            assert len(recording.threads) == threading.active_count()


def test_a_span_that_outlives_its_recording_is_in_none_but_the_first(tmp_path):
    span = whence.span("long")
    with whence.record(tmp_path / "1.whence", calls=False):
        span.__enter__()
    with whence.record(tmp_path / "2.whence", calls=False):
        span.__exit__(None, None, None)
    with whence.open(tmp_path / "1.whence") as recording:
        (found,) = recording.spans
        assert (found.name, found.open, found.duration) == ("long", True, None)
    with whence.open(tmp_path / "2.whence") as recording:
        assert list(recording.spans) == []


class TestFile:
    def test_is_its_owners_alone_whatever_the_umask(self, tmp_path):
        before = os.umask(0)
        try:
            with whence.record(tmp_path / "a.whence", calls=False) as recorder:
                running = Path(recorder.path).stat().st_mode
                recorder.dump(tmp_path / "copy.whence")
        finally:
            os.umask(before)
        for mode in (running, (tmp_path / "a.whence").stat().st_mode):
            assert stat.S_IMODE(mode) == 0o600
        assert stat.S_IMODE((tmp_path / "copy.whence").stat().st_mode) == 0o600

    def test_is_not_written_over_another_unless_told(self, tmp_path):
        path = tmp_path / "precious"
        path.write_text("precious")
        with pytest.raises(FileExistsError, match="overwrite=True"):
            whence.record(path, calls=False).start()
        assert path.read_text() == "precious"
        with whence.record(path, overwrite=True, calls=False):
            whence.mark("new")
        assert marks(path) == ["new"]
        assert list(tmp_path.iterdir()) == [path]

    @pytest.mark.parametrize("overwrite", [False, True])
    def test_is_not_made_through_a_symbolic_link(self, tmp_path, overwrite):
        target, link = tmp_path / "target", tmp_path / "link"
        target.write_text("precious")
        link.symlink_to(target)
        recorder = whence.record(link, overwrite=overwrite, calls=False)
        if overwrite:
            with recorder:
                pass
            assert not link.is_symlink()
        else:
            with pytest.raises(FileExistsError):
                recorder.start()
        assert target.read_text() == "precious"

    def test_that_cannot_be_made_leaves_the_old_one(self, tmp_path, faults):
        """With overwrite=True the new one takes the place of a file when it is good."""
        path = tmp_path / "a.whence"
        path.write_text("precious")
        for call in ("fallocate", "mmap", "rename", "identify", "open"):
            faults.arm(0, 2**40, errno.ENOSPC, call)
            try:
                with whence.record(path, overwrite=True, calls=False) as recorder:
                    assert recorder.state == "ended"
            finally:
                faults.disarm()
            assert path.read_text() == "precious", call
            assert list(tmp_path.iterdir()) == [path], call

    def test_a_failing_dump_leaves_the_old_one(self, tmp_path, faults):
        copy = tmp_path / "copy.whence"
        copy.write_text("precious")
        with whence.record(tmp_path / "a.whence", calls=False) as recorder:
            faults.arm(0, 2**40, errno.ENOSPC, "pwrite")
            try:
                with pytest.raises(OSError, match="No space left"):
                    recorder.dump(copy, overwrite=True)
            finally:
                faults.disarm()
            assert copy.read_text() == "precious"
            with pytest.raises(ValueError, match="is the recording itself"):
                recorder.dump(recorder.path, overwrite=True)
            whence.mark("still there")
        assert marks(tmp_path / "a.whence") == ["still there"]
        assert len(list(tmp_path.iterdir())) == 2

    def test_only_files_are_replaced(self, tmp_path):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        with pytest.raises(FileExistsError, match="no file that could be replaced"):
            whence.record(pipe, overwrite=True, calls=False).start()
        assert pipe.is_fifo()
        with pytest.raises(ValueError, match="null"):
            whence.record(tmp_path / "a\0b", calls=False).start()
        with whence.record(os.fsencode(tmp_path / "bytes.whence"), calls=False):
            pass
        assert whence.open(tmp_path / "bytes.whence").info.closed

    def test_needs_a_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            whence.record(tmp_path / "nowhere" / "a.whence", calls=False).start()
        with whence.record(tmp_path / "a.whence", calls=False):
            pass  # a start that failed leaves nothing behind

    def test_that_was_moved_away_is_not_packed_over_its_successor(self, tmp_path):
        path, moved = tmp_path / "a.whence", tmp_path / "moved.whence"
        with whence.record(path, calls=False):
            whence.mark("inside")
            path.rename(moved)
            path.write_text("somebody else's")
        assert path.read_text() == "somebody else's"
        assert marks(moved) == ["inside"]
        assert sorted(p.name for p in tmp_path.iterdir()) == [
            "a.whence",
            "moved.whence",
        ]

    def test_is_alone_if_the_program_is_killed_while_it_is_packed(self, tmp_path):
        kill = """
            import os, signal, sys, whence
            from whence import _packing
            copy = _packing._copy
            def copy_and_die(*arguments):
                copy(*arguments)
                os.kill(os.getpid(), signal.SIGKILL)
            _packing._copy = copy_and_die
            with whence.record(sys.argv[1], calls=False):
                whence.mark("inside")
        """
        outcome = runner.run(kill, str(tmp_path / "a.whence"))
        assert outcome.status == -signal.SIGKILL
        assert os.listdir(tmp_path) == ["a.whence"]
        assert marks(tmp_path / "a.whence") == ["inside"]

    @pytest.mark.parametrize("lacks", ["O_TMPFILE", "links"])
    def test_is_packed_where_every_file_has_a_name(self, tmp_path, monkeypatch, lacks):
        made = []
        real = os.open

        def fake_open(path, flags, *mode):
            if flags & os.O_TMPFILE == os.O_TMPFILE and lacks == "O_TMPFILE":
                raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
            made.append((os.fspath(path), flags))
            return real(path, flags, *mode)

        def no_links(*_, **__):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

        if lacks == "links":
            monkeypatch.setattr(os, "link", no_links)
        monkeypatch.setattr(os, "open", fake_open)
        with whence.record(tmp_path / "a.whence", calls=False):
            whence.mark("inside")
        monkeypatch.undo()
        path, flags = made[-1]
        assert path.endswith(".packing")
        assert flags & os.O_EXCL
        assert flags & os.O_NOFOLLOW
        assert os.listdir(tmp_path) == ["a.whence"]
        assert stat.S_IMODE((tmp_path / "a.whence").stat().st_mode) == 0o600
        assert marks(tmp_path / "a.whence") == ["inside"]
        with whence.open(tmp_path / "a.whence") as recording:
            assert recording.info.packed

    def test_stays_as_it_is_if_the_packed_one_gets_no_name(self, tmp_path, monkeypatch):
        def fail(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        copy = _packing._copy

        def copy_then_fail(*arguments):
            copy(*arguments)
            monkeypatch.setattr(_packing, "name", fail)

        monkeypatch.setattr(_packing, "_copy", copy_then_fail)
        with whence.record(tmp_path / "a.whence", calls=False):
            whence.mark("inside")
        assert os.listdir(tmp_path) == ["a.whence"]
        assert marks(tmp_path / "a.whence") == ["inside"]

    def test_is_packed_when_it_is_closed(self, tmp_path):
        for pack in (True, False):
            with whence.record(tmp_path / f"{pack}.whence", pack=pack, calls=False):
                for number in range(1000):
                    whence.counter("number", number)
        packed, plain = tmp_path / "True.whence", tmp_path / "False.whence"
        assert packed.stat().st_size < plain.stat().st_size / 10
        found = []
        for path in (packed, plain):
            with whence.open(path) as recording:
                assert recording.info.packed == (path == packed)
                assert recording.info.closed
                found.append([c.value for c in recording.counters])
        assert found[0] == found[1] == list(range(1000))


@pytest.mark.parametrize("pack", [True, False])
def test_a_dump_is_a_recording_of_its_own(tmp_path, pack):
    path, copy = tmp_path / "a.whence", tmp_path / "copy.whence"
    with whence.record(path, pack=pack, calls=False) as recorder:
        whence.mark("one")
        with whence.span("open", tag=1):
            recorder.dump(copy)
            with pytest.raises(FileExistsError):
                recorder.dump(copy)
            recorder.dump(copy, overwrite=True)
            with pytest.raises(FileExistsError, match="no file that could be replaced"):
                recorder.dump(tmp_path, overwrite=True)
        whence.mark("two")
    assert marks(copy) == ["one"]
    assert marks(path) == ["one", "two"]
    with whence.open(copy) as recording:
        assert recording.info.closed
        (span,) = recording.spans
        assert (span.name, span.open, span.tags) == ("open", True, {"tag": 1})
        losses = recording.losses
        assert losses.produced == losses.recorded >= 2
    with pytest.raises(RuntimeError, match="not running"):
        recorder.dump(tmp_path / "late.whence")


def test_a_dump_of_a_ring_that_runs(tmp_path):
    """However fast the ring turns, a copy adds up and has no gaps."""
    done = threading.Event()

    def write(number):
        value = 0
        while not done.is_set():
            whence.counter(f"w{number}", value)
            value += 1

    threads = [threading.Thread(target=write, args=[n]) for n in range(3)]
    options = {"max_size": 40 * 4096, "chunk_size": 4096, "gc": False}
    with whence.record(tmp_path / "ring.whence", **options, calls=False) as recorder:
        for thread in threads:
            thread.start()
        for turn in range(5):
            recorder.dump(tmp_path / f"{turn}.whence")
        done.set()
        for thread in threads:
            thread.join()
    for turn in range(5):
        with whence.open(tmp_path / f"{turn}.whence") as recording:
            losses = recording.losses
            assert losses.produced == losses.recorded + losses.dropped.get("ring", 0)
            values = {}
            for counter in recording.counters:
                values.setdefault(counter.name, []).append(counter.value)
            for have in values.values():
                assert have == list(range(have[0], have[-1] + 1))


def test_what_is_asked_for_must_make_sense(tmp_path):
    def refused(message, **options):
        with pytest.raises(ValueError, match=message):
            whence.record(tmp_path / "a.whence", **options, calls=False)

    refused("max_size must be bytes or a text like '200MB'", max_size="much")
    refused("max_size must be at least", max_size=1000)
    refused("keep must be seconds or a text like '30s'", keep="30 fortnights")
    refused("keep must be", keep=-1)
    refused("chunk_size must be a multiple", chunk_size=5000)
    refused("chunk_size must be a multiple", chunk_size="64MB")
    refused("dump_on takes", dump_on=["always"])
    refused("dump_on takes", dump_on=["SIGNOT"])
    refused("a span's limit must be", dump_on=["span>soon"])
    assert list(tmp_path.iterdir()) == []


def test_sizes_and_durations_as_people_write_them():
    from whence import _units

    for text, size in {"8MB": 2**23, "1.5 GB": 3 * 2**29, "64KiB": 2**16}.items():
        assert _units.size(text, "size") == size
    assert _units.size(12345, "size") == 12345
    durations = {"30s": 30, "500ms": 0.5, "2m": 120, "1h": 3600, "1.5": 1.5, 0.25: 0.25}
    for text, seconds in durations.items():
        assert _units.nanoseconds(text, "duration") == round(seconds * 1e9)


def test_the_recording_says_what_it_is_of(tmp_path):
    path = tmp_path / "a.whence"
    outcome = runner.run(
        f"""
        import sys, whence
        sys.argv = ["/some/where/app.py", "--password", "hunter2"]
        with whence.record({str(path)!r}, calls=False):
            print(__import__("os").getpid())
        """
    )
    with whence.open(path) as recording:
        info = recording.info
    assert (outcome.status, outcome.err) == (0, "")
    assert info.pid == int(outcome.out)
    assert info.program == "app.py"
    assert re.fullmatch(r"3\.\d+\.\d+\S*", info.python)
    assert info.whence == whence.__version__
    assert b"hunter2" not in path.read_bytes()


ENDINGS = {
    "normal": ("pass", 0),
    "exit": ("sys.exit(3)", 3),
    "error": ("raise KeyError('mine')", 1),
    "hard exit": ("os._exit(4)", 4),
    "signal": ("os.kill(os.getpid(), signal.SIGTERM)", -15),
    "daemon": (
        "threading.Thread(target=lambda: [whence.mark('x') for _ in iter(int, 1)],"
        " daemon=True).start(); time.sleep(0.05)",
        0,
    ),
    "atexit": ("atexit.register(whence.mark, 'at exit')", 0),
    "native threads": ("rude.write_numbered(['w0'], 0, bytearray(64), 50)", 0),
}


@pytest.mark.parametrize("pack", [True, False])
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_recording_is_there_however_the_program_ends(tmp_path, rude, ending, pack):
    path = tmp_path / "a.whence"
    last, status = ENDINGS[ending]
    program = f"""
import atexit, os, signal, sys, threading, time
sys.path.insert(0, {str(Path(rude.__file__).parent)!r})
import rude, whence
{{start}}
whence.mark("inside")
print("result", flush=True)
{last}
"""
    start = f"whence.record({str(path)!r}, pack={pack}, calls=False).start()"
    outcome = runner.run(program.format(start=start), timeout=60)
    expected = runner.run(program.format(start="pass"), timeout=60)
    assert (outcome.status, outcome.out) == (expected.status, expected.out)
    assert outcome.status == status
    assert ("KeyError: 'mine'" in outcome.err) == (ending == "error")
    with whence.open(path) as recording:
        losses = recording.losses
        assert losses.produced == losses.recorded + sum(losses.dropped.values())
        closed = ending not in ("hard exit", "signal")
        assert recording.info.closed == closed
        in_place = (recording.info.size - 4096) % recording.info.chunk_size == 0
        assert in_place != (pack and closed)
    assert "inside" in marks(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("turn", range(5))
def test_busy_daemon_threads_at_exit_do_no_harm(tmp_path, turn):
    path = tmp_path / "a.whence"
    outcome = runner.run(
        f"""
        import threading, time, whence
        whence.record({str(path)!r}, max_size="1MB", calls=False).start()

        def busy():
            while True:
                with whence.span("busy", turn={turn}):
                    whence.counter("value", 1)

        for _ in range(8):
            threading.Thread(target=busy, daemon=True).start()
        time.sleep(0.05)
        """
    )
    assert outcome == runner.Outcome(0, "", "")
    with whence.open(path) as recording:
        losses = recording.losses
    assert losses.produced == losses.recorded + sum(losses.dropped.values())


@pytest.mark.parametrize("stopped", [False, True])
def test_daemon_threads_with_names_of_their_own_at_exit(tmp_path, stopped):
    """A thread that is ended in Python is unwound through the hook, without the GIL."""
    for _ in range(3):
        outcome = runner.run(
            f"""
            import threading, time, whence
            path = {str(tmp_path / "a.whence")!r}
            recorder = whence.record(path, overwrite=True, calls=False).start()

            def work(number):
                threading.current_thread().name = f"renamed {{number}} {{time.time()}}"
                while True:
                    time.sleep(0.0001)

            for number in range(20):
                threading.Thread(target=work, args=[number], daemon=True).start()
            time.sleep(0.02)
            if {stopped}:
                recorder.stop()
            """
        )
        assert outcome == runner.Outcome(0, "", "")


def test_reading_keeps_the_file_open_as_long_as_somebody_reads(tmp_path):
    path = tmp_path / "a.whence"
    with whence.record(path, gc=False, calls=False):
        for number in range(3):
            whence.counter("number", number)
    before = len(os.listdir("/proc/self/fd"))
    assert [counter.value for counter in whence.open(path).counters] == [0, 1, 2]
    records = iter(whence.open(path))
    counters = whence.open(path).counters
    assert sum(1 for record in records if record.kind == "counter") == 3
    assert len(list(counters)) == len(list(counters)) == 3
    del records, counters
    assert len(os.listdir("/proc/self/fd")) == before
