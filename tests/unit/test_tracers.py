"""whence.tracers: the seam, proved by tracers that a third party might write."""

import gc
import sys
import threading

import pytest

import whence
from harness import traced
from whence import _core, tracers


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """Registrations that end with the test."""
    kept = {kind: list(made) for kind, made in tracers._factories.items()}
    monkeypatch.setattr(tracers, "_factories", kept)
    return kept


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.whence"


def leaf():
    pass


class Profiling(tracers.CallTracer):
    """Calls of Python functions, by sys.setprofile: all that the seam is used for."""

    def __init__(self):
        self.told = []  # what it was told to do
        self._names = {}

    def start(self, options, enter):
        self.told.append("start")
        self.options, self._enter = options, enter
        self._on()

    def stop(self):
        self.told.append("stop")
        self._off()

    def pause(self):
        self.told.append("pause")
        self._off()

    def resume(self):
        self.told.append("resume")
        self._on()

    def watch_gc(self, on):
        self.told.append(f"gc {on}")

    def events(self, enters, time, end):
        """Every second enter is a return: 0."""
        finished, open_ = [], {}
        for key, thread, ticks in enters:
            stack = open_.setdefault(thread, [])
            if key:
                stack.append((self._names[key], time(ticks)))
            elif stack:
                name, start = stack.pop()
                finished.append((name, thread, start, time(ticks)))
        for thread, stack in open_.items():
            finished += [(name, thread, start, end) for name, start in stack]
        return finished

    def _on(self):
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def _off(self):
        sys.setprofile(None)
        threading.setprofile(None)

    def _profile(self, frame, event, _):
        if event in ("call", "return"):
            name = frame.f_code.co_qualname
            if event == "call":
                self._names[id(frame.f_code)] = name
            self._enter(id(frame.f_code) if event == "call" else 0)


@pytest.fixture
def profiling(registry):
    made = []

    def make():
        made.append(Profiling())
        return made[-1]

    before = sys.getprofile()
    tracers.register("calls", make)
    yield made
    sys.setprofile(before)


def test_the_native_tracer_is_registered_and_makes_new_ones():
    first, second = tracers.make("calls"), tracers.make("calls")
    assert type(first).__module__ == "whence._calls"
    assert first is not second
    assert isinstance(first, tracers.CallTracer)


@pytest.mark.parametrize("kind", ["calls", "memory"])
def test_the_newest_wins_and_the_one_before_comes_back(kind, registry):
    before = len(registry[kind])
    first, second = (lambda: 1), (lambda: 2)
    tracers.register(kind, first)
    tracers.register(kind, second)
    assert tracers.make(kind) == 2
    tracers.unregister(kind, first)  # not the newest: the newest stays
    assert tracers.make(kind) == 2
    tracers.register(kind, first)
    tracers.register(kind, second)
    tracers.unregister(kind, second)  # of two, the newer
    assert tracers.make(kind) == 1
    tracers.unregister(kind, first)
    tracers.unregister(kind, second)
    assert len(registry[kind]) == before


@pytest.mark.parametrize(
    ("kind", "base"),
    [("calls", tracers.CallTracer), ("memory", tracers.MemoryTracer)],
)
def test_with_nothing_registered_there_is_one_that_does_nothing(kind, base, registry):
    registry[kind].clear()
    assert type(tracers.make(kind)) is base


def test_wrong_arguments():
    for function in (tracers.make, lambda kind: tracers.register(kind, leaf)):
        with pytest.raises(ValueError, match="'calls' and of 'memory', not of 'cpu'"):
            function("cpu")
    with pytest.raises(TypeError, match="something to call"):
        tracers.register("calls", "whence")
    with pytest.raises(ValueError, match="is not registered for 'memory'"):
        tracers.unregister("memory", leaf)


def test_the_base_class_does_nothing_at_all(path):
    tracer = tracers.CallTracer()
    assert tracer.start(None, leaf) is None
    for method in (tracer.pause, tracer.resume, tracer.stop, tracer.forget):
        assert method() is None
    assert tracer.watch_gc(True) is None
    assert list(tracer.events([], leaf, 0)) == []


def test_a_tracer_of_a_third_party(path, profiling):
    recorder = whence.record(path, include=["*"], max_depth=3, min_duration="1ms")

    def child():
        leaf()

    with recorder:
        leaf()
        thread = threading.Thread(target=child)
        thread.start()
        thread.join()
        assert recorder.events == []
    (tracer,) = profiling
    assert tracer.told == ["gc True", "start", "stop", "gc False"]
    options = tracer.options
    assert (options.include, options.max_depth) == (("*",), 3)
    assert (options.min_duration, options.c_calls) == (1_000_000, False)
    leaves = [e for e in recorder.events if e[0] == "leaf"]
    assert len(leaves) == 2
    assert len({thread for _, thread, *_ in leaves}) == 2
    assert all(0 <= start <= end for _, _, start, end in recorder.events)
    found = traced.read(path)
    assert found.calls == []  # it has not written into the recording
    assert found.reason is None


def test_it_is_paused_and_told_of_the_collector(path, profiling):
    with whence.record(path) as recorder:
        leaf()
        recorder.pause()
        recorder.pause()
        leaf()
        recorder.resume()
        recorder.resume()
        leaf()
        recorder.pause()
    expected = ["gc True", "start", "pause", "gc False", "gc True", "resume"]
    assert profiling[0].told == [*expected, "pause", "gc False", "stop", "gc False"]
    assert [e[0] for e in recorder.events].count("leaf") == 2
    with whence.record(path, overwrite=True, gc=False):
        pass
    assert profiling[1].told == ["gc False", "start", "stop", "gc False"]


def test_every_session_has_a_tracer_of_its_own(path, profiling):
    recorder = whence.record(path, overwrite=True)
    for turn in (1, 2):
        with recorder:
            for _ in range(turn):
                leaf()
        assert [e[0] for e in recorder.events].count("leaf") == turn
    assert len(profiling) == 2


def test_none_is_made_when_calls_are_not_asked_for(path, profiling):
    with whence.record(path, calls=False) as recorder:
        leaf()
    assert (profiling, recorder.events) == ([], [])


def test_the_time_of_an_enter_is_that_of_the_recording(path, registry):
    class Times(tracers.CallTracer):
        def start(self, options, enter):
            self.enter = enter

        def events(self, enters, time, end):
            return [time(ticks) for _, _, ticks in enters]

    tracer = Times()
    tracers.register("calls", lambda: tracer)
    with whence.record(path, gc=False, pack=False) as recorder:
        for _ in range(100):
            tracer.enter(1)
            whence.mark("m")
            tracer.enter(1)
    marks = [r.time for r in traced.read(path).records if r.kind == "mark"]
    times = recorder.events
    assert times == sorted(times)
    # Each mark lies between the enters around it, but for what rounding takes.
    for number, mark in enumerate(marks):
        before, after = times[2 * number : 2 * number + 2]
        assert before - 100 <= mark <= after + 100


def test_a_tracer_that_says_why_not(path, registry):
    class Refuses(tracers.CallTracer):
        def start(self, options, enter):
            return "not today"

    tracers.register("calls", Refuses)
    found = traced.record(path, lambda: whence.mark("m"))
    assert found.reason == "not today"
    assert [r.fields["name"] for r in found.records if r.kind == "mark"] == ["m"]


@pytest.mark.parametrize("method", ["start", "watch_gc", "stop", "events"])
def test_a_tracer_that_fails_leaves_no_recording_behind(path, registry, method):
    class Fails(tracers.CallTracer):
        pass

    def fail(self, *args):
        raise KeyError(method)

    setattr(Fails, method, fail)
    tracers.register("calls", Fails)
    with pytest.raises(KeyError, match=method), whence.record(path):
        pass
    registry["calls"].pop()
    assert _core.recording_status()["state"] != "on"
    assert not any("whence" in repr(c) for c in gc.callbacks)
    with whence.record(path, overwrite=True) as recorder:
        leaf()
    assert recorder.state == "idle"
    assert traced.read(path).count("leaf") == 1


def test_the_native_tracer_on_an_interpreter_nobody_has_described(run_python, tmp_path):
    """It gives a reason, once the self-test has found the layout wrong."""
    out = run_python(
        f"""
        import whence
        from whence import _core, _calls
        def leaf(): pass
        real = _core.start_calls
        _core.start_calls = lambda *args: "unknown_layout"
        with whence.record({str(tmp_path / "a.whence")!r}) as recorder:
            with whence.span("work"):
                leaf()
            recorder.pause()
            recorder.resume()
        with whence.open(recorder.path) as recording:
            print([s.name for s in recording.spans], list(recording.calls().read()))
            print(recording.info.calls)
        """
    )
    assert out == "['work'] []\nunknown_layout\n"


class History(tracers.MemoryTracer):
    """A tracer of memory, by tracemalloc."""

    def start(self, options):
        import tracemalloc

        tracemalloc.start()

    def stop(self):
        import tracemalloc

        tracemalloc.stop()

    def export_history(self, path):
        import tracemalloc

        tracemalloc.take_snapshot().dump(path)


def test_a_tracer_of_memory_of_a_third_party(tmp_path):
    import tracemalloc

    tracers.register("memory", History)
    tracer = tracers.make("memory")
    path = str(tmp_path / "history")
    assert tracer.start(None) is None
    kept = [bytes(100_000) for _ in range(10)]
    tracer.export_history(path)
    tracer.stop()
    sizes = tracemalloc.Snapshot.load(path).statistics("lineno")
    assert sizes[0].size >= 1_000_000
    assert len(kept) == 10
    assert not tracemalloc.is_tracing()
