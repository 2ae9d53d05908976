"""What is said of memory of which no history was kept: nothing that is not known."""

import re

import pytest

import whence
from harness import command, exported
from harness.command import one_line_of
from harness.walks import needs_stacks
from reference.recording import METADATA, Chunk, File, Raw, write
from whence.export import ExportError, export

pytestmark = pytest.mark.store

PATHS = {"collapsed": ".collapsed", "speedscope": ".speedscope.json", "pprof": ".pb.gz"}
KEPT = []
STATE = {"calls": False, "gc": False, "memory": True, "memory_detail": "state"}


def keep():
    KEPT.append(bytes(3_000_000))


def come_and_go():
    return len(bytearray(50_000_000))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "state.whence"
    with whence.record(path, **STATE):
        keep()
        come_and_go()
    return path


def summary(path):
    done = command.run("summary", path)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_summary_has_what_is_in_use_at_the_end(path):
    out = summary(path)
    assert re.search(r"\nmemory: 3\.\d MB in use at the end\n", out)
    assert "\nno history was kept: there is no peak\n" in out
    assert "blocks  in use at the end\n" in out
    for title in ("at most", "in use then", "given back at once", "in use before"):
        assert title not in out


def test_the_summary_has_what_was_asked_for_before(tmp_path):
    path = tmp_path / "a.whence"
    with whence.record(path, **STATE):
        keep()
        whence.memory.snapshot()
        keep()
        come_and_go()
    out = summary(path)
    assert re.search(r"\nmemory: 6\.\d MB in use at the end\n", out)
    assert re.search(r"\nin use before: 3\.\d MB after [\d.]+ [mu]?s\n", out)
    assert "at most" not in out


def test_a_pool_has_its_history_all_the_same(tmp_path):
    path = tmp_path / "a.whence"
    with whence.record(path, **STATE):
        pool = whence.memory.domain("cuda:0")
        pool.allocated(1, 700)
        pool.allocated(2, 7_000)
        pool.freed(2)
        keep()
    out = summary(path)
    about = "no history was kept: there is no peak, of pools 2 allocations, 1 free"
    assert f"\n{about}, 0 of earlier blocks\n" in out
    assert "at most" not in out
    assert "in use before" not in out
    assert "blocks  given back at once\n" in out


def test_what_a_process_could_not_tell_before_it_was_killed(run_python, tmp_path):
    path = tmp_path / "a.whence"
    program = f"import os, whence\nwhence.record({str(path)!r}, **{STATE}).start()\n"
    asked = program + "kept = bytes(3_000_000)\nwhence.memory.snapshot()\nos._exit(0)"
    run_python(asked)
    out = summary(path)
    last = r"\nmemory: 3\.\d MB in use when it was last told, after [\d.]+ [mu]?s\n"
    assert re.search(last, out)
    assert "blocks  in use when it was last told\n" in out
    path.unlink()
    run_python(program + "os._exit(0)")
    assert "\nmemory: what was in use was never told\n" in summary(path)


def test_a_run_says_what_it_has(tmp_path):
    (tmp_path / "app.py").write_text(
        "kept = bytes(3_000_000)\nlarge = bytearray(10**8)\ndel large\n"
    )
    options = "--memory", "--memory-detail=state", "-o", "a.whence"
    done = command.run("run", *options, "app.py", cwd=tmp_path)
    about = r"\n  memory: 3\.\d MB in use at the end; no history was kept\n"
    assert re.search(about, done.stderr)
    assert "at most" not in done.stderr
    assert "--metric peak" not in done.stderr
    assert "whence export a.whence -o a.speedscope.json --metric leaks\n" in done.stderr


@pytest.mark.parametrize("metric", ["peak", "allocated"])
@pytest.mark.parametrize("name", PATHS)
def test_what_is_not_known_is_not_exported(path, tmp_path, name, metric):
    out = tmp_path / f"out{PATHS[name]}"
    line = one_line_of(command.run("export", path, "-o", out, "--metric", metric))
    assert line.startswith("no history of memory was kept (memory_detail='state'), so")
    assert line.endswith("use --metric leaks, what was in use at the end")
    assert not out.exists()
    refused = pytest.raises(ExportError, match="no history of memory was kept")
    with whence.open(path) as recording, refused:
        export(recording, out, metric=metric)


@needs_stacks
@pytest.mark.parametrize("name", PATHS)
def test_what_is_in_use_at_the_end_is_exported(path, tmp_path, name):
    """Also without being asked for, if there is nothing else."""
    chosen, found = (tmp_path / f"{n}{PATHS[name]}" for n in "ab")
    with whence.open(path) as recording:
        assert export(recording, chosen, metric="leaks") == "leaks"
        with pytest.warns(UserWarning, match=r"in use at the end \(metric 'leaks'\)"):
            assert export(recording, found) == "leaks"
    assert chosen.read_bytes() == found.read_bytes()


def test_pprof_does_not_say_what_was_taken(tmp_path):
    """Each state tells of the same blocks again."""
    path, out = tmp_path / "a.whence", tmp_path / "a.pb.gz"
    with whence.record(path, **STATE):
        keep()
        whence.memory.snapshot()
    with whence.open(path) as recording:
        export(recording, out, metric="leaks")
        total = recording.memory.leaks().total
    profile = exported.pprof_file(out)
    texts = profile.string_table
    types = [texts[each.type] for each in profile.sample_type]
    assert types == ["inuse_objects", "inuse_space"]
    sums = [sum(s.value[n] for s in profile.sample) for n in range(2)]
    assert sums == [total.count, total.bytes]


def mixed(path, *details):
    """Write a recording whose detail is said anew, each with blocks that it has."""
    starts = [Raw(0x72, [100 * n, 7, detail]) for n, detail in enumerate(details)]
    records = [Raw(0x8A, [110, 16, 5_000, 1]), Raw(0x49, [120, 16])]
    records += [Raw(0x4E, [800, 1]), Raw(0xCA, [800, 1, 32, 1_000, 1, 5])]
    chunk = Chunk(2, records, thread=1, start=(1, 1), end=(900, 900))
    metadata = Chunk(1, starts, METADATA)
    path.write_bytes(write(File([metadata, chunk], end=(1_000, 1_000), count=2)))
    return path


@pytest.mark.parametrize("details", [(2, 1), (1, 3), ()])
def test_a_peak_is_that_of_the_part_that_has_a_history(tmp_path, details):
    out = summary(mixed(tmp_path / "a.whence", *details))
    about = "memory: at most 5.0 KB, after 110 ns, as far as a history was kept"
    assert f"\n{about}\n1 allocation, 1 free, 0 of earlier blocks\n" in out


def test_a_peak_of_a_part_is_exported_with_a_warning(tmp_path):
    path, out = mixed(tmp_path / "a.whence", 2, 1), tmp_path / "a.collapsed"
    warned = pytest.warns(UserWarning, match="a part of the time no history")
    with whence.open(path) as recording, warned:
        assert export(recording, out, metric="peak") == "peak"


def test_a_history_is_told_as_ever(tmp_path):
    """Whether it changed between two kinds of it does not matter."""
    out = summary(mixed(tmp_path / "a.whence", 2, 3))
    assert "\nmemory: at most 5.0 KB, after 110 ns\n" in out
    assert "\n1 allocation, 1 free, 0 of earlier blocks\n" in out
