"""Beside other tools: each works as if it were alone, or says what it lost."""

import contextlib
import cProfile
import itertools
import pstats
import sys
import threading
from pathlib import Path

import pytest

import whence
from conftest import compile_extension
from harness import runner, traced

MONITORING = sys.version_info >= (3, 12)
needs_monitoring = pytest.mark.skipif(not MONITORING, reason="it has no sys.monitoring")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.whence"


@pytest.fixture(scope="session")
def evaluates(tmp_path_factory):
    """Another tool with a function that evaluates frames."""
    return compile_extension(tmp_path_factory.mktemp("evaluates"), "evaluates")


def leaf():
    pass


def work():
    for _ in range(100):
        leaf()


# Both orders of start and of stop, and once more after that.
ORDERS = [
    ["ours", "theirs", "-theirs", "-ours"],
    ["ours", "theirs", "-ours", "-theirs"],
    ["theirs", "ours", "-ours", "-theirs"],
    ["theirs", "ours", "-theirs", "-ours"],
]
STORIES = [*ORDERS, *[a + b for a, b in itertools.product(ORDERS, ORDERS)]]


@pytest.mark.parametrize("story", STORIES, ids="".join)
def test_another_function_that_evaluates_frames(tmp_path, evaluates, story):
    """Each sees every call while it is in, whoever came first and whoever went first.

    But for one case, on 3.11: if theirs was there first and goes first, it puts back
    what it found. Then what comes after is not recorded, and the recording says so.
    """
    outcome = runner.run(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        import evaluates, whence

        def leaf(): pass

        def work():
            for _ in range(100):
                leaf()

        recorder = whence.record(sys.argv[2], pack=False, overwrite=True)
        for step in sys.argv[3:]:
            if step == "ours":
                recorder.start()
            elif step == "-ours":
                recorder.stop()
                with whence.open(recorder.path) as recording:
                    calls = recording.calls().read()
                    calls = [call for call in calls if call.function == "leaf"]
                    reason = recording.info.calls
                print("found", len(calls), reason)
            else:
                evaluates.put_in() if step == "theirs" else evaluates.take_out()
            before = evaluates.count()
            work()
            print(step, evaluates.count() - before)
        """,
        str(Path(evaluates.__file__).parent),
        str(tmp_path / "a.whence"),
        *story,
    )
    assert (outcome.status, outcome.err) == (0, "")
    lines = [line.split() for line in outcome.out.splitlines()]
    seen = [(name, int(count)) for name, count, *_ in lines]
    theirs_is_in = False
    for name, count in seen:
        if name != "found":
            theirs_is_in = {"theirs": True, "-theirs": False}.get(name, theirs_is_in)
            assert count == (101 if theirs_is_in else 0), seen
    found = [(int(n), *reason) for name, n, *reason in lines if name == "found"]
    for cycle, (count, reason) in enumerate(found):
        order = story[4 * cycle : 4 * cycle + 4]
        exact = 100 * (order.index("-ours") - order.index("ours"))
        lost = 0 if MONITORING or order != ORDERS[3] else 100
        assert (count, reason) in (
            (exact, "None"),
            (exact - lost, "hook_replaced" if lost else "None"),
        ), seen


@needs_monitoring
def test_with_all_ids_of_tools_taken_everything_else_works(path):
    taken = []
    for number in (2, 3, 4):
        if sys.monitoring.get_tool(number) is None:
            sys.monitoring.use_tool_id(number, "theirs")
            taken.append(number)

    def run():
        with whence.span("work"):
            work()

    try:
        found = traced.record(path, run, gc=True)
        assert found.reason == "tool_id_taken"
        assert found.calls == []
        assert [span.name for span in found.spans] == ["work"]
    finally:
        for number in taken:
            sys.monitoring.free_tool_id(number)
    assert traced.record(path, run).count("leaf") == 100


@needs_monitoring
@pytest.mark.parametrize("taken", [(4,), (4, 3), (3, 2)])
def test_the_first_free_id_is_taken_and_given_back(path, taken):
    get = sys.monitoring.get_tool
    for number in taken:
        sys.monitoring.use_tool_id(number, "theirs")
    try:
        (free,) = {4, 3, 2} - set(taken) if len(taken) == 2 else {3}
        with whence.record(path):
            assert [get(n) for n in (0, 1, 5)] == [None] * 3
            assert get(free) == "whence"
        assert get(free) is None
    finally:
        for number in taken:
            sys.monitoring.free_tool_id(number)


@needs_monitoring
def test_another_tool_of_monitoring_sees_what_it_saw(path):
    monitoring = sys.monitoring
    events = monitoring.events
    code, counts = leaf.__code__, []
    monitoring.use_tool_id(2, "theirs")
    try:
        monitoring.register_callback(2, events.PY_START, lambda *a: counts.append(a))
        monitoring.set_local_events(2, code, events.PY_START)
        found = traced.record(path, work)
        assert (len(counts), found.count("leaf")) == (100, 100)
        work()
        assert len(counts) == 200
    finally:
        monitoring.set_local_events(2, code, 0)
        monitoring.free_tool_id(2)


def set_trace(lines):
    def trace(frame, event, arg):
        if frame.f_code in (leaf.__code__, work.__code__):
            lines.append((event, frame.f_code.co_name, frame.f_lineno))
        return trace

    return trace


@pytest.mark.parametrize("kind", ["settrace", "setprofile"])
@pytest.mark.parametrize("first", ["theirs", "ours"])
@pytest.mark.parametrize("options", [{}, {"c_calls": True, "exceptions": True}])
def test_trace_and_profile_functions(path, kind, first, options):
    """Theirs is told the same as without us; ours has all calls."""
    get, set_ = getattr(sys, f"get{kind[3:]}"), getattr(sys, kind)
    before = get()

    def theirs(record):
        lines = []
        function = set_trace(lines)
        with contextlib.ExitStack() as stack:
            if record and first == "ours":
                stack.enter_context(record)
            set_(function)
            if record and first == "theirs":
                record.start()
            work()
            if record and first == "theirs":
                record.stop()
            assert get() is function
            set_(before)
        return lines

    try:
        alone = theirs(None)
        beside = theirs(whence.record(path, pack=False, gc=False, **options))
    finally:
        set_(before)
    assert beside == alone
    assert len(alone) >= 200
    assert traced.read(path).count("leaf") == 100


@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_cprofile(path, first):
    profile = cProfile.Profile()
    recorder = whence.record(path, pack=False, gc=False)
    order = [profile.enable, recorder.start]
    for start in order if first == "theirs" else reversed(order):
        start()
    work()
    for stop in (recorder.stop, profile.disable):
        stop()
    stats = pstats.Stats(profile).stats
    (count,) = [v[0] for k, v in stats.items() if k[2] == "leaf"]
    assert count == 100
    assert traced.read(path).count("leaf") == 100


COVERAGE = """
import sys, coverage, whence

source = '''
def leaf(n):
    if n > 200:
        return 1
    return 2

def work():
    for n in range(100):
        leaf(n)
work()
'''
path = sys.argv[2] + "/covered.py"
with open(path, "w") as file:
    file.write(source)
cover = coverage.Coverage(data_file=None, include=[path])
recorder = whence.record(sys.argv[2] + "/a.whence", pack=False)
order = sys.argv[1]
for step in order.split():
    if step == "ours":
        recorder.start()
    elif step == "theirs":
        cover.start()
    elif step == "run":
        exec(compile(source, path, "exec"), {})
    elif step == "-ours":
        recorder.stop()
    else:
        cover.stop()
lines = sorted(cover.get_data().lines(path))
with whence.open(recorder.path) as recording:
    calls = [c for c in recording.calls().read() if c.function == "leaf"]
print(lines, len(calls))
"""


@pytest.mark.parametrize("core", ["ctrace", "pytrace", "sysmon"])
@pytest.mark.parametrize(
    "order",
    [
        *("ours theirs run -theirs -ours", "ours theirs run -ours -theirs"),
        *("theirs ours run -ours -theirs", "theirs ours run -theirs -ours"),
    ],
)
def test_coverage(tmp_path, core, order):
    if core == "sysmon" and not MONITORING:
        pytest.skip("it has no sys.monitoring")
    env = {"COVERAGE_CORE": core}
    outcome = runner.run(COVERAGE, order, str(tmp_path), env=env)
    assert outcome == runner.Outcome(0, "[2, 3, 5, 7, 8, 9, 10] 100\n", "")


@pytest.mark.timeout(1800)
def test_toggles_while_64_threads_run_and_die(request, tmp_path):
    toggles = request.config.getoption("--toggles")
    outcome = runner.run(
        """
        import sys, threading, whence
        path, toggles = sys.argv[1], int(sys.argv[2])
        sys.setswitchinterval(0.0005)
        done = threading.Event()

        def leaf():
            pass

        def numbers():
            for number in range(3):
                yield number

        def lives():
            for _ in range(20):
                leaf()
                list(numbers())

        def replace():
            '''One that runs and dies after the other.'''
            while not done.is_set():
                thread = threading.Thread(target=lives)
                thread.start()
                thread.join()

        threads = [threading.Thread(target=replace) for _ in range(32)]
        for thread in threads:
            thread.start()
        recorder = whence.record(path, pack=False, overwrite=True, max_size="8MB")
        for turn in range(toggles):
            recorder.start()
            leaf()
            if turn % 3 == 0:
                recorder.pause()
                recorder.resume()
            recorder.stop()
            assert recorder.state == "idle" and recorder.reason is None
        done.set()
        for thread in threads:
            thread.join()
        print("fine")
        """,
        str(tmp_path / "a.whence"),
        str(toggles),
        timeout=900,
    )
    assert outcome == runner.Outcome(0, "fine\n", "")
    found = traced.read(tmp_path / "a.whence")
    assert found.count("leaf") >= 1


def test_threads_keep_their_exactness_while_others_toggle(path):
    """What is recorded between a start and a stop is all that happened there."""
    results = []

    def toggle():
        for turn in range(20):
            own = path.with_name(f"{turn}.whence")
            found = traced.record(own, work)
            main = [c for c in found.of("leaf") if c.thread == found.one("work").thread]
            results.append(len(main))

    thread = threading.Thread(target=toggle)
    thread.start()
    thread.join()
    assert results == [100] * 20
