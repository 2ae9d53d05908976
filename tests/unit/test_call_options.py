"""What of the calls is recorded: filters, depth, short calls, C calls, exceptions."""

import contextlib
import sys
import threading
from collections import Counter

import pytest

import whence
from harness import traced

OWN = __file__


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.whence"


def made(source, filename, **names):
    """Run source under the name of a file, and return what it defines."""
    exec(compile(source, filename, "exec"), names)
    return names


LIBRARY = """
class Parser:
    def parse(self, then):
        return self._token(then)

    def _token(self, then):
        return then()

    def fail(self):
        raise KeyError

def numbers(count):
    for number in range(count):
        yield number
"""
FILES = ("/lib/one/parser.py", "/lib/two/parser.py", "/app/main.py")


def run_library():
    """Calls of three files, each from the one before."""
    parsers = [made(LIBRARY, filename)["Parser"]() for filename in FILES]
    one, two, app = parsers
    return app.parse(lambda: one.parse(lambda: two.parse(int)))


def recorded(path, **options):
    found = traced.record(path, run_library, **options)
    calls = [c for c in found.calls if c.filename in FILES]
    return Counter((c.filename, traced.last(c.function)) for c in calls), found


METHODS = ("<module>", "Parser", "parse", "_token")


@pytest.mark.parametrize(
    ("options", "files", "methods"),
    [
        ({}, FILES, METHODS),
        ({"include": "/lib/*"}, FILES[:2], METHODS),
        ({"include": ["/lib/one/*", "/app/*"]}, (FILES[0], FILES[2]), METHODS),
        ({"exclude": "*/parser.py"}, FILES[2:], METHODS),
        ({"include": "/lib/*", "exclude": ["/lib/t?o/*"]}, FILES[:1], METHODS),
        ({"include": "Parser.parse"}, FILES, ("parse",)),
        ({"include": "Parser.*", "exclude": "*._*"}, FILES, ("parse",)),
        ({"exclude": ["Parser.[_]*", "<module>"]}, FILES, ("Parser", "parse")),
        ({"include": "parse"}, (), ()),  # the whole name, not a part of it
        ({"include": "/lib/*", "exclude": "/lib/*"}, (), ()),
    ],
)
def test_include_and_exclude(path, options, files, methods):
    counts, _ = recorded(path, **options)
    assert counts == dict.fromkeys([(f, m) for f in files for m in methods], 1)


def test_the_parent_of_a_call_is_the_nearest_one_that_is_recorded(path):
    _, found = recorded(path, include=["Parser._token"])
    inner, middle, outer = found.of("_token")
    assert (inner.parent, middle.parent) == (middle.number, outer.number)
    assert (outer.parent, outer.depth, inner.depth) == (None, 0, 2)


def test_patterns_must_be_texts():
    for name in ("include", "exclude"):
        with pytest.raises(TypeError, match=f"{name} takes patterns"):
            whence.record(**{name: [1]})


def test_a_filter_is_of_one_recording(path):
    assert recorded(path, exclude="Parser.*")[0].keys() & {(FILES[0], "parse")} == set()
    assert recorded(path)[0][FILES[0], "parse"] == 1


def test_excluded_code_that_raises_and_that_yields(path):
    names = made(LIBRARY, FILES[0])

    def run():
        for _ in range(3):
            with contextlib.suppress(KeyError):
                names["Parser"]().fail()
            assert list(names["numbers"](3)) == [0, 1, 2]

    found = traced.record(path, run, exclude="/lib/*", exceptions=True)
    assert not [c for c in found.calls if c.filename == FILES[0]]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there is no sys.monitoring")
def test_excluded_code_is_told_of_once_and_then_costs_nothing(path):
    """DISABLE takes the events out of the code: its instructions are plain again.

    What the interpreter runs then is what it runs without a recording.
    """
    names = made("def work(n):\n    return n\n", FILES[0])
    work = names["work"]

    def instrumented():
        return [op for op in work.__code__._co_code_adaptive]  # noqa: C416

    for _ in range(100):
        work(1)
    plain = instrumented()
    with whence.record(path, exclude="/lib/*"):
        work(1)
        work(1)
        assert set(instrumented()[::2]) == set(plain[::2])
    with whence.record(path, overwrite=True):
        work(1)
        assert set(instrumented()[::2]) != set(plain[::2])


def dive(depth):
    return dive(depth - 1) if depth else leaf()


def leaf():
    return None


@pytest.mark.parametrize("most", [1, 2, 5, 100])
def test_max_depth_counts_from_the_frames_that_are_open(path, most):
    def run():
        dive(10)

    def record():
        return traced.record(path, run, max_depth=most)

    for above in (record, lambda: record()):
        found = above()
        # run() and lambdas of the harness's are there; below them, so many calls
        deepest = max(c.depth for c in found.calls)
        standing = sum(c.entered == "open" for c in found.calls)
        assert deepest <= standing + most - 1
        assert found.count("run") == 1
        assert found.count("dive") == min(most - 1, 11)
        assert found.count("leaf") == (1 if most >= 13 else 0)


def test_max_depth_in_other_threads_and_after_the_deep_part(path):
    def work():
        for _ in range(3):
            dive(5)

    def run():
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
        dive(1)

    found = traced.record(path, run, max_depth=2, include=[OWN])
    (worker,) = [t.id for t in found.threads if t.name == "worker"]
    mine = Counter(traced.last(c.function) for c in found.calls if c.thread == worker)
    assert mine == {"work": 1, "dive": 3}
    others = [traced.last(c.function) for c in found.calls if c.thread != worker]
    assert others[0] == "dive"


@pytest.mark.parametrize("depth", [0, -1, 1.5, "3", 2**40])
def test_a_depth_that_makes_no_sense(depth):
    with pytest.raises(ValueError, match="max_depth must be"):
        whence.record(max_depth=depth)


def test_short_calls_are_counted_exactly(path):
    def outer(count):
        for _ in range(count):
            leaf()

    def run():
        for count in (1, 10, 100):
            outer(count)
        leaf()
        dive(3)

    found = traced.record(path, run, min_duration="10s")
    assert found.count("leaf") == 113
    assert found.count("dive") == 4
    assert found.count("outer") == 3
    folded = [c for c in found.of("leaf") if c.count > 1]
    assert sorted(c.count for c in folded) == [10, 100]
    for call in folded:
        around = found.parent(call)
        assert traced.last(around.function) == "outer"
        # but for a nanosecond: each is rounded by itself
        assert abs(around.duration - around.own - call.duration) <= 2


def test_only_short_calls_that_call_nothing_and_return_are_folded(path):
    def fails():
        raise KeyError

    def numbers():
        yield 1

    def run():
        for _ in range(5):
            with contextlib.suppress(KeyError):
                fails()
            list(numbers())
            leaf()

    found = traced.record(path, run, min_duration="10s", include=[OWN])
    assert [c.left for c in found.of("fails")] == ["unwind"] * 5
    assert [c.left for c in found.of("numbers")] == ["yield", "return"] * 5
    assert found.count("leaf") == 5


def test_long_calls_are_recorded_one_by_one(path):
    def run():
        for _ in range(50):
            leaf()

    found = traced.record(path, run, min_duration=1e-9)
    assert [c.count for c in found.of("leaf")] == [1] * 50


def test_folded_calls_of_many_threads(path):
    def work():
        for _ in range(1000):
            leaf()

    def run():
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert traced.record(path, run, min_duration="10s").count("leaf") == 8000


def test_c_calls_have_names_and_nest(path):
    def key(value):
        return abs(value)

    def run():
        sorted([2, 1], key=key)
        "ab".upper()
        dict.fromkeys([1])
        sys.getrefcount(None)
        with contextlib.suppress(ValueError):
            [].index(1)

    found = traced.record(path, run, c_calls=True).here()
    outer = found.one("run")
    inside = [c for c in found.calls if c.parent == outer.number and not c.filename]
    assert [c.function for c in inside][:4] == [
        *("builtins.sorted", "str.upper", "dict.fromkeys", "sys.getrefcount"),
    ]
    index = found.one("index")
    assert (index.function, index.left) == ("list.index", "unwind")
    for call in found.of("key"):
        assert found.parent(call).function == "builtins.sorted"
    for call in found.of("abs"):
        assert traced.last(found.parent(call).function) == "key"


def test_c_calls_are_not_recorded_unless_asked_for(path):
    found = traced.record(path, lambda: sorted([2, 1], key=lambda v: len(str(v))))
    assert all(c.filename for c in found.calls)


def test_exceptions_say_where_they_are_raised_and_handled(path):
    def fails():
        raise KeyError  # raised

    def between():
        fails()

    empty = []

    def run():
        try:
            between()
        except KeyError:  # handled
            leaf()
        try:
            empty[0]
        except (IndexError, KeyError):
            leaf()

    found = traced.record(path, run, exceptions=True)
    mine = [e for e in found.exceptions if e.filename == OWN]
    first = run.__code__.co_firstlineno
    assert [(e.type, e.kind, traced.last(e.function), e.line) for e in mine] == [
        ("KeyError", "raised", "fails", fails.__code__.co_firstlineno + 1),
        ("KeyError", "handled", "run", first + 3),
        ("IndexError", "raised", "run", first + 6),
        ("IndexError", "handled", "run", first + 7),
    ]
    times = [e.time for e in mine]
    assert times == sorted(times)


def test_exceptions_are_not_recorded_unless_asked_for(path):
    def run():
        with contextlib.suppress(KeyError):
            raise KeyError

    assert traced.record(path, run).exceptions == []


def test_frames_of_whence_never_appear(path):
    def run(recorder):
        recorder.pause()
        recorder.resume()
        recorder.dump(path.with_name("copy.whence"))
        with whence.span("s"):
            whence.capture().frames
        threading.Thread(target=leaf).start()

    found = traced.record(path, run, c_calls=True, dump_on=["exception"])
    package = whence.__file__.removesuffix("__init__.py")
    assert not [c for c in found.calls if (c.filename or "").startswith(package)]


def test_frames_that_are_open_in_all_threads_appear_as_open(path):
    inside, go = threading.Barrier(4), threading.Event()

    def stay(depth):
        if depth:
            stay(depth - 1)
        else:
            inside.wait()
            go.wait()

    threads = [
        threading.Thread(target=stay, args=[depth], name=f"depth {depth}")
        for depth in (0, 10, 300)
    ]
    for thread in threads:
        thread.start()
    inside.wait()

    def run():
        go.set()
        for thread in threads:
            thread.join()

    found = traced.record(path, run)
    names = {t.id: t.name for t in found.threads}
    counts = Counter(names[c.thread] for c in found.of("stay"))
    assert counts == {"depth 0": 1, "depth 10": 11, "depth 300": 301}
    # The hook of 3.11 is not told how frames end that began without it.
    left = "gone" if sys.version_info < (3, 12) else "return"
    assert {(c.entered, c.left) for c in found.of("stay")} == {("open", left)}


def test_a_thread_that_does_nothing_meanwhile_has_its_frames_all_the_same(path):
    inside, go = threading.Event(), threading.Event()

    def asleep():
        inside.set()
        go.wait()

    thread = threading.Thread(target=asleep, name="asleep")
    thread.start()
    inside.wait()
    found = traced.record(path, leaf)
    go.set()
    thread.join()
    call = found.one("asleep")
    assert (call.entered, call.left) == ("open", "cut")


def test_frames_that_are_open_at_stop_are_cut_in_all_threads(path):
    inside, go = threading.Barrier(3), threading.Event()

    def work():
        inside.wait()
        go.wait()

    def begin():
        for _ in range(2):
            threading.Thread(target=work).start()
        inside.wait()

    found = traced.record(path, begin)
    go.set()
    assert [(c.entered, c.left) for c in found.of("work")] == [("call", "cut")] * 2
    (end,) = {c.start + c.duration for c in found.of("work")}
    assert end >= found.one("begin").start


def test_threads_that_come_later_have_their_names(path):
    def run():
        for number in range(3):
            thread = threading.Thread(target=leaf, name=f"later {number}")
            thread.start()
            thread.join()

    found = traced.record(path, run)
    threads = {t.id: t for t in found.threads}
    calls = sorted(found.of("leaf"), key=lambda call: call.start)
    mine = [threads[call.thread] for call in calls]
    assert [t.name for t in mine] == ["later 0", "later 1", "later 2"]
    assert all(t.start is not None and t.end > t.start for t in mine)
