"""Behaviours 73, 74 and 90 to 94 of a complete tracer: what people and tools read.

Each test carries its number, and one checks that none is missing.
"""

import asyncio
import contextlib
import gc
import gzip
import itertools
import json
import re
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

import pytest

import whence
from harness import traced
from harness.command import one_line_of, run
from harness.traces import Perfetto, chrome, lengths
from reference import call_stories, call_trees
from reference import recording as recording_twin
from whence import _zstd
from whence._recording import start_of
from whence.cli import main
from whence.export import ExportError, export

ODD_NAMES = [
    *("\ud800 lone", "a\x00b", 'quo"te\\', "emoji \N{SNAKE}", "a;b c", "\x1b[31m"),
    *("line\nbreak", "\udcff bytes", "\u2028", "</script>", "é" * 300, " "),
]


def test_every_behaviour_has_a_test_with_its_number():
    found = re.findall(r"^def test_(\d\d)_", Path(__file__).read_text(), re.MULTILINE)
    assert {int(n) for n in found} == {73, 74, *range(90, 95)}


def leaf(number):
    return sorted([number, 2, 1])


def recursive(depth):
    return recursive(depth - 1) if depth else leaf(3)


def numbers(count):
    try:
        for number in range(count):
            yield leaf(number)
    finally:
        leaf(0)


def fail(depth):
    if depth:
        fail(depth - 1)
    raise LookupError


async def job(count):
    for number in range(count):
        with whence.span("job", number=number):
            list(numbers(2))
            await asyncio.sleep(0)


async def jobs():
    await asyncio.gather(*(job(5) for _ in range(4)))


def work():
    """Generators left early, exceptions, recursion, tasks, collections."""
    for number in range(20):
        with whence.span("round", number=number):
            recursive(number % 7)
            next(numbers(3))
            list(numbers(3))
            with contextlib.suppress(LookupError):
                fail(number % 5)
            whence.counter("rounds", number)
    gc.collect()
    asyncio.run(jobs())
    gc.collect()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A recording of all that happens in real programs, in many small chunks."""
    path = tmp_path_factory.mktemp("reading") / "a.whence"
    threads = [threading.Thread(target=work, name=f"worker-{n}") for n in range(3)]
    with whence.record(path, c_calls=True, chunk_size=4096):
        for thread in threads:
            thread.start()
        work()
        for thread in threads:
            thread.join()
    return path


@pytest.fixture
def recording(path):
    with whence.open(path) as recording:
        yield recording


def test_73_names_for_people_are_function_trimmed_file_and_line(recording, tmp_path):
    """Where a name holds the file, that is trimmed; a field for the file has all."""
    code = recursive.__code__
    place = recording.shorten(code.co_filename)
    assert place != code.co_filename
    shown = f"recursive ({place}:{code.co_firstlineno})"
    summary = run("summary", recording.info.path, "-n", 1000).stdout
    assert re.search(rf"  {re.escape(shown)}$", summary, re.MULTILINE)
    assert re.search(r"  builtins\.sorted$", summary, re.MULTILINE)
    assert code.co_filename not in summary
    target = tmp_path / "a.collapsed"
    export(recording, target)
    frames = set(re.split(r";| \d+\n", target.read_text()))
    assert {shown, "builtins.sorted"} <= frames
    events = chrome(recording, tmp_path / "a.json")["traceEvents"]
    full = {"file": code.co_filename, "line": code.co_firstlineno}
    calls = [e for e in events if e["name"] == "recursive"]
    assert [e["args"] for e in calls] == [full] * len(calls) != []
    assert all("args" not in e for e in events if e["name"] == "builtins.sorted")


def test_74_the_longest_folder_of_the_import_path_is_trimmed(tmp_path):
    package = tmp_path / "outer" / "inner" / "package"
    package.mkdir(parents=True)
    (package / "module.py").write_text("def work():\n    pass\nwork()\n")
    folders = [tmp_path, tmp_path / "outer" / "inner", tmp_path / "outer"]
    program = f"import sys; sys.path[:0] = {list(map(str, folders))}\n"
    program += "import whence\nwith whence.record('a.whence'): import package.module"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    whole = str(package / "module.py")
    with whence.open(tmp_path / "a.whence") as recording:
        assert recording.shorten(whole) == "package/module.py"
        assert recording.shorten(str(tmp_path / "outer" / "x.py")) == "x.py"
        assert recording.shorten(str(tmp_path / "outer2.py")) == "outer2.py"
        assert recording.shorten("/else/where.py") == "/else/where.py"
    summary = run("summary", tmp_path / "a.whence", "-n", 1000).stdout
    assert "work (package/module.py:1)" in summary
    assert whole not in summary


def test_90_chrome_traces_say_what_they_are_of(recording, tmp_path):
    trace = chrome(recording, tmp_path / "a.json")
    packed = tmp_path / "b.json.gz"
    export(recording, packed)
    assert packed.read_bytes()[:2] == b"\x1f\x8b"
    assert json.loads(gzip.decompress(packed.read_bytes())) == trace
    info = recording.info
    assert trace["schemaVersion"] == 1
    assert trace["trace_id"] == info.file_id
    assert trace["otherData"] == {
        "program": info.program,
        "python": info.python,
        "whence": info.whence,
        "pid": info.pid,
    }
    base = trace["baseTimeNanoseconds"]
    first = min(start for _, _, start, _ in lengths(trace["traceEvents"]))
    wall = (base + first) / 1e9
    begun = info.start.timestamp()
    assert begun <= wall <= begun + info.duration / 1e9
    calls = [e for e in trace["traceEvents"] if e.get("cat") == "call"]
    assert {e["ph"] for e in calls} == {"X"}
    found = Counter((name, end - start) for _, name, start, end in lengths(calls))
    told = recording.calls().read()
    assert found == Counter((call.function, call.duration) for call in told)


def test_90_chrome_traces_are_utf8_json_whatever_the_names_are(tmp_path):
    functions = [(name, f"/{name}.py", n) for n, name in enumerate(ODD_NAMES, 1)]
    functions += [(f"c {name}", None, 0) for name in ODD_NAMES]
    steps = [step for n in range(len(functions)) for step in (n, call_trees.LEAVE)]
    path = tmp_path / "a.whence"
    path.write_bytes(call_trees.recording(functions, [steps], program="\udcff;\x00"))
    target = tmp_path / "a.json"
    with whence.open(path) as recording:
        export(recording, target)
    text = target.read_bytes().decode("utf-8")  # strictly
    assert not re.search("[\x00-\x09\x0b-\x1f]", text)
    events = json.loads(text)["traceEvents"]
    names = [e["name"] for e in events if e["ph"] == "X"]
    assert len(names) == len(functions)
    "".join(names).encode()
    assert {'quo"te\\', "emoji \N{SNAKE}", "c a;b c", "é" * 300} <= set(names)


def test_90_names_of_spans_counters_and_threads_are_as_safe(tmp_path):
    path, target = tmp_path / "a.whence", tmp_path / "a.json"
    with whence.record(path, calls=False):
        for name in ODD_NAMES:
            with whence.span(name, **{name: name}):
                whence.counter(name, 1)
            thread = threading.Thread(target=len, args=[()], name=name)
            thread.start()
            thread.join()
    with whence.open(path) as recording:
        export(recording, target)
    text = target.read_bytes().decode("utf-8")
    events = json.loads(text)["traceEvents"]
    assert sum(e.get("cat") == "span" for e in events) == len(ODD_NAMES)
    json.dumps(events, ensure_ascii=False).encode()


def partial_overlap(slices):
    """Return two slices of one row that overlap without one being in the other.

    ``slices`` are (row, name, start, end) in the order of a file. Those that begin
    together are taken in this order, as most readers do: the one around comes first.
    """
    open_ = {}
    for found in sorted(slices, key=lambda each: each[2]):
        row, _, start, end = found
        stack = open_.setdefault(row, [])
        while stack and stack[-1][3] <= start:
            stack.pop()
        if stack and stack[-1][3] < end:
            return stack[-1], found
        stack.append(found)
    return None


def test_91_the_checker_finds_what_overlaps():
    a, b, c = (1, "a", 0, 5), (1, "b", 3, 8), (2, "c", 3, 8)
    assert partial_overlap([a, b]) == (a, b)
    assert partial_overlap([a, c]) is None
    assert partial_overlap([(1, "inner", 0, 2), (1, "outer", 0, 5)]) is not None
    assert partial_overlap([(1, "outer", 0, 5), (1, "inner", 0, 2)]) is None


def parts(recording, rng):
    """The whole, and parts of it that begin and end anywhere."""
    yield recording
    threads = [thread.id for thread in recording.threads]
    for _ in range(12):
        moments = [rng.randrange(recording.info.duration) for _ in range(2)]
        chosen = rng.choice([None, rng.sample(threads, 2)])
        yield recording.slice(*sorted(moments), threads=chosen)


def test_91_chrome_slices_of_one_row_nest(recording, tmp_path, rng):
    for number, part in enumerate(parts(recording, rng)):
        trace = chrome(part, tmp_path / f"{number}.json")
        slices = lengths(trace["traceEvents"])
        assert partial_overlap(slices) is None
        kinds = {e.get("cat") for e in trace["traceEvents"] if e["ph"] == "X"}
        assert number or kinds == {"call", "span", "gc"}


def test_91_perfetto_slices_of_one_track_nest(recording, tmp_path, rng):
    for number, part in enumerate(parts(recording, rng)):
        target = tmp_path / f"{number}.pftrace"
        export(part, target)
        trace = Perfetto(target.read_bytes())
        slices = list(trace.slices(lambda _: True))  # ends meet their begins
        begins_first = sorted(slices, key=lambda each: (each[2], -each[3]))
        assert partial_overlap(begins_first) is None
        start = start_of(part)
        told = Counter((name, a - start, b - start) for _, name, a, b in slices)
        for call in part.calls().read():
            told[call.function, call.start, call.start + call.duration] -= 1
        left = +told
        assert {name for name, *_ in left} <= {
            *("job", "round", "generation 0", "generation 1", "generation 2"),
        }
        assert not -told


def test_91_slices_nest_whatever_a_file_says(tmp_path, rng):
    """Also where short calls were counted together, or records make no sense."""
    folded = 0
    for number in range(60):
        nonsense = rng.random() < 0.5
        file = call_stories.nonsense(rng) if nonsense else call_stories.story(rng)[0]
        path, target = tmp_path / f"{number}.whence", tmp_path / f"{number}.pftrace"
        path.write_bytes(recording_twin.write(file))
        with whence.open(path) as recording:
            part = recording.slice(rng.choice([None, 20, 200]))
            folded += sum(call.count > 1 for call in part.calls().read())
            trace = chrome(part, target.with_suffix(".json"))
            assert partial_overlap(lengths(trace["traceEvents"])) is None, number
            export(part, target)
            slices = Perfetto(target.read_bytes()).slices(lambda _: True)
            begins_first = sorted(slices, key=lambda each: (each[2], -each[3]))
            assert partial_overlap(begins_first) is None, number
    assert folded


@pytest.fixture
def odd_tree(tmp_path, rng):
    """A recording whose names have all the separators."""
    functions = [(name, f"/{name}.py", n) for n, name in enumerate(ODD_NAMES, 1)]
    functions += [("len;x 3", None, 0)]
    trees = call_trees.random_trees(rng, len(functions), 200)
    path = tmp_path / "odd.whence"
    steps = list(call_trees.steps_of(trees))
    path.write_bytes(call_trees.recording(functions, [steps]))
    with whence.open(path) as recording:
        yield recording


@pytest.mark.parametrize("metric", [None, "own", "calls"])
def test_92_collapsed_lines_are_paths_and_a_number(odd_tree, tmp_path, metric):
    target = tmp_path / "a.collapsed"
    export(odd_tree, target, metric=metric)
    expected = Counter()
    calls = list(odd_tree.calls().read())
    places = {(call.thread, call.number): call for call in calls}
    for call in calls:
        depth, around = 1, call
        while around := places.get((call.thread, around.parent)):
            depth += 1
        expected[depth] += call.count if metric == "calls" else call.own
    found = Counter()
    lines = target.read_text().split("\n")
    assert lines.pop() == ""
    for line in lines:
        stack, number = re.fullmatch(r"(.*) ([1-9]\d*)", line).groups()
        found[len(stack.split(";"))] += int(number)
    assert found == +expected


def test_92_a_metric_that_is_not_there_is_refused(odd_tree, tmp_path):
    target = tmp_path / "a.collapsed"
    for metric in ("total", "", "own "):
        with pytest.raises(ValueError, match="choose own, calls"):
            export(odd_tree, target, metric=metric)
    for name in ("perfetto", "chrome", "parquet", "torch-memory", "pstats"):
        with pytest.raises(ExportError, match=f"{name} has no choice of metric"):
            export(odd_tree, target, name, metric="calls")
    assert not target.exists()
    path = odd_tree.info.path
    done = run("export", path, "-o", target, "--metric", "x")
    listed = "choose own, calls, peak, leaks or allocated"
    assert one_line_of(done) == f"collapsed has no metric 'x': {listed}"
    done = run("export", path, "-o", tmp_path / "a.pstats", "--metric", "own")
    assert one_line_of(done).startswith("pstats has no choice of metric")
    done = run("export", path, "-o", target, "--metric", "calls")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--countname=calls" in done.stdout


def groups_one_by_one(calls, callers):
    """Group calls by a function and its callers, without a tree.

    Time counts once: not for a call that is inside another one of its group.
    """
    places = {(call.thread, call.number): call for call in calls}
    sums = {}
    for call in calls:
        path = [call]
        while around := places.get((call.thread, path[-1].parent)):
            path.append(around)
        names = [each[:3] for each in path]
        keys = [tuple(names[n : n + callers + 1]) for n in range(len(names))]
        old = sums.get(keys[0], (0, 0, 0))
        total = 0 if keys[0] in keys[1:] else call.duration
        sums[keys[0]] = old[0] + call.count, old[1] + total, old[2] + call.own
    return sums


@pytest.mark.parametrize("callers", [0, 1, 2, 5, 100])
def test_93_groups_are_those_of_the_calls_one_by_one(recording, odd_tree, callers):
    for each in (recording, odd_tree):
        groups = each.call_tree().grouped(callers)
        found = {
            (group.function[:3], *(f[:3] for f in group.callers)): tuple(group[2:])
            for group in groups
        }
        assert len(found) == len(groups)
        assert max(len(group.callers) for group in groups) <= callers
        assert found == groups_one_by_one(list(each.calls().read()), callers)
        assert groups == sorted(groups, key=lambda group: -group.own)


def test_93_without_callers_groups_are_the_functions(recording):
    tree = recording.call_tree()
    assert tree.grouped() == tree.grouped(callers=0)
    assert [group.function for group in tree.grouped()] == recording.functions
    for group in tree.grouped():
        assert group[2:] == group.function[3:]
    for wrong in (-1, 101, 1.5, "1", None, True):
        with pytest.raises(ValueError, match="callers must be a number from 0 to 100"):
            tree.grouped(wrong)


def test_93_the_summary_shows_callers(recording, capsys):
    path = recording.info.path
    assert main(["summary", path, "--callers", "1", "-n", "1000"]) == 0
    table = capsys.readouterr().out.partition("call tree")[0]
    assert re.search(r"  leaf \(.*\) < numbers \(.*\)$", table, re.MULTILINE)
    assert re.search(r"  recursive \(.*\) < recursive \(.*\)$", table, re.MULTILINE)
    done = run("summary", path, "--callers=-1")
    assert one_line_of(done) == "--callers must be a number from 0 to 100, not -1"


@pytest.fixture
def slowly(monkeypatch):
    """Let the unpacking of a chunk take longer than the time there is."""

    def after(chunks):
        counter, unpack = itertools.count(), _zstd.unpack

        def slow(packed, size, *is_cut):
            if next(counter) == chunks - 1:
                time.sleep(2.2)
            return unpack(packed, size, *is_cut)

        monkeypatch.setattr(_zstd, "unpack", slow)

    return after


LIMIT = 2  # seconds, less than a chunk takes that is slow


def columns(tree):
    return [(n.function[:3], n.calls, n.total, n.own) for n in tree]


@pytest.fixture
def one_thread(tmp_path):
    """One that works, and one whose frames are all that is ever said of it."""
    path, over = tmp_path / "one.whence", threading.Event()
    waiting = threading.Thread(target=over.wait)
    waiting.start()
    with whence.record(path, chunk_size=4096) as recorder:
        for _ in range(10):
            work()
            recorder.pause()
            recorder.resume()
    over.set()
    waiting.join()
    with whence.open(path) as recording:
        yield recording


@pytest.mark.parametrize("chunks", [1, 3])
def test_94_what_was_read_when_the_time_was_over_is_the_beginning(
    one_thread, slowly, chunks
):
    slowly(chunks)
    tree = one_thread.call_tree(timeout=LIMIT)
    assert tree.complete is False
    assert 0 < tree.until < one_thread.info.duration
    until = one_thread.slice(end=tree.until).call_tree()
    assert columns(tree) == columns(until) != []
    whole = one_thread.call_tree(timeout=60)
    assert (whole.complete, whole.until) == (True, None)
    assert sum(node.calls for node in whole) > sum(node.calls for node in tree)


def test_94_all_that_ended_before_that_time_is_there(recording, slowly):
    """Of several threads, some were read further than all of them."""
    everything = list(recording.calls().read())
    slowly(9)
    part = recording.slice(timeout=LIMIT)
    tree = part.call_tree()
    assert not tree.complete
    slowly(9)
    with pytest.warns(UserWarning, match="only a part of the recording was read, up"):
        calls = list(part.calls().read())
    traced.check_nesting(calls)
    ends = {(c.thread, c.number): c.start + c.duration for c in calls}
    for call in everything:
        end = call.start + call.duration
        if end < tree.until:
            assert ends[call.thread, call.number] == end
    assert len(calls) == sum(node.calls for node in tree) < len(everything)


def test_94_streams_end_with_a_warning(recording, path):
    part = recording.slice(timeout="1ns")
    for stream in (part.spans, part.gc, part.counters, part.exceptions):
        with pytest.warns(UserWarning, match="only a part of the recording was read"):
            assert list(stream) == []
    with pytest.warns(UserWarning, match="only a part of the recording was read"):
        calls = part.calls().read()
    # Of calls, it is known which were open when the recording began.
    assert {call.entered for call in calls} <= {"open"}
    pyarrow = pytest.importorskip("pyarrow")
    with pytest.warns(UserWarning, match="only a part of the recording was read"):
        assert pyarrow.table(part.calls()).num_rows == len(calls)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(recording.slice(timeout=60).spans) == list(recording.spans)


@pytest.mark.parametrize("wrong", [0, -1, "0s", "soon", "", float("nan"), True, [], {}])
def test_94_a_time_limit_that_is_none_is_refused(recording, wrong):
    for read in (recording.call_tree, recording.slice):
        with pytest.raises(
            ValueError, match=r"^timeout must be seconds or a text like"
        ):
            read(timeout=wrong)


def test_94_the_command_line_says_that_a_part_was_read(path, tmp_path):
    done = run("summary", path, "--timeout", "1ns")
    line = "whence: only a part of the recording was read, up to 0.0"
    assert done.returncode == 0
    assert done.stderr.startswith(line)
    assert len(done.stderr.splitlines()) == 1
    for suffix in ("json", "pftrace", "pstats", "speedscope.json", "collapsed"):
        target = tmp_path / f"a.{suffix}"
        done = run("export", path, "-o", target, "--timeout", "1ns")
        assert done.returncode == 0
        assert done.stderr.startswith(line)
        assert len(done.stderr.splitlines()) == 1
        assert target.exists()
    done = run("summary", path, "--timeout", "1h")
    assert (done.returncode, done.stderr) == (0, "")
    for verb in (["summary", path], ["export", path, "-o", tmp_path / "b.json"]):
        for text in ("0", "x", "-1s"):
            said = one_line_of(run(*verb, f"--timeout={text}"))
            assert said == (
                f"--timeout must be seconds or a text like '30s', not {text!r}"
            )
