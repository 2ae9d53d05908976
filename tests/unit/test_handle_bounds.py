"""What is shown of a handle has an end, however much a small file stands for."""

import pytest

import whence
from whence.handles import HandleTable, InlinedCall, Recorder, SourceRange


def deep(calls):
    """Make a stack of calls f0, f1 and so on, outermost first, at lines 1, 2 ..."""
    stack = None
    for number in reversed(range(calls)):
        stack = InlinedCall(f"f{number}", SourceRange("m.ex", number + 1), callee=stack)
    return stack


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A small file that stands for 4 million places: its table and handles."""
    recorder = Recorder()
    stack = deep(2000)
    parents = [
        recorder.issue(SourceRange("m.ex", 9000 + number), "op", stack)
        for number in range(2000)
    ]
    fused = recorder.derive("fused", parents)
    path = tmp_path_factory.mktemp("shared") / "small.handles"
    recorder.stop().save(path)
    assert path.stat().st_size < 100_000
    return HandleTable.load(path), parents, fused


def mark(name):
    return whence.Frame(name, "", None, kind="truncated")


def test_frames_of_a_deep_stack_are_from_both_ends():
    recorder = Recorder()
    handle = recorder.issue(SourceRange("m.ex", 99_999), "op", deep(30_000))
    frames = recorder.stop().frames(handle)
    assert len(frames) == 1002
    assert frames[501] == mark("<29,000 calls not shown>")
    rest = [frame for frame in frames if frame.kind == "handle"]
    lines = [99_999, *range(30_000, 29_500, -1), *range(500, 0, -1)]
    assert [frame.line for frame in rest] == lines
    assert (rest[0].name, rest[-1].name) == ("f29999", "<top>")


def test_a_stack_that_is_just_short_enough_is_whole():
    recorder = Recorder()
    handle = recorder.issue(SourceRange("m.ex", 99_999), "op", deep(1000))
    frames = recorder.stop().frames(handle)
    assert {frame.kind for frame in frames} == {"handle"}
    assert len(frames) == 1001


def test_frames_of_many_parents_are_those_of_the_first_hundred(shared):
    table, parents, fused = shared
    frames = table.frames(fused)
    assert len(frames) == 100 * 1002 + 1
    assert frames[-1] == mark("<more handles not shown>")
    of_calls = [f for f in frames[:-1] if f.kind == "truncated"]
    assert of_calls == [mark("<1,000 calls not shown>")] * 100
    own = [frame.line for frame in frames[:-1:1002]]
    assert own == list(range(9000, 9100))
    assert table.frames(parents[0]) == frames[:1002]


def test_a_hundred_parents_are_all_there():
    recorder = Recorder()
    parents = [recorder.issue(SourceRange("m.ex", n + 1), "op") for n in range(100)]
    fused = recorder.derive("fused", parents)
    frames = recorder.stop().frames(fused)
    assert [frame.line for frame in frames] == list(range(1, 101))


def test_explain_and_frames_leave_out_the_same(shared):
    table, _, fused = shared
    text = table.explain(fused)
    places = [frame for frame in table.frames(fused) if frame.kind == "handle"]
    assert text.count("  File ") == len(places)
    assert text.count("  ... 1,000 calls are not shown\n") == 100
    assert text.endswith("... and more, of which only 100 are shown\n")


def test_a_line_map_has_the_first_hundred_frames_of_each_line(shared):
    table, parents, fused = shared
    filename = "<many lines of handles>"
    table.line_map(filename, {1: fused, **dict(enumerate(parents, 2))})
    try:
        first = whence.generated.origins(filename, 1)
        assert len(first) == 101
        assert first[0][:3] == ("f1999", "m.ex", 9000)
        assert {frame.kind for frame in first} == {"generated", "truncated"}
        assert first[-1] == mark("<more frames not shown>")
        for line in range(2, 2002):
            assert len(whence.generated.origins(filename, line)) == 101
    finally:
        whence.generated.unregister(filename)


def test_marks_can_be_shown():
    recorder = Recorder()
    handle = recorder.issue(SourceRange("m.ex", 1), "op", deep(2000))
    filename = "<deep kernel of handles>"
    namespace = {"capture": whence.capture}
    exec(compile("def kernel():\n    return capture()\n", filename, "exec"), namespace)
    recorder.stop().line_map(filename, {2: handle})
    try:
        text = str(namespace["kernel"]())
    finally:
        whence.generated.unregister(filename)
    assert "in <more frames not shown>\n" in text
    assert "in f1999\n" in text
