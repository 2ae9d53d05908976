"""whence summary, info and doctor."""

import subprocess
import sys

import pytest

import whence
from whence.cli import _branches, main
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


def test_doctor(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out = run(capsys, "doctor")
    assert code in (0, 1)
    for word in ("cpython", "frames: ", "clock: ", "disk: ", "packing: ", "extras: "):
        assert word in out
    assert code == (1 if "!!" in out else 0)


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
