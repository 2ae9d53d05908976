"""whence summary, info and doctor."""

import asyncio
import os
import re
import subprocess
import sys

import pytest

import whence
from harness import command
from harness.walks import needs_stacks
from whence.cli import _branches, _tasks, main
from whence.cli._terminal import duration, several


def leaf():
    return sum(range(2_000))


def middle(count):
    import json

    for _ in range(count):
        leaf()
    return json.dumps({"key": [1, 2, {"inner": None}]}, indent=1)


def top():
    for _ in range(20):
        middle(50)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("summary") / "a.whence"
    with whence.record(path, include=("*test_summary.py", "*/json/*")):
        top()
    return path


def run(capsys, *arguments):
    code = main(list(map(str, arguments)))
    return code, capsys.readouterr().out


def test_the_functions_with_most_time_of_their_own_come_first(path, capsys):
    code, out = run(capsys, "summary", path)
    assert code == 0
    lines = out.splitlines()
    head = next(i for i, line in enumerate(lines) if line.endswith("  function"))
    assert "leaf (" in lines[head + 1]
    assert "1,000" in lines[head + 1]
    with whence.open(path) as recording:
        own = duration(recording.functions[0].own)
    assert lines[head + 1].split("%")[0].startswith(f"{own:>10}")


def test_as_many_functions_as_asked_for(path, capsys):
    few = run(capsys, "summary", path, "-n", "1")[1].splitlines()
    head = next(i for i, line in enumerate(few) if line.endswith("  function"))
    assert few[head + 2] == ""


def test_the_tree_shows_where_libraries_are_entered_and_no_more(path, capsys):
    tree = run(capsys, "summary", path)[1].partition("call tree")[2]
    whole = run(capsys, "summary", path, "--all")[1].partition("call tree")[2]
    assert tree.index("top (") < tree.index("middle (") < tree.index("leaf (")
    assert "iterencode" not in tree
    assert len(whole.splitlines()) >= len(tree.splitlines())


def test_branches_share_out_the_time(path):
    with whence.open(path) as recording:
        tree = recording.call_tree()
    for everything in (False, True):
        branches = _branches.choose(tree, everything=everything)
        roots = [branch for branch in branches if branch.depth == 0]
        assert sum(b.own for b in branches) == sum(b.node.total for b in roots)
        assert all(branch.own >= 0 for branch in branches)


def test_tasks_with_most_time_of_their_own_come_first(tmp_path, capsys):
    async def idle():
        await asyncio.sleep(0.05)

    async def busy(rounds):
        for _ in range(rounds):
            leaf()
            await asyncio.sleep(0)

    async def work():
        await asyncio.gather(*(busy(20) for _ in range(3)), *(idle() for _ in range(9)))

    file = tmp_path / "tasks.whence"
    with whence.record(file):
        asyncio.run(work())
    code, out = run(capsys, "summary", file)
    assert code == 0
    table = out.partition("function of tasks\n")[2].splitlines()
    assert re.fullmatch(r" *[\d.]+ [mu]?s +3  .*<locals>\.busy", table[0])
    assert any(re.search(r" 9  .*\.idle$", line) for line in table)
    with whence.open(file) as recording:
        calls = list(recording.calls().read())
        tasks = {task.id: task.function for task in recording.tasks}
        found = {each.function: each.own for each in _tasks.by_function(recording)}
    own = dict.fromkeys(found, 0)
    for call in calls:
        if call.task is not None:
            own[tasks[call.task]] += call.own
    assert found == own


def test_info(path, capsys):
    code, out = run(capsys, "info", path)
    assert code == 0
    assert "options: include=('*test_summary.py', '*/json/*')" in out
    assert "clock: " in out
    assert "1: MainThread" in out


@pytest.mark.parametrize("verb", ["summary", "info"])
@pytest.mark.parametrize("content", [None, b"", b"no recording", b"\x89WHNC\r\n\x1a"])
def test_broken_input_is_one_line(tmp_path, verb, content):
    file = tmp_path / "broken"
    if content is not None:
        file.write_bytes(content)
    command = [sys.executable, "-m", "whence", verb, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert str(file) in done.stderr


def test_what_was_cut_short_is_read_as_far_as_it_is_good(path, tmp_path, capsys):
    data = path.read_bytes()
    cut = tmp_path / "cut.whence"
    cut.write_bytes(data[: len(data) * 2 // 3])
    code, out = run(capsys, "summary", cut)
    assert code == 0
    assert "dropped" in out or "never closed" in out
    damaged = [line for line in out.splitlines() if line.startswith("damaged: ")]
    assert damaged
    code, out = run(capsys, "info", cut)
    assert code == 0
    assert [
        line for line in out.splitlines() if line.startswith("damaged: ")
    ] == damaged
    assert "damaged" not in run(capsys, "info", path)[1]


def test_much_that_is_damaged_is_told_in_few_lines(tmp_path, capsys):
    file = tmp_path / "many.whence"
    with whence.record(file, chunk_size=4096, calls=False, pack=False):
        for number in range(20_000):
            whence.counter("number", number)
    data = bytearray(file.read_bytes())
    data[4096 + 2000 :: 4096] = bytes(len(data[4096 + 2000 :: 4096]))
    file.write_bytes(data)
    told = []
    for verb in ("info", "summary", "verify"):
        _, out = run(capsys, verb, file)
        told.append([line for line in out.splitlines() if "damaged: " in line])
    assert told[0] == told[1]
    assert 2 < len(told[0]) < len(told[2])
    assert told[0][-1].endswith(" more")


@pytest.mark.parametrize(
    "verb",
    [
        *(["summary", "FILE"], ["info", "FILE"], ["verify", "FILE"]),
        *(["export", "FILE", "-o", "out.pstats"], ["recover", "FILE", "-o", "out"]),
    ],
    ids=lambda verb: verb[0],
)
def test_who_stops_reading_is_no_error(path, tmp_path, verb):
    """As of head -1; and without anybody who could read."""
    words = [str(path) if word == "FILE" else word for word in verb]
    command = [sys.executable, "-m", "whence", *words]
    for name, options in (("pipe", {}), ("none", {"preexec_fn": lambda: os.close(1)})):
        folder = tmp_path / name
        folder.mkdir()
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            command, stdout=writing, stderr=subprocess.PIPE, cwd=folder, **options
        )
        os.close(writing)
        assert (done.returncode, done.stderr) == (0, b"")
        assert len(list(folder.iterdir())) == ("-o" in verb)


def test_doctor(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out = run(capsys, "doctor")
    assert code in (0, 1)
    for word in ("cpython", "frames: ", "clock: ", "disk: ", "packing: ", "extras: "):
        assert word in out
    assert "allocators: nobody in front of them" in out
    assert re.search(r"native frames: \d+ found here, with names of ", out)
    assert code == (1 if "!!" in out else 0)


def test_doctor_says_who_else_is_there():
    env = {**os.environ, "PYTHONTRACEMALLOC": "1", "PYTHONMALLOC": "debug"}
    said = command.run("doctor", env=env).stdout
    assert "allocators: tracemalloc, debug hooks of Python in front of them" in said


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        *((0, "0 ns"), (999, "999 ns"), (999.6, "1.00 us"), (1_000, "1.00 us")),
        *((9_996, "10.0 us"), (99_960, "100 us"), (999_600, "1.00 ms")),
        *((1_234_567_890, "1.23 s"), (5e12, "5,000 s")),
    ],
)
def test_durations(nanoseconds, text):
    assert duration(nanoseconds) == text


def test_several():
    assert [several(n, "call") for n in (0, 1, 1_000)] == [
        *("0 calls", "1 call", "1,000 calls"),
    ]


def keep(kept):
    kept.append(bytes(40_000))


@needs_stacks
def test_memory_has_its_peak_what_stays_and_what_is_given_back(tmp_path, capsys):
    path, kept = tmp_path / "memory.whence", []
    with whence.record(path, calls=False, memory=True):
        for _ in range(30):
            keep(kept)
            bytes(9_000)
    out = run(capsys, "summary", path)[1]
    at = out.index("memory: at most 1.2 MB, after ")
    peak, end, churn = (
        out.index(f"blocks  {title}\n", at)
        for title in ("in use then", "in use at the end", "given back at once")
    )
    assert at < peak < end < churn
    for section in (peak, end):
        assert re.search(r"\n +1.2 MB +\d+  keep \(.*:\d+\)\n", out[section:])
    first = out[churn:].splitlines()[1]
    assert first.split()[:3] == ["271.0", "KB", "30"]
    assert "test_memory_has_its_peak" in first
    about = r"\n[\d,]+ allocations, [\d,]+ frees, [\d,]+ of earlier blocks\n"
    assert re.search(about, out[at:peak])


def test_a_recording_without_memory_says_nothing_of_it(path, capsys):
    assert "memory" not in run(capsys, "summary", path)[1]
