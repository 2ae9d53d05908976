"""Generated code in recordings: what is recorded of it names its source."""

import contextlib
import gc
import signal
import subprocess
import sys
import types

import jinja2
import pytest

import whence
from harness import command
from harness.recorded import recorded
from harness.walks import needs_stacks
from reference import recording as twin
from whence import _core, _zstd, generated, handles
from whence.handles import InlinedCall, Recorder, SourceRange

SOURCE = """\
def kernel(x):
    y = [x] * 100_000
    return y

def other():
    try:
        raise ValueError
    except ValueError:
        return 1
"""
NAME = "<kernel 7>"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "generated.whence"


@pytest.fixture
def code():
    namespace = {}
    exec(compile(SOURCE, NAME, "exec"), namespace)
    yield namespace
    generated._failures.clear()
    if NAME in generated._line_maps:
        generated.unregister(NAME)


def functions(path):
    with whence.open(path) as recording:
        return {f.name: (f.filename, f.line) for f in recording.functions}


def run(path, *work, **options):
    with whence.record(path, overwrite=True, gc=False, **options):
        for each in work:
            each()


@pytest.mark.parametrize("when", ["before", "during"])
def test_functions_are_where_their_source_is(path, code, when):
    def register():
        generated.register(NAME, {2: ("model.ex", 41, "forward")})

    if when == "before":
        register()
    with whence.record(path, gc=False):
        if when == "during":
            register()
        code["kernel"](1)
        code["other"]()
    found = functions(path)
    assert found["kernel"] == ("model.ex", 41)
    assert found["other"] == (NAME, 5)  # no line of it is known


def test_stretches_hold_until_the_next(path, code):
    generated.register(NAME, [(1, ("a.ex", 1)), (4, None), (6, ("b.ex", 2))])
    run(path, lambda: code["kernel"](1), code["other"])
    found = functions(path)
    assert found["kernel"] == ("a.ex", 1)
    assert found["other"] == ("b.ex", 2)


def test_the_newest_map_counts(path, code):
    generated.register(NAME, {line: ("old.ex", line) for line in range(1, 300)})
    with whence.record(path, gc=False):
        generated.register(NAME, {2: ("new.ex", 1)})
        code["kernel"](1)
    assert functions(path)["kernel"] == ("new.ex", 1)


def test_a_map_of_many_records(path, code):
    lines = {
        line: [(f"source {line}.ex", line, f"function {n}") for n in range(40)]
        for line in range(1, 2_000)
    }
    generated.register(NAME, lines)
    run(path, lambda: code["kernel"](1))
    assert functions(path)["kernel"] == ("source 1.ex", 1)


def test_exceptions_are_where_their_source_is(path, code):
    generated.register(NAME, {7: ("model.ex", 70, "forward")})
    run(path, code["other"], exceptions=True)
    with whence.open(path) as recording:
        seen = [e for e in recording.exceptions if e.type == "ValueError"]
    raised = {(e.filename, e.line) for e in seen if e.kind == "raised"}
    assert raised == {("model.ex", 70)}
    assert (NAME, 8) in {(e.filename, e.line) for e in seen}  # handled


@needs_stacks
def test_memory_names_the_source_with_its_columns(path, code, tmp_path):
    recorder = Recorder()
    inlined = InlinedCall("forward", SourceRange("model.ex", 3, 1, 3, 7))
    handle = recorder.issue(SourceRange("layers.ex", 8, 4, 8, 9), "mul", inlined)
    recorder.stop().line_map(NAME, {2: handle})
    with recorded(path):
        kept = code["kernel"](1)
    with whence.open(path) as recording:
        (group,) = [g for g in recording.memory.leaks() if g.bytes > 700_000]
        frames = group.stack[:3]
    assert [frame.kind for frame in frames] == ["python", "generated", "generated"]
    assert frames[0][:3] == ("kernel", NAME, 2)
    assert frames[1][:6] == ("forward", "layers.ex", 8, 4, 8, 9)
    assert frames[2][:6] == ("<top>", "model.ex", 3, 1, 3, 7)
    del kept
    target = tmp_path / "out.collapsed"
    done = command.run("export", path, "-o", target, "--metric", "leaks")
    assert done.returncode == 0, done.stderr
    lines = [each for each in target.read_text().splitlines() if "kernel" in each]
    line = max(lines, key=lambda each: int(each.rpartition(" ")[2]))
    names = ["<top>", "forward", "kernel"]
    assert sorted(names, key=line.rindex) == names


def test_line_maps_survive_a_kill(path):
    program = f"""
import os, signal, whence
whence.generated.register("{NAME}", {{1: ("model.ex", 41)}})
namespace = {{}}
exec(compile("def kernel(): pass", "{NAME}", "exec"), namespace)
whence.record({str(path)!r}).start()
namespace["kernel"]()
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program])
    assert done.returncode == -signal.SIGKILL
    assert functions(path)["kernel"] == ("model.ex", 41)


class TestProviders:
    def test_they_are_asked_about_what_was_recorded_when_it_ends(self, path, code):
        asked = []

        @generated.register_provider
        def provide(filename, line):
            asked.append((filename, line))
            return [("model.ex", 100 + line)] if filename == NAME else None

        try:
            with whence.record(path, gc=False):
                code["kernel"](1)
                assert asked == []
        finally:
            generated.unregister(provide)
        assert functions(path)["kernel"] == ("model.ex", 101)
        assert {line for filename, line in asked if filename == NAME} == {1, 2, 3}

    def test_one_that_fails_does_no_harm(self, path, code):
        @generated.register_provider
        def provide(filename, line):
            raise RuntimeError(filename)

        try:
            run(path, lambda: code["kernel"](1))
        finally:
            generated.unregister(provide)
        assert functions(path)["kernel"] == (NAME, 1)

    def test_jinja2_templates_by_their_lines(self, path, tmp_path):
        (tmp_path / "page.html").write_text(
            "first\n{% macro row(x) %}\n<td>{{ x }}</td>\n{% endmacro %}\n"
            "{% block body %}\n  {{ row(1) }}\n{% endblock %}\n"
        )
        environment = jinja2.Environment(loader=jinja2.FileSystemLoader(tmp_path))
        template = environment.get_template("page.html")
        run(path, template.render)
        found = functions(path)
        page = str(tmp_path / "page.html")
        assert found["root"] == (page, 1)
        assert found["block_body"][0] == page
        assert found["block_body"][1] in (5, 6)
        macros = [place for name, place in found.items() if name.endswith("macro")]
        assert macros
        assert {(file, line in (2, 3)) for file, line in macros} == {(page, True)}


def test_a_merged_recording_has_the_maps_of_each(path, tmp_path, code):
    for number in (1, 2):
        generated.register(NAME, {2: (f"model {number}.ex", number)})
        run(tmp_path / f"{number}.whence", lambda: code["kernel"](1))
    parts = [tmp_path / "1.whence", tmp_path / "2.whence"]
    done = command.run("merge", *parts, "-o", path)
    assert done.returncode == 0, done.stderr
    with whence.open(path) as recording:
        found = [f for f in recording.functions if f.name == "kernel"]
    places = {(f.filename, f.line) for f in found}
    assert places == {("model 1.ex", 1), ("model 2.ex", 2)}


def test_handles_of_merged_recordings(path, tmp_path):
    for number in (1, 2):
        recorder = Recorder()
        recorder.issue(SourceRange(f"model {number}.ex", number), "op")
        table = handles.install(recorder.stop())
        run(tmp_path / f"{number}.whence", lambda: None)
        handles.uninstall(table)
    parts = [tmp_path / "1.whence", tmp_path / "2.whence"]
    assert command.run("merge", *parts, "-o", path).returncode == 0
    with whence.open(path) as recording:
        table = recording.handles
    assert len(table.namespaces) == 2
    assert {table[handle].range.line for handle in table} == {1, 2}


def test_a_library_that_is_half_imported_does_no_harm(path, code, monkeypatch):
    name = "torch._inductor.codecache"
    monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    run(path, lambda: code["kernel"](1))
    assert functions(path)["kernel"] == (NAME, 1)
    assert any("PyCodeCache" in failure for failure in generated.failures())


@pytest.mark.parametrize(
    ("origin", "error"),
    [
        (("a.ex", 2**70), ValueError),
        (whence.Frame(None, "a.ex", 1), TypeError),
        (whence.Frame("f", "a.ex", "1"), TypeError),
        (whence.Frame("f", "a.ex", 1, 2.5), TypeError),
    ],
)
def test_what_is_no_place_is_refused_at_once(path, code, origin, error):
    with pytest.raises(error):
        generated.register(NAME, {1: [origin]})
    run(path, lambda: code["kernel"](1))
    assert functions(path)["kernel"] == (NAME, 1)


def test_a_line_of_a_file_has_thirty_places_at_most():
    """A small file could name thousands for each of thousands of frames."""
    places = b"".join(twin.varint(n) for _ in range(1_000) for n in (1, 2, 3, 0, 0, 0))
    part = bytes([1]) + twin.varint(5) + twin.varint(1_000) + places
    metadata = [
        *(twin.Raw(0xE0, [1, b"name"]), twin.Raw(0xE0, [2, b"source.ex"])),
        *(twin.Raw(0xE0, [3, b"made"]), twin.Raw(0xC0, [9, 1, 1, 3, 1, 0])),
        twin.Raw(0xE5, [3, part]),
    ]
    file = twin.File([twin.Chunk(1, metadata, twin.METADATA)], chunk_size=16_384)
    reader = _core.Reader(twin.write(file), _zstd.unpack)
    found = reader.sources(9, 5)
    assert found == [("name", "source.ex", 2, None, None, None)] * 30
    assert reader.sources(9, 4) == []


def test_a_reader_that_a_finalizer_closes_is_read_to_the_end():
    """Objects are made while it is read, so the collector may run anything."""
    places = b"".join(twin.varint(n) for _ in range(30) for n in (1, 2, 3, 4, 5, 6))
    entries = [twin.varint(line) + bytes([30]) + places for line in range(1, 40)]
    metadata = [
        *(twin.Raw(0xE0, [1, b"name"]), twin.Raw(0xE0, [2, b"source.ex"])),
        *(twin.Raw(0xE0, [3, b"made"]), twin.Raw(0xC0, [9, 1, 1, 3, 1, 0])),
        twin.Raw(0xE5, [3, bytes([1]) + b"".join(entries)]),
    ]
    file = twin.File([twin.Chunk(1, metadata, twin.METADATA)], chunk_size=16_384)
    reader = _core.Reader(twin.write(file), _zstd.unpack)

    class Closes:
        def __init__(self):
            self.me = self

        def __del__(self):
            try:
                reader.close()
            except ValueError:  # it is being read: try again at the next collection
                Closes()

    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        Closes()
        for line in range(1, 40):
            with contextlib.suppress(ValueError):
                assert len(reader.sources(9, line)) == 30
    finally:
        gc.set_threshold(*before)
