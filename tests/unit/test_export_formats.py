"""Each format on its own, through what its own tools and schemas say."""

import os
import re
import shutil
import subprocess
import time

import pytest

import whence
from harness import exported
from reference import call_trees
from whence.export import export

pytestmark = pytest.mark.store

FUNCTIONS = [
    ("main", "/app/main.py", 1),
    ("Class.method", "/app/lib.py", 12),
    ("Class.method", "/app/lib.py", 40),  # another one of that name
    ("main.<locals>.<lambda>", "/app/main.py", 7),
    ("list.append", None, 0),
]


@pytest.fixture
def make(tmp_path):
    """Export what some threads do, in a format; the path of the file."""

    def make(name, *threads, functions=FUNCTIONS):
        path = tmp_path / "app.whence"
        path.write_bytes(call_trees.recording(functions, threads))
        out = tmp_path / f"app{exported.suffix(name)}"
        with whence.open(path) as recording:
            export(recording, out, force=True)
            assert exported.read(name, out) == exported.expected(name, recording)
        return out

    return make


@pytest.mark.parametrize("name", exported.FORMATS)
def test_random_programs(name, make, rng):
    for _ in range(8 if name == "callgrind" else 40):
        threads = [
            list(call_trees.steps_of(call_trees.random_trees(rng, len(FUNCTIONS))))
            for _ in range(rng.randint(1, 3))
        ]
        make(name, *threads)


# main calls method, which calls main again and appends
STEPS = [0, 1, 0, 4, -1, -1, -1, 3, -1, -1]


def test_collapsed_lines(make):
    lines = make("collapsed", STEPS).read_text().splitlines()
    assert lines == [
        "main (/app/main.py:1) 30",
        "main (/app/main.py:1);Class.method (/app/lib.py:12) 20",
        "main (/app/main.py:1);Class.method (/app/lib.py:12);main (/app/main.py:1) 20",
        "main (/app/main.py:1);Class.method (/app/lib.py:12);main (/app/main.py:1);"
        "list.append 10",
        "main (/app/main.py:1);main.<locals>.<lambda> (/app/main.py:7) 10",
    ]


@pytest.mark.parametrize("ci", ["", "true"])
def test_in_ci_a_checker_that_is_missing_is_a_failure(monkeypatch, tmp_path, ci):
    monkeypatch.setenv("CI", ci)
    exported.needs("what is there", there=True)
    end = pytest.fail.Exception if ci else pytest.skip.Exception
    with pytest.raises(end, match="no such tool: tools/install-format-checkers"):
        exported.needs("such tool", there=False)
    # The same of what installs them, where nothing can be installed.
    for name in ("npm", "apt-get", "id"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "tools").mkdir()
    script = exported.ROOT / "tools" / "install-format-checkers"
    copy = shutil.copy(script, tmp_path / "tools")
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [copy], env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert "not installed: npm install speedscope stackvis" in done.stderr
    assert done.returncode == bool(ci)


def test_collapsed_is_read_by_stackvis(make, rng):
    stackvis = exported.PACKAGES / "stackvis" / "cmd" / "stackvis"
    there = stackvis.exists() and shutil.which("node") is not None
    exported.needs("stackvis", there=there)
    trees = call_trees.random_trees(rng, len(FUNCTIONS), 300)
    out = make("collapsed", call_trees.steps_of(trees))
    done = subprocess.run(
        ["node", stackvis, "collapsed", "collapsed"],
        input=out.read_bytes(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert sorted(done.stdout.splitlines()) == sorted(out.read_bytes().splitlines())


def test_speedscope_keeps_to_its_schema(make):
    exported.needs("schema of speedscope", there=exported.SCHEMA.exists())
    pytest.importorskip("jsonschema")
    loaded = exported.speedscope_file(make("speedscope", STEPS, [0, -1]))
    assert loaded["exporter"] == f"whence@{whence.__version__}"
    assert loaded["name"] == "app"
    titles = [profile["name"] for profile in loaded["profiles"]]
    assert titles == ["all threads", "thread (1)", "thread (2)"]
    assert {profile["unit"] for profile in loaded["profiles"]} == {"nanoseconds"}
    assert {"name": "list.append"} in loaded["shared"]["frames"]


def test_pprof_says_what_its_numbers_are(make, tmp_path):
    out = make("pprof", STEPS)
    profile = exported.pprof_file(out)
    text = profile.string_table
    types = [(text[t.type], text[t.unit]) for t in profile.sample_type]
    assert types == [("calls", "count"), ("time", "nanoseconds")]
    assert (text[profile.period_type.type], profile.period) == ("time", 1)
    assert text[profile.default_sample_type] == "time"
    assert [text[comment] for comment in profile.comment] == ["app"]
    with whence.open(tmp_path / "app.whence") as recording:
        info = recording.info
    assert profile.time_nanos == round(info.start.timestamp() * 1e9)
    assert profile.duration_nanos == info.duration == 100
    lines = {location.line[0].line for location in profile.location}
    assert lines == {0, 1, 7, 12}


@pytest.mark.parametrize(
    ("start", "end", "begins", "lasts"),
    [(20, 50, 20, 30), (None, 30, 0, 30), (40, None, 40, 60), (-5, 500, 0, 100)],
)
def test_pprof_of_a_part_says_when_that_was(make, tmp_path, start, end, begins, lasts):
    make("pprof", STEPS)
    out = tmp_path / "part.pb.gz"
    with whence.open(tmp_path / "app.whence") as recording:
        export(recording.slice(start, end), out)
        whole = round(recording.info.start.timestamp() * 1e9)
    profile = exported.pprof_file(out)
    assert (profile.time_nanos, profile.duration_nanos) == (whole + begins, lasts)


def test_pprof_has_no_time_of_its_own(make):
    data = make("pprof", STEPS).read_bytes()
    assert data[3:8] == bytes(5)  # no name of a file, no time
    time.sleep(1.1)
    assert make("pprof", STEPS).read_bytes() == data


def test_pprof_is_read_by_go(make):
    """pprof itself would take <module> for a template of C++ in some fields."""
    exported.needs("go", there=shutil.which("go") is not None)
    functions = [("<module>", "/app/main.py", 1), ("f.<locals>.<lambda>", "/a.py", 2)]
    out = make("pprof", [0, 1, -1, -1], functions=functions)
    done = subprocess.run(
        ["go", "tool", "pprof", "-top", "-unit=ns", out],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[-2:]]
    assert sorted((row[0], row[3], row[-1]) for row in rows) == [
        ("10ns", "10ns", "f.<locals>.<lambda>"),
        ("20ns", "30ns", "<module>"),
    ]


def test_callgrind_totals_of_recursion(make):
    out = make("callgrind", STEPS)
    assert exported.program_total(out) == 90
    found = exported.callgrind(out)
    assert found["/app/main.py:main"] == (2, 90, 50)
    assert found["/app/lib.py:Class.method"] == (1, 50, 20)
    assert found["???:list.append"] == (1, 10, 10)


def test_callgrind_tells_functions_of_one_name_apart(make):
    found = exported.callgrind(make("callgrind", [0, 1, 2, -1, -1, -1]))
    assert found["/app/lib.py:Class.method (line 12)"] == (1, 30, 20)
    assert found["/app/lib.py:Class.method (line 40)"] == (1, 10, 10)


def test_callgrind_writes_names_once(make):
    text = make("callgrind", [*STEPS, *STEPS]).read_text()
    assert len(re.findall("Class.method", text)) == 1
    assert len(re.findall("/app/main.py", text)) == 1
    lines = text.splitlines()
    assert lines[:2] == ["# callgrind format", "version: 1"]
    assert "positions: line" in lines
    assert "events: ns" in lines


def test_protobuf_numbers():
    from whence.export import _protobuf

    assert _protobuf.varint(0) == b"\0"
    assert _protobuf.varint(300) == b"\xac\x02"
    assert _protobuf.varint(-1) == b"\xff" * 9 + b"\x01"
    assert _protobuf.number(1, 0) == b""
    assert _protobuf.text(2, "ü") == b"\x12\x02\xc3\xbc"
    assert _protobuf.packed(3, [1, 300]) == b"\x1a\x03\x01\xac\x02"
