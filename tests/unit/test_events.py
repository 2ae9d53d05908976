"""Spans, counters, marks, collections and threads, from Python and from C."""

import asyncio
import gc
import math
import threading
import time
import weakref

import pytest

import whence

pytestmark = pytest.mark.store


@pytest.fixture
def recorded(tmp_path):
    """Call a function in a recording, and open that."""
    opened = []

    def record(function, **options):
        path = tmp_path / f"{len(opened)}.whence"
        with whence.record(path, **{"gc": False, **options}, calls=False):
            function()
        opened.append(whence.open(path))
        return opened[-1]

    yield record
    for recording in opened:
        recording.close()


class TestSpans:
    def test_have_names_times_and_tags(self, recorded):
        def program():
            with whence.span("outer", user="Zoë", tries=3, share=0.5, last=None):
                time.sleep(0.01)
                with whence.span("inner", good=True, bad=False):
                    pass

        inner, outer = recorded(program).spans
        assert (inner.name, outer.name) == ("inner", "outer")
        assert outer.tags == {"user": "Zoë", "tries": 3, "share": 0.5, "last": None}
        assert inner.tags == {"good": True, "bad": False}
        assert outer.duration >= max(10e6, inner.duration)
        assert outer.start <= inner.start
        assert inner.start + inner.duration <= outer.start + outer.duration
        assert not outer.error
        assert not outer.open

    def test_tags_run_no_code_of_the_program(self, recorded):
        class Loud:
            def __repr__(self):
                raise AssertionError

            __str__ = __hash__ = __bool__ = __len__ = __repr__

        class Number(int):
            def __int__(self):
                raise AssertionError

            __index__ = __repr__ = __str__ = __int__

        def program():
            with whence.span("x", loud=Loud(), number=Number(7), huge=2**80, raw=b"b"):
                pass

        (span,) = recorded(program).spans
        tags = span.tags
        assert tags["number"] == 7
        assert (tags["huge"], tags["raw"]) == ("<int>", "<bytes>")
        assert tags["loud"].startswith("<")

    def test_tags_are_bounded(self, recorded):
        def program():
            many = {f"tag{n}": "é" * 5000 for n in range(100)}
            with whence.span("x" * 10_000, **many):
                pass

        (span,) = recorded(program, chunk_size=4096).spans
        assert span.name == "x" * 10_000
        assert span.tags
        assert all(value == "é" * 256 for value in span.tags.values())

    def test_keep_no_object_of_the_program(self, recorded):
        class Target:
            pass

        target = Target()
        watch = weakref.ref(target)

        def program():
            nonlocal target
            with whence.span("x", target=target):
                del target
                assert watch() is None

        recorded(program)

    def test_left_by_an_exception_say_so_and_let_it_pass(self, recorded):
        def program():
            with pytest.raises(LookupError), whence.span("failing"):
                raise LookupError
            with whence.span("fine"):
                pass

        failing, fine = recorded(program).spans
        assert (failing.error, fine.error) == (True, False)

    def test_of_tasks_interleave(self, recorded):
        async def task(name, first, second):
            with whence.span(name):
                await asyncio.sleep(first)
            await asyncio.sleep(second)

        async def both():
            await asyncio.gather(task("long", 0.05, 0), task("short", 0.01, 0.02))

        short, long = recorded(lambda: asyncio.run(both())).spans
        assert (short.name, long.name) == ("short", "long")
        assert long.start <= short.start
        assert long.duration > short.duration

    def test_end_on_other_threads(self, recorded, rude):
        def program():
            span = whence.span("handed over")
            span.__enter__()
            thread = threading.Thread(target=span.__exit__, args=[None] * 3)
            thread.start()
            thread.join()
            rude.span_across_threads()

        recording = recorded(program)
        main = next(t.id for t in recording.threads if t.name == "MainThread")
        for span in recording.spans:
            assert (span.name, span.thread, span.open) == ("handed over", main, False)
        assert len(list(recording.spans)) == 2

    def test_whose_begin_the_ring_has_taken_are_whole(self, recorded):
        def program():
            with whence.span("long", tag="kept"):
                for number in range(50_000):
                    whence.counter("noise", number)

        recording = recorded(program, max_size=20 * 4096, chunk_size=4096)
        (span,) = recording.spans
        assert (span.name, span.tags, span.open) == ("long", {"tag": "kept"}, False)
        assert span.duration > 1_000_000
        assert recording.losses.dropped["ring"] > 10_000

    def test_decorate_functions_of_every_kind(self, recorded):
        @whence.span("plain", tag=1)
        def plain(value):
            return value

        @whence.span("generator")
        def generator():
            yield 1
            return (yield 2)

        @whence.span("coroutine")
        async def coroutine():
            await asyncio.sleep(0.01)
            return 3

        @whence.span("async generator")
        async def async_generator():
            yield 4
            await asyncio.sleep(0)
            yield 5

        async def run():
            return await coroutine(), [item async for item in async_generator()]

        def program():
            assert plain(plain(7)) == 7
            assert list(generator()) == [1, 2]
            assert asyncio.run(run()) == (3, [4, 5])

        names = [span.name for span in recorded(program).spans]
        assert names == ["plain", "plain", "generator", "coroutine", "async generator"]
        assert plain.__name__ == "plain"

    def test_entered_again_while_open_are_one(self, recorded):
        def program():
            span = whence.span("again")
            with span, span:
                pass
            with span:
                pass

        assert [span.name for span in recorded(program).spans] == ["again", "again"]

    def test_take_a_name_and_tags(self):
        for wrong in ((), (1,), ("a", "b"), (None,)):
            with pytest.raises(TypeError, match="a name, a str, and tags by keyword"):
                whence.span(*wrong)
        assert repr(whence.span("load", name="x")) == "whence.span('load')"
        span = whence.span("unused")
        assert span.__exit__(None, None, None) is False

    @pytest.mark.parametrize("tags", [{}, {"tag": "x" * 100}])
    def test_without_memory_measure_nothing_and_raise_nothing(self, rude, tags):
        """Every allocation that a span makes may fail."""

        def measured():
            with whence.span("x", **tags):
                return 1

        for point in range(10):
            rude.fail_allocations(point, point + 1)
            try:
                result = measured()
            except MemoryError:  # of the interpreter's own, for the keywords
                result = 1
            finally:
                rude.allow_allocations()
            assert result == 1
        rude.fail_allocations(0, 1000)
        try:
            span = whence.span("x")
        finally:
            rude.allow_allocations()
        assert repr(span) == "whence.span(None)"
        with span, span:
            pass

    def test_whose_name_is_no_plain_str_make_no_cycle(self):
        class Name(str):
            __slots__ = ("__weakref__", "span")

        name = Name("x")
        name.span = whence.span(name)
        watch = weakref.ref(name)
        del name
        assert watch() is None


def refuse_what_is_no_number():
    for wrong in ("1", None, [], 1j):
        with pytest.raises(TypeError, match="must be a number"):
            whence.counter("value", wrong)


def test_counters_take_numbers(recorded):
    refuse_what_is_no_number()  # whether anything is recorded or not
    values = [0, -1, 2**63 - 1, -(2**63), 2**70, 10**400, -(10**400), 0.1, math.inf]
    values += [True, -0.0, 1e-300]

    def program():
        for value in values:
            whence.counter("value", value)
        whence.counter("nan", math.nan)
        refuse_what_is_no_number()
        with pytest.raises(TypeError, match="a name must be a str"):
            whence.counter(1, 1)
        with pytest.raises(TypeError, match="a name and a value"):
            whence.counter("value")

    *found, nan = recorded(program).counters
    expected = [*values[:4], 2.0**70, math.inf, -math.inf, *values[7:]]
    assert [counter.value for counter in found] == expected
    assert math.isnan(nan.value)
    assert {counter.name for counter in found} == {"value"}


def test_names_may_be_anything(recorded):
    names = ["", "plain", "Zoë", "日本語", "\udcff lone", "\0", "a\nb", "x" * 100_000]
    names += ["\U0001f600", "\x1b[31m"]

    def program():
        for name in names:
            whence.mark(name)
        with pytest.raises(TypeError, match="a name must be a str, not bytes"):
            whence.mark(b"bytes")

    recording = recorded(program)
    assert [r.fields["name"] for r in recording if r.kind == "mark"] == names


def test_collections_have_a_generation_and_what_they_found(recorded):
    def program():
        for _ in range(10):
            cycle = []
            cycle.append(cycle)
        del cycle
        gc.collect()
        gc.collect(0)

    recording = recorded(program, gc=True)
    full, young = [c for c in recording.gc if c.generation != 1][:2]
    assert (full.generation, young.generation) == (2, 0)
    assert full.collected >= 10
    assert full.duration > 0
    assert young.start >= full.start + full.duration
    assert not any("whence" in repr(callback) for callback in gc.callbacks)


def test_collections_are_left_out_if_told(recorded):
    assert list(recorded(gc.collect, gc=False).gc) == []


class TestThreads:
    def test_have_names_starts_and_ends(self, recorded):
        ready, go = threading.Event(), threading.Event()

        def older():
            ready.set()
            go.wait()
            threading.current_thread().name = "renamed"

        before = threading.Thread(target=older, name="older")
        before.start()
        ready.wait()

        def program():
            new = threading.Thread(target=whence.mark, args=["x"], name="new")
            quiet = threading.Thread(target=int, name="quiet")
            for thread in (new, quiet):
                thread.start()
                thread.join()

        recording = recorded(program)
        go.set()
        before.join()
        threads = {thread.name: thread for thread in recording.threads}
        assert set(threads) == {"MainThread", "older", "new", "quiet"}
        assert threads["older"].start is threads["older"].end is None
        assert 0 < threads["new"].start < threads["new"].end
        assert threads["new"].end <= threads["quiet"].start < threads["quiet"].end
        assert len({thread.id for thread in threads.values()}) == 4
        (mark,) = [r for r in recording if r.kind == "mark"]
        assert mark.thread == threads["new"].id

    def test_tell_a_name_that_they_were_given_later(self, recorded):
        def rename():
            threading.current_thread().name = "later"

        def program():
            thread = threading.Thread(target=rename, name="first")
            thread.start()
            thread.join()

        assert [t.name for t in recorded(program).threads] == ["MainThread", "later"]

    def test_show_no_frame_of_ours_and_run_as_before(self, recorded):
        stacks = []

        def program():
            thread = threading.Thread(target=lambda: stacks.append(whence.capture()))
            thread.start()
            thread.join()

        before = threading.Thread._bootstrap
        program()
        recorded(program)
        first, second = ([f.name for f in stack.frames] for stack in stacks)
        assert first == second
        assert threading.Thread._bootstrap is before

    def test_that_write_after_their_end_are_the_same(self, recorded):
        class Late:
            def __del__(self):
                whence.mark("late")
                with whence.span("late"):
                    pass

        def work(local):
            local.late = Late()
            with whence.span("early"):
                whence.mark("early")

        def program():
            for _ in range(3):
                thread = threading.Thread(target=work, args=[threading.local()])
                thread.start()
                thread.join()

        recording = recorded(program)
        assert len(recording.threads) == 4
        spans = [(s.thread, s.name, s.open) for s in recording.spans]
        assert sorted(spans) == sorted(
            (thread.id, name, False)
            for thread in recording.threads[1:]
            for name in ("early", "late")
        )
        numbers = [
            (r.thread, r.fields["span"]) for r in recording if r.kind == "span_begin"
        ]
        assert len(set(numbers)) == len(numbers) == 6

    def test_many_short_ones_share_their_space(self, recorded):
        def program():
            for _ in range(300):
                thread = threading.Thread(target=whence.mark, args=["x"])
                thread.start()
                thread.join()

        recording = recorded(program, pack=False)
        assert len(recording.threads) == 301
        assert all(thread.end for thread in recording.threads[1:])
        assert recording.info.size < 10 * 2**20

    def test_a_hook_that_somebody_else_has_put_in_stays(self, recorded, monkeypatch):
        inner = threading.Thread._bootstrap

        def program():
            ours = threading.Thread._bootstrap

            def theirs(self):
                return ours(self)

            monkeypatch.setattr(threading.Thread, "_bootstrap", theirs)

        recorded(program)
        assert threading.Thread._bootstrap is not inner
        done = []
        thread = threading.Thread(target=done.append, args=[1])
        thread.start()
        thread.join()
        assert done == [1]


def test_everything_from_native_code(recorded, rude):
    recording = recorded(rude.record_everything)
    (span,) = recording.spans
    assert (span.name, span.error) == ("job", True)
    assert [counter.value for counter in recording.counters] == [-7, 0.25]
    (collection,) = recording.gc
    assert (collection.generation, collection.collected) == (1, 20)
    assert collection.uncollectable == 3
    assert [r.fields["name"] for r in recording if r.kind == "mark"] == ["half way"]
    thread = next(t for t in recording.threads if t.name == "native worker")
    assert thread.end is not None
    assert span.thread == thread.id


def test_without_a_recording_nothing_happens(rude):
    assert rude.record_everything() is False
    with whence.span("x", tag=1):
        whence.mark("x")
        whence.counter("x", 1)
