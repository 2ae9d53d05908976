"""Which numbers an export has: chosen, or found to be all there is."""

import shutil
import warnings

import pytest

import whence
from harness import command, exported
from harness import exported_memory as read
from harness.command import one_line_of
from harness.walks import IS_FAST, needs_stacks
from whence._recording import has_memory
from whence.cli import main
from whence.export import FORMATS, ExportError, export

pytestmark = pytest.mark.store

PATHS = ("collapsed", "speedscope", "pprof")
KEPT = []


def record(path, **options):
    with whence.record(path, **options):
        KEPT.append(bytes(100_000))
    return path


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("metrics")
    return {
        "calls": record(folder / "calls.whence"),
        "memory": record(folder / "memory.whence", calls=False, memory=True),
        "both": record(folder / "both.whence", memory=True),
    }


def run(*arguments):
    return command.run("export", *arguments)


@pytest.mark.parametrize("name", PATHS)
def test_time_is_what_is_exported_of_both(name, paths, tmp_path):
    out = tmp_path / f"a{exported.suffix(name)}"
    with whence.open(paths["both"]) as recording:
        assert export(recording, out) == "own"
        assert exported.read(name, out) == exported.expected(name, recording)


@needs_stacks
@pytest.mark.parametrize("name", PATHS)
def test_memory_is_what_is_exported_where_there_is_nothing_else(name, paths, tmp_path):
    out = tmp_path / f"a{exported.suffix(name)}"
    with whence.open(paths["memory"]) as recording:
        with pytest.warns(UserWarning, match="no calls in it: the numbers are bytes"):
            assert export(recording, out) == "peak"
        chosen = tmp_path / f"b{exported.suffix(name)}"
        assert export(recording, chosen, metric="peak") == "peak"
    assert out.read_bytes() == chosen.read_bytes()


def test_the_command_line_says_so(paths, tmp_path):
    done = run(paths["memory"], "-o", tmp_path / "a.collapsed")
    assert done.returncode == 0
    assert "--countname=bytes" in done.stdout
    first, *more = done.stderr.splitlines()
    assert first.startswith("whence: there are no calls in it: the numbers are bytes")
    expected = [] if IS_FAST else ["memory was not recorded as asked for: no_stacks"]
    assert more == [f"whence: {line}" for line in expected]


def test_calls_where_they_are_asked_for(paths, tmp_path):
    """Even if there are none: the file is empty, as it was asked for."""
    with whence.open(paths["memory"]) as recording:
        assert export(recording, tmp_path / "a.collapsed", metric="own") == "own"
    assert (tmp_path / "a.collapsed").read_bytes() == b""
    with whence.open(paths["both"]) as recording:
        assert export(recording, tmp_path / "a.pb.gz", metric="calls") == "calls"
        profile = exported.pprof_file(tmp_path / "a.pb.gz")
        shown = profile.string_table[profile.default_sample_type]
        assert shown == "calls"
        out = tmp_path / "a.speedscope.json"
        assert export(recording, out, metric="calls") == "calls"
        profile, *_ = exported.speedscope_file(out)["profiles"]
        assert profile["unit"] == "none"
        calls = sum(function.calls for function in recording.functions)
        assert sum(profile["weights"]) == calls


@pytest.mark.parametrize("metric", read.METRICS)
@pytest.mark.parametrize("name", PATHS)
def test_a_recording_without_memory_is_refused(name, metric, paths, tmp_path):
    out = tmp_path / f"a{exported.suffix(name)}"
    with (
        whence.open(paths["calls"]) as recording,
        pytest.raises(ExportError, match="there is no memory in it; whence run --memo"),
    ):
        export(recording, out, metric=metric)
    assert not out.exists()


@pytest.mark.parametrize(
    ("recording", "options", "message"),
    [
        ("memory", ["-o", "a.pstats"], "there are no calls in it, and pstats holds"),
        ("memory", ["-o", "a.callgrind"], "there are no calls in it, and callgrind"),
        ("memory", ["-o", "a.pstats", "--metric", "peak"], "pstats has no choice of"),
        ("memory", ["-o", "a.callgrind", "--metric", "leaks"], "callgrind has no cho"),
        ("calls", ["-o", "a.torch.json"], "there is no memory in it; whence run"),
        ("both", ["-o", "a.pstats", "--limit", "5"], "pstats has no limit: leave 5 "),
        ("both", ["-o", "a.pftrace", "--limit", "0"], "the limit must be a number fr"),
        ("both", ["-o", "a.torch.json", "--limit=-1"], "the limit must be a number fr"),
        ("both", ["-o", "a.torch.json", "--limit=2000000"], "the limit must be a num"),
        ("both", ["-o", "a.torch.json", "--limit=many"], "--limit must be a number, "),
    ],
)
def test_what_cannot_be_done_is_one_line(paths, recording, options, message, tmp_path):
    done = run(paths[recording], *options[:1], tmp_path / options[1], *options[2:])
    assert one_line_of(done).startswith(message)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def merged(paths, tmp_path):
    for name in ("memory", "calls"):
        shutil.copy(paths[name], tmp_path)
    files = [str(tmp_path / f"{name}.whence") for name in ("memory", "calls")]
    again = tmp_path / "again.whence"
    record(again, calls=False, memory=True)
    out = tmp_path / "merged.whence"
    assert main(["merge", *files, str(again), "-o", str(out)]) == 0
    with whence.open(out) as recording:
        yield recording


def each_process(merged):
    return {p.id: merged.slice(processes=[p.id]) for p in merged.processes}


def test_memory_of_several_processes(merged, tmp_path):
    for suffix in (".collapsed", ".speedscope.json", ".pb.gz"):
        with pytest.raises(ExportError, match="memory is that of one process: choose"):
            export(merged, tmp_path / f"a{suffix}", metric="leaks")
    with pytest.raises(ExportError, match="memory is that of one process: choose"):
        export(merged, tmp_path / "a.torch.json")
    chosen = next(p for p in each_process(merged).values() if has_memory(p))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without stacks there is one
        export(chosen, tmp_path / "a.collapsed", metric="leaks")
    total = chosen.memory.leaks().total.bytes
    assert sum(read.collapsed(tmp_path / "a.collapsed").values()) == total


def test_tables_and_timelines_have_each_process(merged, tmp_path):
    pytest.importorskip("pyarrow")
    export(merged, tmp_path / "a.parquet")
    sql = 'select process, sum(size) from @alloc where "end" is null group by 1'
    found = dict(read.query(tmp_path / "a.parquet", sql))
    parts = each_process(merged).items()
    wanted = {id_: part.memory.leaks().total.bytes for id_, part in parts}
    assert found == {id_: size for id_, size in wanted.items() if size}
    assert len(found) == 2


def test_formats_that_have_a_choice():
    assert {each.name for each in FORMATS if each.metrics} == set(PATHS)
    limited = {each.name for each in FORMATS if each.limit}
    assert limited == {"perfetto", "torch-memory"}
