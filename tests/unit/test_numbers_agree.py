"""Calls, total and own time of each function are the same wherever they are shown.

In the API, the summary and every format, of a program that is not made for it; and its
calls are those that cProfile counts.
"""

import re
import threading
from collections import Counter, defaultdict

import pytest

import whence
from harness import exported, runner
from harness.command import run
from harness.exported import Total
from harness.traces import Perfetto, chrome, lengths
from whence.export import export

UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


# In a process of its own: nobody else's objects go meanwhile, and few calls are open.
RECORDED = """
import sys, whence
from harness import library_program
library_program.work()  # modules are imported then, and caches full
with whence.record(sys.argv[1]):
    library_program.work_in_threads()
"""
PROFILED = """
import cProfile, sys
from harness import library_program
library_program.work()
profile = cProfile.Profile()
profile.enable()
library_program.work()
profile.disable()
for entry in profile.getstats():
    if not isinstance(entry.code, str):  # that of a function in C
        names = [entry.code.co_name, entry.code.co_filename]
        print(*names, entry.code.co_firstlineno, entry.callcount, sep="|")
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "app.whence"
    assert runner.run(RECORDED, str(path)) == runner.Outcome(0, "", "")
    return path


@pytest.fixture
def recording(path):
    with whence.open(path) as recording:
        assert len(recording.functions) > 80
        assert not recording.losses.dropped
        yield recording


@pytest.fixture
def functions(recording):
    """Calls, total and own by name, file and line, which are those of one function."""
    found = {tuple(f[:3]): Total(f.calls, f.total, f.own) for f in recording.functions}
    assert len(found) == len(recording.functions)
    return found


def add_up(calls):
    """Add up (thread, function, start, end): what is within another, that called."""
    by_thread = defaultdict(list)
    for thread, *call in calls:
        by_thread[thread].append(call)
    count, total, own = Counter(), Counter(), Counter()
    for each in by_thread.values():
        around = []
        for function, start, end in sorted(each, key=lambda call: (call[1], -call[2])):
            while around and around[-1][1] <= start:
                around.pop()
            count[function] += 1
            own[function] += end - start
            if around:
                assert end <= around[-1][1]
                own[around[-1][0]] -= end - start
            if all(outer != function for outer, _ in around):
                total[function] += end - start
            around.append((function, end))
    return {f: Total(calls, total[f], own[f]) for f, calls in count.items()}


def test_the_api(recording, functions):
    calls = list(recording.calls().read())
    rows = [(c.thread, tuple(c[:3]), c.start, c.start + c.duration) for c in calls]
    assert add_up(rows) == functions
    own = Counter()
    for call in calls:
        own[tuple(call[:3])] += call.own
    assert own == Counter({f: each.own for f, each in functions.items()})
    tree = recording.call_tree()
    count, own = Counter(), Counter()
    for node in tree:
        count[tuple(node.function[:3])] += node.calls
        own[tuple(node.function[:3])] += node.own
    assert {f: (count[f], own[f]) for f in count} == {
        f: (each.calls, each.own) for f, each in functions.items()
    }
    groups = {tuple(g.function[:3]): Total(*g[2:]) for g in tree.grouped()}
    assert groups == functions


def test_the_summary(path, recording, functions):
    done = run("summary", path, "--all", "-n", "10000")
    assert (done.returncode, done.stderr) == (0, "")
    table = done.stdout.partition("calls  function\n")[2].partition("\n\n")[0]
    rows = defaultdict(list)
    for line in table.splitlines():
        own, total, calls, place = re.fullmatch(
            r" *([\d.,]+ \w+) +[\d.]+% +([\d.,]+ \w+) +([\d,]+)  (.*)", line
        ).groups()
        rows[place].append((int(calls.replace(",", "")), nanoseconds(own, total)))
    wanted = defaultdict(list)
    for (name, file, line), each in functions.items():
        place = f"{name} ({recording.shorten(file)}:{line})"
        wanted[place].append((each.calls, pytest.approx(each[:0:-1], rel=0.006)))
    assert rows.keys() == wanted.keys()
    for place, found in rows.items():
        assert found == wanted[place], place
    calls = sum(each.calls for each in functions.values())
    assert f"{calls:,} calls, {len(functions)} functions, 2 threads" in done.stdout


def nanoseconds(*texts):
    """Read times as people get them, in three digits."""
    times = (text.replace(",", "").split() for text in texts)
    return tuple(float(number) * UNITS[unit] for number, unit in times)


@pytest.mark.parametrize("name", exported.FORMATS)
def test_formats_that_add_up(name, recording, tmp_path):
    out = tmp_path / f"app{exported.suffix(name)}"
    export(recording, out)
    assert exported.read(name, out) == exported.expected(name, recording)


def test_chrome(recording, functions, tmp_path):
    trace = chrome(recording, tmp_path / "app.json")
    calls = [e for e in trace["traceEvents"] if e.get("cat") == "call"]
    places = [(e["name"], e["args"]["file"], e["args"]["line"]) for e in calls]
    rows = zip(lengths(calls), places, strict=True)
    assert add_up([(row[0], place, *row[2:]) for row, place in rows]) == functions


def test_perfetto(recording, functions, tmp_path):
    export(recording, tmp_path / "app.pftrace")
    trace = Perfetto((tmp_path / "app.pftrace").read_bytes())
    # By what each begin refers to, not by its name, which several functions may have.
    for number, (event, function) in enumerate(
        zip(trace.events, trace.functions, strict=True)
    ):
        trace.events[number] = (*event[:2], function, *event[3:])
    calls = trace.slices(lambda track: track.HasField("thread"))
    assert add_up(calls) == functions


def test_parquet(recording, functions, tmp_path):
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    export(recording, tmp_path / "app.parquet")
    rows = parquet.read_table(tmp_path / "app.parquet" / "call.parquet").to_pylist()
    assert functions == add_up(
        (
            row["thread"],
            (row["function"], row["filename"], row["line"]),
            row["start"],
            row["start"] + row["duration"],
        )
        for row in rows
    )
    own = Counter()
    for row in rows:
        own[row["function"], row["filename"], row["line"]] += row["own"]
    assert own == Counter({f: each.own for f, each in functions.items()})
    table = parquet.read_table(tmp_path / "app.parquet" / "function.parquet")
    assert functions == {
        (row["name"], row["filename"], row["line"]): Total(
            row["calls"], row["total"], row["own"]
        )
        for row in table.to_pylist()
    }


def test_cprofile_counts_the_same_calls(recording):
    """In a thread, where there is nothing else but what makes it one."""
    counted = Counter()
    for line in runner.run(PROFILED).out.splitlines():
        *function, first, calls = line.split("|")
        counted[*function, int(first)] += int(calls)
    (other,) = [t.id for t in recording.threads if t.name != "MainThread"]
    found = Counter()
    for name, file, first, calls, *_ in recording.slice(threads=[other]).functions:
        if file != threading.__file__:
            # cProfile knows no names of what is around a function.
            found[name.rpartition(".")[2], file, first] += calls
    assert found == counted
    assert sum(counted.values()) > 20_000
