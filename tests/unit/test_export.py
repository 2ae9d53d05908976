"""Which format, and how a file takes its place."""

import os
import stat
import subprocess
import sys
import types
from pathlib import Path

import pytest

import whence
from harness import exported
from reference import call_trees
from whence import export as package
from whence.export import FORMATS, ExportError, Format, choose, export

pytestmark = pytest.mark.store


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "app.whence"
    path.write_bytes(call_trees.recording([("f", "/app.py", 1)], [[0, -1]]))
    with whence.open(path) as recording:
        yield recording


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.speedscope.json", "speedscope"),
        ("a.pb.gz", "pprof"),
        ("a.collapsed", "collapsed"),
        ("b.json/a.pstats", "pstats"),
        ("A.CALLGRIND", "callgrind"),
        (b"a.pstats", "pstats"),
    ],
)
def test_the_suffix_chooses(path, name):
    assert choose(path).name == name


def test_the_name_chooses_before_the_suffix():
    assert choose("a.pstats", "pprof").name == "pprof"


def test_the_longest_suffix_wins(monkeypatch):
    assert choose("a.json").name == choose("a.json.gz").name == "chrome"
    assert choose("a.speedscope.json").name == "speedscope"
    monkeypatch.setattr(package, "FORMATS", FORMATS[::-1])
    assert choose("a.speedscope.json").name == "speedscope"


@pytest.mark.parametrize(
    "arguments", [("out.txt",), ("out",), ("a.pstats", "cprofile")]
)
def test_an_error_lists_the_formats(arguments):
    with pytest.raises(ExportError) as caught:
        choose(*arguments)
    (text,) = str(caught.value).splitlines()
    assert arguments[-1] in text
    for each in FORMATS:
        assert f"{each.name} ({', '.join(each.suffixes)})" in text


def test_the_table_is_complete():
    names = {each.name for each in FORMATS}
    others = {"perfetto", "chrome", "parquet", "torch-memory"}
    assert names == others | set(exported.FORMATS)
    suffixes = [suffix for each in FORMATS for suffix in each.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    for each in FORMATS:
        assert each.purpose
        assert each.opening.startswith(("open it ", "look into it "))


def test_writers_are_imported_when_they_are_used(run_python):
    loaded = "print(sorted(m for m in sys.modules if m.startswith('whence.export.')))"
    out = run_python(f"import sys, whence.export; {loaded}")
    assert out == "['whence.export._output']\n"
    assert run_python(f"import sys, whence; {loaded}") == "[]\n"


def test_a_file_is_its_owners_alone(recording, tmp_path):
    export(recording, tmp_path / "a.pstats")
    assert stat.S_IMODE((tmp_path / "a.pstats").stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["a.pstats", "app.whence"]


def test_what_exists_is_replaced_only_by_force(recording, tmp_path):
    out, target = tmp_path / "a.pstats", tmp_path / "target"
    out.write_text("mine")
    with pytest.raises(FileExistsError) as caught:
        export(recording, out)
    assert caught.value.filename == str(out)
    assert out.read_text() == "mine"
    export(recording, out, force=True)
    assert exported.read("pstats", out)
    # A link is replaced, not followed.
    out.unlink()
    target.write_text("theirs")
    out.symlink_to(target)
    with pytest.raises(FileExistsError):
        export(recording, out)
    export(recording, out, force=True)
    assert not out.is_symlink()
    assert target.read_text() == "theirs"
    out.unlink()
    out.symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        export(recording, out)
    export(recording, out, force=True)
    assert not (tmp_path / "nowhere").exists()


def test_what_comes_meanwhile_is_kept(recording, tmp_path, monkeypatch):
    out = tmp_path / "a.collapsed"

    def write(_, file):
        file.write(b"ours")
        out.write_text("theirs")

    monkeypatch.setattr("whence.export.collapsed.write", write)
    with pytest.raises(FileExistsError) as caught:
        export(recording, out)
    assert caught.value.filename == str(out)
    assert out.read_text() == "theirs"
    # The same on a file system without links.
    out.unlink()
    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(FileExistsError):
        export(recording, out)
    assert sorted(os.listdir(tmp_path)) == ["a.collapsed", "app.whence"]


def no_links(*_, **__):
    raise PermissionError(1, "Operation not permitted")


def test_without_links(recording, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", no_links)
    export(recording, tmp_path / "a.pstats")
    assert exported.read("pstats", tmp_path / "a.pstats")
    assert sorted(os.listdir(tmp_path)) == ["a.pstats", "app.whence"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
def test_a_failed_export_leaves_nothing_behind(error, recording, tmp_path, monkeypatch):
    def write(_, file):
        file.write(b"half")
        raise error

    monkeypatch.setattr("whence.export.pstats.write", write)
    with pytest.raises(error):
        export(recording, tmp_path / "a.pstats")
    assert os.listdir(tmp_path) == ["app.whence"]
    (tmp_path / "a.pstats").write_text("mine")
    with pytest.raises(error):
        export(recording, tmp_path / "a.pstats", force=True)
    assert (tmp_path / "a.pstats").read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["a.pstats", "app.whence"]


def test_only_regular_files_are_replaced(recording, tmp_path):
    (tmp_path / "a.pstats").mkdir()
    os.mkfifo(tmp_path / "b.pstats")
    (tmp_path / "c.pstats").symlink_to("/dev/null")
    for name in "abc":
        with pytest.raises(FileExistsError, match="not a regular file"):
            export(recording, tmp_path / f"{name}.pstats", force=True)


def test_only_recordings_are_exported(recording, tmp_path):
    path = tmp_path / "app.whence"
    with pytest.raises(TypeError, match=r"as in whence\.open\(path\), not Posix"):
        export(path, tmp_path / "a.pstats")


def test_a_recording_is_not_replaced_by_its_export(recording, tmp_path):
    before = (tmp_path / "app.whence").read_bytes()
    (tmp_path / "link").hardlink_to(tmp_path / "app.whence")
    for name in ("app.whence", "link"):
        with pytest.raises(ExportError, match="the recording itself"):
            export(recording, tmp_path / name, "pstats", force=True)
    assert (tmp_path / "app.whence").read_bytes() == before


def test_errors_name_the_file_that_was_asked_for(recording, tmp_path):
    for out in (tmp_path / "no" / "a.pstats", tmp_path / "app.whence" / "a.pstats"):
        with pytest.raises(OSError, match=str(out)) as caught:
            export(recording, out)
        assert caught.value.filename == str(out)


def test_a_closed_recording(recording, tmp_path):
    recording.close()
    with pytest.raises(ValueError, match="closed"):
        export(recording, tmp_path / "a.pstats")
    assert os.listdir(tmp_path) == ["app.whence"]


# Directories


@pytest.fixture
def tables(monkeypatch):
    """A format whose files lie in a directory."""

    def write(_, directory):
        Path(directory).mkdir()
        for name in ("calls.table", "spans.table"):
            (Path(directory) / name).write_text(name)

    module = types.SimpleNamespace(write=write)
    monkeypatch.setitem(sys.modules, "tables_of_tests", module)
    format_ = Format("tables", (".tables",), "", "", "tables_of_tests", ".table")
    monkeypatch.setattr(package, "FORMATS", (*FORMATS, format_))
    return module


def test_a_directory_takes_its_place(recording, tmp_path, tables):
    export(recording, f"{tmp_path}/a.tables/")
    assert sorted(os.listdir(tmp_path)) == ["a.tables", "app.whence"]
    assert sorted(os.listdir(tmp_path / "a.tables")) == ["calls.table", "spans.table"]
    with pytest.raises(FileExistsError):
        export(recording, tmp_path / "a.tables")
    (tmp_path / "a.tables" / "old.table").write_text("old")
    export(recording, tmp_path / "a.tables", force=True)
    assert sorted(os.listdir(tmp_path / "a.tables")) == ["calls.table", "spans.table"]
    assert sorted(os.listdir(tmp_path)) == ["a.tables", "app.whence"]


def test_no_directory_of_somebody_else_is_replaced(recording, tmp_path, tables):
    out = tmp_path / "a.tables"
    out.mkdir()
    (out / "letters.txt").write_text("dear")
    with pytest.raises(ExportError, match=r"holds more than \.table files"):
        export(recording, out, force=True)
    (out / "letters.txt").unlink()
    (out / "deeper.table").mkdir()
    with pytest.raises(ExportError, match="holds more than"):
        export(recording, out, force=True)
    (tmp_path / "b.tables").symlink_to(tmp_path)
    (tmp_path / "c.tables").write_text("file")
    for name in "bc":
        with pytest.raises(ExportError, match="not a directory"):
            export(recording, tmp_path / f"{name}.tables", force=True)
    assert (out / "deeper.table").is_dir()


def test_half_a_directory_is_removed(recording, tmp_path, tables):
    whole = tables.write

    def write(recording, directory):
        whole(recording, directory)
        raise OSError(28, "No space left on device", f"{directory}/calls.table")

    tables.write = write
    with pytest.raises(OSError, match="No space") as caught:
        export(recording, tmp_path / "a.tables")
    assert caught.value.filename == str(tmp_path / "a.tables" / "calls.table")
    assert os.listdir(tmp_path) == ["app.whence"]


def test_reading_opens_no_file_of_the_program(tmp_path):
    """Files that a recording names could be anything: a pipe would hang."""
    source = tmp_path / "app.py"
    os.mkfifo(source)
    path = tmp_path / "app.whence"
    path.write_bytes(call_trees.recording([("f", str(source), 1)], [[0, -1]]))
    program = """if True:
        import importlib.util, sys, whence
        from whence.export import FORMATS, export
        path, out, source = sys.argv[1:]
        seen, parquet = [], importlib.util.find_spec("pyarrow")
        sys.addaudithook(lambda _, arguments: seen.extend(map(str, arguments)))
        for each in FORMATS:
            here = parquet or each.name != "parquet"
            if here and each.name != "torch-memory":  # of memory, which this has not
                export(whence.open(path), out + each.suffixes[0])
        print(path in seen, source in seen)
    """
    done = subprocess.run(
        [sys.executable, "-c", program, path, tmp_path / "a", source],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "True False\n"), done.stderr
