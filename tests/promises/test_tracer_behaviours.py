"""Behaviours 61 to 89, 95 and 96 of a complete tracer, each by its number.

The file is long because it is one list, and a test checks that no number is missing.
What needs more room has a file of its own: test_schedule.py, test_tracers.py,
test_record_states.py, test_follow.py.
"""

import gc
import re
import statistics
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import whence
from harness import runner, traced
from whence import tracers

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "calls.whence"


@pytest.fixture
def registry(monkeypatch):
    """Registrations that end with the test."""
    kept = {kind: list(made) for kind, made in tracers._factories.items()}
    monkeypatch.setattr(tracers, "_factories", kept)
    return kept


def made_by_exec(name, body="pass", filename="<made>"):
    namespace = {}
    exec(compile(f"def {name}():\n    {body}\n", filename, "exec"), namespace)
    return namespace.pop(name)


def leaf():
    return 1


def in_threads(count, work):
    threads = [threading.Thread(target=work, args=[n]) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def dive(depth, then):
    return dive(depth - 1, then) if depth else then()


def test_every_behaviour_has_a_test_with_its_number():
    numbers = set(range(61, 90)) | {95, 96}
    found = re.findall(r"^def test_(\d\d)_", Path(__file__).read_text(), re.MULTILINE)
    assert {int(n) for n in found} == numbers


def test_61_with_no_tracer_everything_else_works(path, registry):
    registry["calls"].clear()

    def run():
        with whence.span("work"):
            leaf()

    found = traced.record(path, run, gc=True)
    assert found.calls == []
    assert [span.name for span in found.spans] == ["work"]
    assert found.reason is None


def test_62_with_no_tracer_of_memory_its_functions_do_nothing(path, registry):
    registry["memory"].clear()
    tracer = tracers.make("memory")
    assert tracer.start(None) is None
    assert tracer.export_history(str(path)) is None
    assert tracer.stop() is None
    assert not path.exists()


def test_63_the_last_registration_makes_the_tracers_of_later_sessions(path, registry):
    made = []

    def factory(name):
        def make():
            made.append(name)
            return tracers.CallTracer()

        return make

    second = factory("second")
    tracers.register("calls", factory("first"))
    tracers.register("calls", second)
    traced.record(path, leaf)
    tracers.unregister("calls", second)
    traced.record(path, leaf)
    assert made == ["second", "first"]


def test_64_base_format_store_and_read_know_no_python():
    """They are built without its headers, and name nothing of it.

    tests/native builds and links them, with no interpreter.
    """
    layers = "base", "format", "store", "read"
    build = (ROOT / "CMakeLists.txt").read_text()
    for layer in layers:
        (said,) = re.findall(rf"^whence_layer\({layer} (.*)", build, re.MULTILINE)
        assert "PYTHON" not in said
        for source in (ROOT / "native" / layer).rglob("*"):
            if source.is_file() and source.suffix in (".h", ".cpp"):
                code = re.sub(r"//.*", "", source.read_text())
                assert not re.search(r"\b_?Py[A-Z_]\w*|Python\.h", code), source
    check = [sys.executable, str(ROOT / "tools" / "check_layers.py")]
    done = subprocess.run(check, capture_output=True, text=True)
    assert "may not" not in done.stdout


def test_65_a_tracer_is_given_raw_enters_and_returns_finished_events(path, registry):
    given = []

    class Mine(tracers.CallTracer):
        def start(self, options, enter):
            self.enter = enter
            enter(7)

        def stop(self):
            self.enter(8)

        def events(self, enters, time, end):
            given.append((list(enters), [time(e[2]) for e in enters], end))
            return [("seven", enters[0][1], given[0][1][0], end)]

    tracers.register("calls", Mine)
    recorder = whence.record(path)
    with recorder:
        assert recorder.events == []
    ((enters, times, end),) = given
    assert [key for key, *_ in enters] == [7, 8]
    assert {thread for _, thread, _ in enters} == {threading.get_native_id()}
    assert 0 <= times[0] <= times[1] <= end
    assert recorder.events == [("seven", threading.get_native_id(), times[0], end)]


def test_66_a_gc_callback_is_there_only_when_asked_for_and_until_stop(path):
    before = list(gc.callbacks)
    with whence.record(path, gc=False):
        assert gc.callbacks == before
    with whence.record(path, overwrite=True):
        assert len(gc.callbacks) == len(before) + 1
    assert gc.callbacks == before


def test_67_calls_returns_c_calls_c_returns_and_c_exceptions(path):
    def run():
        leaf()
        len("abc")
        try:
            int("none")
            "abc".index("z")
        except ValueError:
            pass
        try:
            [].index(1)
        except ValueError:
            return time.monotonic_ns()

    found = traced.record(path, run, c_calls=True).here()
    outer = found.one("run")
    inside = [c for c in found.calls if c.parent == outer.number]
    assert [(c.function.rpartition(".")[2], c.left) for c in inside] == [
        *(("leaf", "return"), ("len", "return"), ("index", "unwind")),
        ("monotonic_ns", "return"),
    ]
    assert {c.thread for c in inside} == {outer.thread}
    times = [t for c in inside for t in (c.start, c.start + c.duration)]
    assert times == sorted(times)


def test_68_functions_that_an_exception_passes_through_end_with_it(path):
    def fail():
        raise KeyError

    def between():
        fail()

    def run():
        try:
            between()
        except KeyError:
            leaf()

    found = traced.record(path, run)
    inner, middle, after = (found.one(n) for n in ("fail", "between", "leaf"))
    assert (inner.left, middle.left, after.left) == ("unwind", "unwind", "return")
    end = middle.start + middle.duration
    assert inner.start + inner.duration <= end <= after.start


@pytest.mark.parametrize("depth", [0, 10, 500])
def test_69_all_frames_that_live_at_start_are_open(path, depth):
    recorder = whence.record(path, pack=False, gc=False)
    dive(depth, recorder.start)
    recorder.stop()
    found = traced.read(path)
    assert found.count("dive") == depth + 1
    assert {c.entered for c in found.of("dive")} == {"open"}
    here = found.one("test_69_all_frames_that_live_at_start_are_open")
    assert here.entered == "open"


def test_70_functions_that_are_open_at_stop_end_there(path):
    recorder = whence.record(path, pack=False, gc=False).start()
    dive(10, recorder.stop)
    found = traced.read(path)
    assert {c.left for c in found.of("dive")} == {"cut"}
    (end,) = {c.start + c.duration for c in found.of("dive")}
    with whence.open(path) as recording:
        assert end <= recording.info.duration


def test_71_threads_that_are_there_and_threads_that_come_later(path):
    ready, go = threading.Event(), threading.Event()

    def early():
        ready.set()
        go.wait()
        leaf()

    def late():
        leaf()

    first = threading.Thread(target=early, name="early")
    first.start()
    ready.wait()

    def run():
        second = threading.Thread(target=late, name="late")
        second.start()
        go.set()
        second.join()
        first.join()

    found = traced.record(path, run)
    names = {thread.id: thread.name for thread in found.threads}
    assert sorted(names[c.thread] for c in found.of("leaf")) == ["early", "late"]
    assert (found.one("early").entered, found.one("late").entered) == ("open", "call")


def test_72_threads_that_end_lose_nothing(path):
    def run():
        for _ in range(5):
            in_threads(20, lambda _: [leaf() for _ in range(50)])

    found = traced.record(path, run)
    assert found.count("leaf") == 5 * 20 * 50
    assert len({c.thread for c in found.of("leaf")}) == 100


def test_73_names_say_file_line_and_function_and_c_functions_theirs(path):
    class Some:
        def method(self):
            return sorted([2, 1])

    found = traced.record(path, lambda: Some().method(), c_calls=True)
    method = found.one("method")
    code = Some.method.__code__
    assert method.function == code.co_qualname
    assert (method.filename, method.line) == (code.co_filename, code.co_firstlineno)
    native = found.one("sorted")
    assert (native.function, native.filename, native.line) == (
        "builtins.sorted",
        None,
        None,
    )


def test_74_the_longest_folder_of_the_import_path_is_left_out(path, tmp_path):
    package = tmp_path / "outer" / "package"
    package.mkdir(parents=True)
    (package / "module.py").write_text("def work():\n    pass\n")
    folders = [str(tmp_path), str(tmp_path / "outer"), str(tmp_path / "oute")]
    sys.path[:0] = folders
    try:
        from package import module

        found = traced.record(path, lambda: module.work())
    finally:
        for folder in folders:
            sys.path.remove(folder)
        sys.modules.pop("package.module", None)
        sys.modules.pop("package", None)
    filename = found.one("work").filename
    assert filename == str(package / "module.py")
    with whence.open(path) as recording:
        assert recording.shorten(filename) == "package/module.py"
        assert recording.shorten("/else/where.py") == "/else/where.py"
        assert recording.shorten("<string>") == "<string>"


def test_75_a_name_belongs_to_the_function_that_ran(path):
    def run():
        for number in range(3000):
            made_by_exec(f"made_{number}", filename=f"<file {number}>")()

    found = traced.record(path, run)
    names = [(c.function, c.filename) for c in found.calls if c.line == 1]
    expected = [(f"made_{n}", f"<file {n}>") for n in range(3000)]
    assert [name for name in names if name[0] != "<module>"] == expected


def test_76_the_caller_is_the_nearest_python_ancestor(path):
    truth = []

    def note():
        frame = sys._getframe(1)
        truth.append((frame.f_code.co_name, frame.f_back.f_code.co_name))

    class Made:
        def __init__(self):
            note()

        def __lt__(self, other):
            note()
            return True

    def numbers():
        note()
        yield 1

    def call(_):
        note()

    def run():
        sorted([Made(), Made()])
        sum(numbers())
        list(map(call, range(2)))

    found = traced.record(path, run)
    got = []
    for call in found.of("note"):
        caller = found.parent(call)
        around = found.parent(caller)
        got.append((traced.last(caller.function), traced.last(around.function)))
    assert got == truth
    assert len(truth) == 6


def test_77_events_are_numbered_from_1_and_know_the_one_around_them(path):
    def run():
        for number in range(3):
            with whence.span("Model", instance=number):
                leaf()

    found = traced.record(path, run).here()
    by_start = sorted(found.calls, key=lambda call: call.number)
    assert [c.number for c in by_start] == list(range(1, len(by_start) + 1))
    assert [c.start for c in by_start] == sorted(c.start for c in by_start)
    assert by_start[0].parent is None
    assert all(c.parent < c.number for c in by_start[1:])
    spans = [(s.name, s.tags) for s in found.spans]
    assert spans == [("Model", {"instance": n}) for n in range(3)]


def test_78_after_stop_nothing_comes_any_more(path):
    done = threading.Event()

    def busy(_):
        while not done.is_set():
            leaf()

    recorder = whence.record(path, pack=False, gc=False)
    before = hooks()
    threads = [threading.Thread(target=busy, args=[n]) for n in range(4)]
    for thread in threads:
        thread.start()
    sizes = []
    for _ in range(5):
        recorder._options.overwrite = True
        with recorder:
            pass
        assert hooks() == before
        recorded, content = recorder.recorded, path.read_bytes()
        leaf()
        sizes.append((recorder.recorded, path.read_bytes()) == (recorded, content))
    done.set()
    for thread in threads:
        thread.join()
    assert all(sizes)


def hooks():
    """Everything of the interpreter's that a recording puts something in."""
    monitoring = getattr(sys, "monitoring", None)
    tools = [monitoring.get_tool(n) for n in range(6)] if monitoring else None
    hook = threading.Thread._bootstrap
    return tools, sys.getprofile(), sys.gettrace(), hook, list(gc.callbacks)


@pytest.mark.parametrize("c_calls", [False, True])
def test_79_a_profile_function_that_was_there_is_there_afterwards(path, c_calls):
    seen = []

    def profile(frame, event, arg):
        seen.append(event)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        with whence.record(path, c_calls=c_calls, pack=False):
            del seen[:]
            leaf()
            assert seen[:2] == ["call", "return"]
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(before)
    assert traced.read(path).count("leaf") == 1


def test_80_the_tracer_raises_nothing_into_the_program(path):
    odd = ["\udc80\udfff", "\ud800", "a\0b", "\U0001f40d", "x" * 100_000, ""]

    def run():
        for name in odd:
            for body in ("pass", "1 / 0"):
                function = made_by_exec("f", body)
                names = dict.fromkeys(("co_name", "co_qualname", "co_filename"), name)
                function.__code__ = function.__code__.replace(**names)
                try:
                    function()
                except ZeroDivisionError:
                    assert body == "1 / 0"

    found = traced.record(path, run, c_calls=True, exceptions=True)
    assert len([c for c in found.calls if c.line == 1]) >= 2 * len(odd)


def test_81_pause_and_resume_keep_nesting_valid(path):
    def hidden():
        leaf()

    def run(recorder):
        leaf()
        for _ in range(3):
            dive(3, recorder.pause)
            hidden()
            dive(4, recorder.resume)
            leaf()

    found = traced.record(path, run).here()
    assert found.count("leaf") == 4
    assert found.of("hidden") == []
    entered = [c.entered for c in found.of("dive")]
    assert entered.count("call") == 3 * 4
    assert entered.count("open") == 3 * 5
    assert [c.left for c in found.of("dive")].count("cut") == 3 * 4
    runs = found.of("run")
    assert [c.left for c in runs].count("cut") == 3
    assert len(runs) == 4


def test_82_another_start_is_another_session(tmp_path):
    recorder = whence.record(tmp_path / "a.whence", overwrite=True)
    for number in (1, 2):
        with recorder:
            dive(number, leaf)
        found = traced.read(recorder.path)
        assert (found.count("dive"), found.count("leaf")) == (number + 1, 1)
    found = traced.record(tmp_path / "b.whence", leaf)
    assert (found.count("dive"), found.count("leaf")) == (0, 1)


def test_83_stop_twice_elsewhere_at_exit_and_a_second_session(tmp_path, path):
    recorder = whence.record(path).start()
    with pytest.raises(RuntimeError, match="already recording"):
        whence.record(tmp_path / "second.whence").start()
    in_threads(4, lambda _: recorder.stop())
    recorder.stop()
    assert recorder.state == "idle"
    assert not (tmp_path / "second.whence").exists()
    outcome = runner.run(
        f"""
        import whence
        def leaf(): pass
        whence.record({str(path)!r}, overwrite=True).start()
        leaf()
        """
    )
    assert outcome == runner.Outcome(0, "", "")
    assert traced.read(path).count("leaf") == 1


def test_84_a_forked_child_is_clean_and_its_own_trace_has_its_ids(tmp_path, path):
    own = tmp_path / "child.whence"
    outcome = runner.run(
        f"""
        import os, threading, whence
        def leaf(): pass
        with whence.record({str(path)!r}) as recorder:
            leaf()
            child = os.fork()
            if child == 0:
                assert recorder.state == "idle"
                with whence.record({str(own)!r}):
                    leaf()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            leaf()
        print(os.getpid(), child)
        """
    )
    assert (outcome.status, outcome.err) == (0, "")
    parent, child = map(int, outcome.out.split())
    for file, pid, count in ((path, parent, 2), (own, child, 1)):
        found = traced.read(file)
        assert found.count("leaf") == count
        assert [thread.os_id for thread in found.threads] == [pid]
        with whence.open(file) as recording:
            assert recording.info.pid == pid


def test_85_runs_of_the_collector_lie_between_calls(path):
    def work():
        leaf()
        gc.collect()
        leaf()

    found = traced.record(path, work, gc=True)
    around = found.one("work")
    before, after = found.of("leaf")
    (run,) = [g for g in found.gc if before.start < g.start < after.start]
    assert before.start + before.duration < run.start
    assert run.start + run.duration < after.start
    assert around.start < run.start
    assert traced.record(path, work).gc == []


def schedule(**numbers):
    return whence.schedule(**{"wait": 1, "warmup": 1, "active": 2, **numbers})


def test_86_a_schedule_gives_exactly_its_actions():
    names = [schedule(repeat=2, skip_first=1)(n).value for n in range(12)]
    cycle = ["none", "warmup", "record", "save"]
    assert names == ["none", *cycle, *cycle, *["none"] * 3]
    names = [schedule(repeat=1, skip_first_wait=1)(n).value for n in range(5)]
    assert names == ["warmup", "record", "save", "none", "none"]


def test_87_schedules_that_make_no_sense_are_refused():
    for name in ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait"):
        with pytest.raises(ValueError, match=f"{name} must be"):
            schedule(**{name: -1})
    with pytest.raises(ValueError, match="active must be 1 or more"):
        schedule(active=0)
    with pytest.warns(UserWarning, match="without warmup"):
        schedule(warmup=0)


def test_88_on_ready_is_called_once_a_cycle_and_at_the_end(path):
    ready = []
    steps = schedule(wait=1, warmup=1, active=2)
    with whence.record(
        path, schedule=steps, on_ready=lambda r: ready.append(r.path)
    ) as recorder:
        for _ in range(7):  # a whole cycle, and then one active step of the next
            leaf()
            recorder.step()
        assert len(ready) == 1
    assert ready == [str(path.with_name(f"calls-{n}.whence")) for n in (1, 2)]


def test_89_spans_wrap_each_step_that_is_recorded(path):
    steps = schedule(repeat=1)
    with whence.record(path, schedule=steps) as recorder:
        for _ in range(6):
            leaf()
            recorder.step()
    found = traced.read(path)
    assert [(s.name, s.tags) for s in found.spans] == [
        ("step", {"number": 2}),
        ("step", {"number": 3}),
    ]
    calls = found.of("leaf")
    for span, call in zip(found.spans, calls, strict=True):
        assert span.start <= call.start
        assert call.start + call.duration <= span.start + span.duration


def test_95_ticks_become_nanoseconds_without_bias(path):
    """Each mark lies between two readings of the clock that Python has.

    A bias shows wherever the readings are close to each other; where the machine has
    taken the processor away in between, they say nothing.
    """
    clock = time.monotonic_ns
    readings = []
    with whence.record(path, calls=False, gc=False, pack=False):
        for _ in range(20_000):
            before = clock()
            whence.mark("m")
            readings.append((before, clock()))
    (start,) = struct.unpack_from("<Q", path.read_bytes(), 64)
    marks = [r.time for r in traced.read(path).records if r.kind == "mark"]
    pairs = list(zip(marks, readings, strict=True))
    pairs.sort(key=lambda pair: pair[1][1] - pair[1][0])
    closest = pairs[: len(pairs) // 4]
    offsets = [mark + start - (a + b) / 2 for mark, (a, b) in closest]
    assert abs(statistics.median(offsets)) <= 200
    slack = 50  # each clock has its own grain
    between = sum(a - slack <= mark + start <= b + slack for mark, (a, b) in pairs)
    assert between >= 0.99 * len(pairs)


def test_96_counts_are_exact_however_many_threads_count(path):
    """What holds them is append-only: tests/native/test_segments.cpp."""
    functions = [made_by_exec(f"made_{n}") for n in range(1000)]

    def work(number):
        for function in functions:
            for _ in range(number % 3 + 1):
                function()

    found = traced.record(path, lambda: in_threads(16, work))
    counts = {}
    for call in found.calls:
        counts[call.function] = counts.get(call.function, 0) + call.count
    each = sum(number % 3 + 1 for number in range(16))
    assert [counts[f"made_{n}"] for n in range(1000)] == [each] * 1000
