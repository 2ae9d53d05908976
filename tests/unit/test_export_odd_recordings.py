"""Recordings that are empty, deep, hostile or nonsense export like others."""

import json
import pstats
import random
import warnings

import pytest

import whence
from harness import exported
from reference import call_stories, call_trees
from reference import recording as twin
from whence._tree import CallTree
from whence.export import _names, _paths, export

pytestmark = pytest.mark.store

HOSTILE = [
    *("a;b", "a b 12", "line\nbreak", "tab\tnul\0", "\x1b[31mred", "\ud800 lone"),
    *("", " ", "(1) two", "fn=(3) x", "calls=1 2", "12 34", "# comment", '"quoted"'),
    *("\u202eleft", "\u2028", "größe 🐍", "+5", "*", "</script>", "a" * 70_000),
]


def write(path, data):
    path.write_bytes(data)
    return path


def exports(path):
    """Export in every format; read each back by another's tool."""
    for name in exported.FORMATS:
        out = path.with_name(f"app{exported.suffix(name)}")
        with whence.open(path) as recording:
            export(recording, out, force=True)
        yield name, out


@pytest.mark.parametrize("steps", [[], [[]], None], ids=["threads", "calls", "all"])
def test_nothing_to_export(tmp_path, steps):
    path = tmp_path / "app.whence"
    data = (
        twin.write(twin.File([])) if steps is None else call_trees.recording([], steps)
    )
    write(path, data)
    for name, out in exports(path):
        if name == "pstats":
            (key,) = pstats.Stats(str(out)).stats
            assert key == ("~", 0, "<no calls>")
            assert "0 function calls" in printed(out)
        else:
            assert exported.read(name, out) == {}


def printed(path):
    import io

    text = io.StringIO()
    pstats.Stats(str(path), stream=text).print_stats().print_callers()
    return text.getvalue()


def test_hostile_names(tmp_path):
    """No name breaks out of its place, and none is lost."""
    functions = [(text, text or "x", n) for n, text in enumerate(HOSTILE, 1)]
    functions += [(text, None, 0) for text in HOSTILE]
    trees = [(n, [((n * 7) % len(functions), [])]) for n in range(len(functions))]
    path = tmp_path / "app.whence"
    write(path, call_trees.recording(functions, [call_trees.steps_of(trees)]))
    for name, out in exports(path):
        with whence.open(path) as recording:
            own = sum(f.own for f in recording.functions)
            calls = sum(f.calls for f in recording.functions)
        found = exported.read(name, out)
        assert sum(total.own for total in found.values()) == own
        if name not in ("speedscope", "collapsed"):
            assert sum(total.calls for total in found.values()) == calls
        texts = [
            part for key in found for part in ([key] if isinstance(key, str) else key)
        ]
        texts = [text for text in texts if isinstance(text, str)]
        assert all(text.isprintable() for text in texts)
        assert any("\\ud800 lone" in text for text in texts)
        assert any("line\\nbreak" in text for text in texts)
        assert any("größe 🐍" in text for text in texts)
        if name == "pstats":
            assert "größe 🐍" in printed(out)


def test_names_that_were_lost(tmp_path):
    functions = [(None, "/app.py", 3), (None, None, 0), ("known", "/app.py", -5)]
    path = tmp_path / "app.whence"
    write(path, call_trees.recording(functions, [[0, 1, 2, -1, -1, -1]]))
    for name, out in exports(path):
        found = exported.read(name, out)
        assert len(found) == 3, name
        assert any("<unknown>" in key for key in found), name


DEEP = 300_000


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    """Three functions that call each other in turn."""
    functions = [(f"f{n}", "/app.py", n) for n in range(1, 4)]
    steps = [n % 3 for n in range(DEEP)] + [call_trees.LEAVE] * DEEP
    path = tmp_path_factory.mktemp("deep") / "app.whence"
    return write(path, call_trees.recording(functions, [steps]))


def test_deep_recursion(deep):
    with whence.open(deep) as recording:
        tree = recording.call_tree()
        assert len(tree) == DEEP
        wanted = {name: exported.expected(name, recording) for name in exported.FORMATS}
    for name, out in exports(deep):
        found = exported.read(name, out)
        if name in ("speedscope", "pprof", "collapsed"):
            (left_out,) = found.keys() - wanted[name].keys()
            assert "<frames left out>" in left_out
            assert found.pop(left_out).own == 0
        assert found == wanted[name]
        assert out.stat().st_size < 10_000_000


def test_paths_are_cut_in_the_middle(rng):
    """A long path keeps both ends; no time and no call is lost."""
    tree = random_tree(rng, functions=3, depth=3 * _paths.DEEPEST, size=9_000)
    own = calls = 0
    half = _paths.DEEPEST // 2
    longest = 0
    for path, path_calls, path_own in _paths.paths(tree):
        own, calls = own + path_own, calls + path_calls
        longest = max(longest, len(path))
        if len(path) > _paths.DEEPEST:
            assert len(path) == _paths.DEEPEST + 1
            assert path[half] == 3
        assert 3 not in [*path[:half], *path[half + 1 :]]
    assert longest == _paths.DEEPEST + 1
    assert own == sum(node.own for node in tree)
    assert calls == sum(node.calls for node in tree)
    assert _names.labels_of_paths(tree)[-1] == _names.LEFT_OUT


def random_tree(rng, functions, depth, size):
    parents, at = [0], 0
    depths, numbers = [0], [0xFFFFFFFF]
    for number in range(1, size):
        parents.append(at)
        depths.append(depths[at] + 1)
        numbers.append(rng.randrange(functions))
        at = number if depths[-1] < depth else rng.randrange(number)
    column = [rng.randrange(1, 1000) for _ in parents]
    names = [(f"f{n}", "app.py", n, 0, 0, 0) for n in range(functions)]
    columns = *map(packed, (parents, numbers), "II"), *[packed(column, "Q")] * 3
    return CallTree((names, *columns, 0, None))


def packed(numbers, code):
    from array import array

    return array(code, numbers).tobytes()


def test_walk_goes_down_every_path(rng):
    tree = random_tree(rng, functions=4, depth=9, size=300)
    stack = [(0, node) for node in reversed(tree.root.children)]
    seen = list(tree.walk())
    assert len(seen) == len(tree) == 299
    path, found = [], []
    for depth, function, calls, total, own in seen:
        del path[depth:]
        path.append(function)
        found.append((tuple(path), calls, total, own))
    wanted = []
    while stack:
        depth, node = stack.pop()
        stack += [(depth + 1, child) for child in node.children]
        wanted.append((path_of(tree, node), node.calls, node.total, node.own))
    assert sorted(found) == sorted(wanted)


def path_of(tree, node):
    path = []
    while node.function is not None:
        path.append(tree.functions.index(node.function))
        node = node.parent
    return tuple(reversed(path))


@pytest.mark.filterwarnings("ignore:calls left out")
def test_nonsense_can_be_exported(seed, tmp_path):
    """What no recorder would write: no error, and files that can be loaded."""
    path = tmp_path / "app.whence"
    for number in range(25):
        rng = random.Random(f"{seed}:export:{number}")
        write(path, twin.write(call_stories.nonsense(rng)))
        for name, out in exports(path):
            if name != "callgrind" or number < 5:
                exported.read(name, out)


def test_calls_without_room_are_told(tmp_path, monkeypatch):
    path = tmp_path / "app.whence"
    functions = [("f", "/app.py", 1)]
    write(path, call_trees.recording(functions, [[0, -1]]))
    whole = whence.Recording.call_tree

    def short(recording):
        tree = whole(recording)
        tree.left_out = 1234
        return tree

    monkeypatch.setattr(whence.Recording, "call_tree", short)
    with whence.open(path) as recording, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        export(recording, tmp_path / "app.collapsed")
    (warning,) = caught
    assert "calls left out: 1,234" in str(warning.message)
    assert warning.filename == __file__


def test_many_threads_have_one_profile(tmp_path):
    path = tmp_path / "app.whence"
    functions = [("f", "/app.py", 1)]
    write(path, call_trees.recording(functions, [[0, -1]] * 65))
    out = tmp_path / "app.speedscope.json"
    with whence.open(path) as recording:
        export(recording, out)
        export(recording.slice(threads=[3, 4]), out, force=True)
        assert [t.id for t in recording.slice(threads=[3, 4]).threads] == [3, 4]
        assert len(json.loads(out.read_text())["profiles"]) == 3
        export(recording, out, force=True)
    assert len(json.loads(out.read_text())["profiles"]) == 1
