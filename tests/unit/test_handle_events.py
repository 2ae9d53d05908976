"""Work of lowered programs in recordings, under the source that it came from."""

import gc
import re
import threading
import time

import pytest

import whence
from harness import command
from harness.traced import calls_of
from reference import recording as twin
from reference import work_stories
from whence import _core, _zstd, handles
from whence.handles import InlinedCall, Recorder, SourceRange


@pytest.fixture
def path(tmp_path):
    return tmp_path / "work.whence"


@pytest.fixture
def model():
    """A table with an operation that was inlined, one that was not, and both fused."""
    recorder = Recorder(top="net.Model")
    call = InlinedCall("forward", SourceRange("model.ex", 3), "net.Layer", "layer")
    multiply = recorder.issue(SourceRange("layers.ex", 8, 4, 8, 9), "mul", call)
    divide = recorder.issue(SourceRange("layers.ex", 9, 4, 9, 9), "div", call)
    plain = recorder.issue(SourceRange("model.ex", 5), "add")
    fused = recorder.derive("fused", [multiply, divide])
    return recorder.stop(), (multiply, divide, plain, fused)


def work(handle, name="kernel", milliseconds=1):
    start = time.perf_counter_ns()
    end = start + milliseconds * 1_000_000
    while time.perf_counter_ns() < end:
        pass
    handles.event(handle, start, end, name, "jit")


def recorded(path, run, **options):
    with whence.record(path, overwrite=True, gc=False, **options):
        run()
    return whence.open(path)


def test_work_is_read_as_it_was_told(path, model):
    table, (multiply, *_) = model
    handles.install(table)

    def run():
        work(multiply)
        handles.event((table.namespace, multiply), 5, 5, "early", "gpu")

    with recorded(path, run) as recording:
        plain, named = recording.handle_events
        (thread,) = [t.id for t in recording.threads if t.id == plain.thread]
        assert plain[:5] == (None, multiply, "kernel", "jit", thread)
        assert plain.duration == 1_000_000
        assert 0 < plain.start < 10_000_000_000
        assert named[:4] == (table.namespace, multiply, "early", "gpu")
        assert named.duration == 0
        assert named.start < 0  # before the recording
        assert recording.handles == table


def test_nothing_happens_without_a_recording(model):
    handles.event(model[1][0], 1, 2, "kernel", "jit")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((-2, 1, 2, "k", "b"), ValueError),
        (("7", 1, 2, "k", "b"), TypeError),
        ((("not hexadecimal", 1), 1, 2, "k", "b"), ValueError),
        ((1, 2, 1, "k", "b"), ValueError),
        ((1, 1.5, 2, "k", "b"), TypeError),
        ((1, 1, 2, None, "b"), TypeError),
        ((1, 1, 2, "k"), TypeError),
    ],
)
def test_wrong_arguments(arguments, error):
    with pytest.raises(error):
        handles.event(*arguments)


TIMES = "must be from 0 to 2**64 - 1, in nanoseconds"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"start": -1}, f"start {TIMES}"),
        ({"start": 2**64}, f"start {TIMES}"),
        ({"start": -(10**5000)}, f"start {TIMES}"),
        ({"end": -1}, f"end {TIMES}"),
        ({"end": 2**64}, f"end {TIMES}"),
        ({"end": 10**5000}, f"end {TIMES}"),
        ({"handle": -2}, "handle must be from -1 to 2**63 - 1"),
        ({"handle": 2**63}, "handle must be from -1 to 2**63 - 1"),
        ({"handle": -(10**5000)}, "handle must be from -1 to 2**63 - 1"),
        ({"handle": ("ab" * 16, 2**63)}, "handle must be from -1 to 2**63 - 1"),
    ],
)
def test_numbers_that_can_be_none_are_one_clear_line(arguments, message):
    right = {"handle": 1, "start": 1, "end": 2, "name": "k", "backend": "b"}
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        handles.event(**right | arguments)


@pytest.mark.parametrize("which", ["start", "end"])
def test_a_time_that_is_none_is_named(which):
    right = {"handle": 1, "start": 1, "end": 2, "name": "k", "backend": "b"}
    message = rf"^{which} must be an int of time.perf_counter_ns\(\), not float$"
    with pytest.raises(TypeError, match=message):
        handles.event(**right | {which: 1.5})


def test_the_largest_times_are_taken(path):
    def run():
        handles.event(2**63 - 1, 0, 2**64 - 1, "kernel", "jit")
        handles.event(-1, 2**64 - 1, 2**64 - 1, "kernel", "jit")

    with recorded(path, run) as recording:
        assert len(list(recording.handle_events)) == 2
        assert recording.calls().read()


class TestAmongCalls:
    def test_work_is_inside_who_told_of_it_and_under_its_source(self, path, model):
        table, (multiply, _, plain, _) = model
        handles.install(table)

        def run():
            work(multiply)
            work(plain, "sum")

        with recorded(path, run) as recording:
            calls = {call.number: call for call in recording.calls().read()}
        (found,) = [c for c in calls.values() if c.function.startswith("kernel")]
        assert found.function == "kernel (jit) in top(Model).layer(Layer)::forward.mul"
        assert (found.filename, found.line) == ("layers.ex", 8)
        assert 900_000 < found.own <= found.duration <= 1_000_000
        site = calls[found.parent]
        assert site[:3] == ("net.Model", "model.ex", 3)
        assert calls[site.parent].function == "work"
        assert site.duration == found.duration
        (other,) = [c for c in calls.values() if c.function.startswith("sum")]
        assert other[:3] == ("sum (jit) in top(Model).add", "model.ex", 5)
        assert calls[other.parent].function == "work"

    def test_a_fused_kernel_names_what_it_was_made_from(self, path, model):
        table, (*_, fused) = model
        handles.install(table)
        with recorded(path, lambda: work(fused)) as recording:
            (found,) = [f for f in recording.functions if "jit" in f.name]
        name = "kernel (jit) in top(Model).layer(Layer)::forward"
        name += ", from mul at line 8, div at line 9"
        assert found[:3] == (name, "layers.ex", 8)

    def test_calls_made_by_work_are_inside_it(self, path, model):
        table, (multiply, *_) = model
        handles.install(table)

        def helper():
            return 1

        def run():
            start = time.perf_counter_ns()
            helper()
            handles.event(multiply, start, time.perf_counter_ns(), "kernel", "jit")

        with recorded(path, run) as recording:
            calls = {call.number: call for call in recording.calls().read()}
        (inside,) = [c for c in calls.values() if c.function.endswith("helper")]
        assert calls[inside.parent].function.startswith("kernel (jit)")

    def test_work_that_nobody_explains_has_its_name(self, path):
        with recorded(path, lambda: work(12345678)) as recording:
            (found,) = [f for f in recording.functions if "jit" in f.name]
        assert found[:4] == ("kernel (jit)", None, None, 1)

    def test_work_of_threads_is_in_its_thread(self, path, model):
        table, (multiply, *_) = model
        handles.install(table)

        def run():
            threads = [
                threading.Thread(target=work, args=[multiply, f"kernel {n}"])
                for n in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        with recorded(path, run) as recording:
            calls = [c for c in recording.calls().read() if "jit" in c.function]
            told = {(e.thread, e.name) for e in recording.handle_events}
        assert {(c.thread, c.function.partition(" (")[0]) for c in calls} == told
        assert len({thread for thread, _ in told}) == 4

    def test_summary_and_exports_show_it(self, path, model, tmp_path):
        table, (multiply, *_) = model
        handles.install(table)
        recorded(path, lambda: work(multiply, milliseconds=20)).close()
        shown = command.run("summary", path).stdout
        assert "kernel (jit)" in shown
        assert "layers.ex:8" in shown
        for suffix in ("collapsed", "json", "speedscope.json", "callgrind"):
            target = tmp_path / f"out.{suffix}"
            done = command.run("export", path, "-o", target)
            assert done.returncode == 0, done.stderr
            assert "kernel (jit)" in target.read_text()

    def test_what_a_file_says_of_work_is_clipped_to_the_recording(self, path):
        def run():
            since_boot = 1
            handles.event(7, since_boot, time.perf_counter_ns(), "kernel", "jit")

        with recorded(path, run) as recording:
            (call,) = [c for c in recording.calls().read() if "jit" in c.function]
        assert call.start >= 0
        assert call.duration < 10**11


class TestTables:
    def test_tables_of_before_and_of_later_are_kept(self, path):
        first, second = Recorder(), Recorder()
        one = first.issue(SourceRange("a.ex", 1), "a")
        two = second.issue(SourceRange("b.ex", 2), "b")
        before = handles.install(first.stop())

        def run():
            handles.install(second.stop())  # and it dies at once

        with recorded(path, run) as recording:
            kept = recording.handles
        del before
        gc.collect()
        assert kept[one].kind == "a"
        assert kept[two].kind == "b"

    def test_a_recording_without_handles(self, path):
        with recorded(path, lambda: None) as recording:
            assert len(recording.handles) == 0
            assert list(recording.handle_events) == []

    def test_a_table_that_fills_many_records(self, path):
        recorder = Recorder()
        last = [
            recorder.issue(SourceRange(f"file {n}.ex", n + 1), f"op {n}")
            for n in range(5_000)
        ][-1]
        table = handles.install(recorder.stop())
        with recorded(path, lambda: None) as recording:
            assert recording.handles[last] == table[last]
            assert len(recording.handles) == 5_000

    def test_a_table_that_grew_is_kept_as_it_is_now(self, path):
        recorder = Recorder()
        recorder.issue(None, "a")
        early = handles.install(recorder.stop())

        def run():
            recorder.issue(None, "b")
            handles.install(recorder.stop())

        with recorded(path, run) as recording:
            assert len(recording.handles) == 2
        del early

    def test_of_a_table_that_grows_only_what_is_new_is_kept(self, path):
        """A compiler installs what its recorder has after each compilation."""
        recorder = Recorder(top="net.Model")
        layer = InlinedCall("forward", SourceRange("model.ex", 3), "net.Layer", "layer")
        issued, sizes, tables = [], [], []

        def run():
            for number in range(200):
                place = SourceRange("model.ex", number + 1)
                issued.extend(recorder.issue(place, "op", layer) for _ in range(50))
                tables[:] = [handles.install(recorder.stop())]
                sizes.append(path.stat().st_size)
            handles.install(handles.HandleTable.merge(recorder.stop()))
            fused = recorder.derive("fused", [issued[0], issued[-1]])
            tables[:] = [handles.install(recorder.stop())]
            work(fused)

        with recorded(path, run, pack=False) as recording:
            assert recording.losses.names == 0
            assert recording.handles == tables[0]
            (call,) = [c for c in recording.calls().read() if "jit" in c.function]
        assert call.function == (
            "kernel (jit) in top(Model).layer(Layer)::forward, "
            "from op at line 1, op at line 200"
        )
        # Linear, by a wide margin: all of it each time would be a hundred times this.
        assert sizes[-1] - sizes[0] < 2_000_000

    def test_a_loaded_table_is_kept_once(self, path, tmp_path, model):
        model[0].save(tmp_path / "a.handles")
        table = handles.HandleTable.load(tmp_path / "a.handles")

        def run():
            for _ in range(3_000):
                handles.install(table)

        with recorded(path, run, max_size="1MB") as recording:
            assert recording.losses.names == 0
            assert recording.handles == table

    def test_the_next_recording_has_all_of_it_again(self, path, model):
        handles.install(model[0])
        for _ in range(2):
            with recorded(path, lambda: handles.install(model[0])) as recording:
                assert recording.handles == model[0]

    def test_a_table_without_room_leaves_room_for_names(self, path):
        recorder = Recorder()
        issued = [
            recorder.issue(SourceRange(f"file {n}.ex", n + 1), f"op {n}")
            for n in range(100_000)
        ]
        large = handles.install(recorder.stop())
        small = [Recorder() for _ in range(2_000)]
        for each in small:
            for n in range(30):
                each.issue(SourceRange(f"other {n}.ex", n + 1), f"op {n}")
        kept = []

        def run():
            kept.extend(handles.install(each.stop()) for each in small)
            work(issued[7])

        with recorded(path, run, max_size="1MB") as recording:
            info, losses = recording.info, recording.losses
            functions = {str(f.name).split(".")[-1] for f in recording.functions}
            (event,) = recording.handle_events
            namespaces = recording.handles.namespaces
        assert info.handles == "limit"
        assert losses.names > 0
        assert {"run", "kernel (jit)"} <= functions
        assert event.name == "kernel"
        assert large.namespace not in namespaces
        assert 0 < len(namespaces) < len(small)
        text = command.run("summary", path).stdout
        assert "tables of handles are missing" in text


def test_native_code_tells_of_work(path, pool, model):
    table, (multiply, *_) = model
    handles.install(table)

    def run():
        now = time.perf_counter_ns()
        assert pool.work(multiply, now - 1_000, now, None)
        assert pool.work(multiply, now - 1_000, now, table.namespace)
        assert not pool.work(multiply, now - 1_000, now, "no namespace")

    with recorded(path, run) as recording:
        events = list(recording.handle_events)
        losses = recording.losses
    wanted = (multiply, "kernel", "test backend")
    assert [e[1:4] for e in events] == [wanted] * 4
    assert [e.namespace for e in events] == [None] * 2 + [table.namespace] * 2
    assert {e.duration for e in events} == {1_000}
    assert losses.produced == losses.recorded


def test_work_that_there_is_no_room_for_is_shown_by_its_name():
    """A file may have more to say of its work than a reader keeps."""
    data = work_stories.table()
    strings = [twin.Raw(0xE0, [n, f"op {n}".encode()]) for n in range(1, 4)]
    metadata = [*strings, twin.Raw(0xE4, [7, data]), twin.Raw(0x2A, [1_000])]
    events = [
        twin.Raw(0xC2, [2_000, 1, 2**40 + n, 1 + n % 3, 0, 0]) for n in range(900)
    ]
    chunks = [twin.Chunk(1, metadata, twin.METADATA), twin.Chunk(2, events, thread=1)]
    file = twin.File(chunks, chunk_size=32_768, end=(3_000, 3_000))
    calls = calls_of(_core.Reader(twin.write(file), _zstd.unpack))
    assert len(calls) == 900
    assert {call[0].partition(" (")[0] for call in calls} == {"op 1", "op 2", "op 3"}


def test_a_large_table_is_kept_whole(path):
    recorder = Recorder()
    ranges = [SourceRange("model.ex", line) for line in range(1, 5001)]
    issued = [recorder.issue(ranges[n % 5000], f"op{n % 50}") for n in range(400_000)]
    table = recorder.stop()
    handles.install(table)
    with recorded(path, lambda: work(issued[123_456])) as recording:
        assert len(recording.handles) == len(issued)
        assert recording.losses.names == 0
        (call,) = [c for c in recording.calls().read() if c.function == "kernel (jit)"]
        assert (call.filename, call.line) == ("model.ex", 123_456 % 5000 + 1)
