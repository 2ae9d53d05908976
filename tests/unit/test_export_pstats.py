"""pstats files: what cProfile would have counted."""

import cProfile
import itertools
import pstats
import re
import subprocess
import sys

import pytest

import whence
from harness import exported
from reference import call_trees
from whence.export import export

# Twice before it is measured, so that nothing is met for the first time.
BOTH = """
import cProfile, sys
import whence
from harness import sample_program
folder = sys.argv[1]
sample_program.work(); sample_program.work()
profile = cProfile.Profile()
profile.runcall(sample_program.work)
profile.dump_stats(folder + "/theirs.pstats")
with whence.record(folder + "/app.whence", c_calls=True, gc=False):
    sample_program.work()
"""


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same program under cProfile and recorded: two dictionaries."""
    folder = tmp_path_factory.mktemp("pstats")
    subprocess.run(
        [sys.executable, "-c", BOTH, folder],
        check=True,
        cwd=exported.ROOT / "tests",
        timeout=60,
    )
    with whence.open(folder / "app.whence") as recording:
        export(recording, folder / "ours.pstats")
    return [
        pstats.Stats(str(folder / f"{name}.pstats")).stats
        for name in ("theirs", "ours")
    ]


def plain(key):
    """A function as both name it."""
    file, line, name = key
    if file == "~":
        name = re.sub(r"<method '(\w+)' of '([\w.]+)' objects>", r"\2.\1", name)
        return file, line, re.sub(r"<built-in method (.*)>", r"\1", name)
    return file, line, name.rpartition(".")[2]


def counts(stats, *, c_functions):
    """Calls and primitive calls, in all and by caller, of what ``work`` led to."""
    stats = {plain(key): value for key, value in stats.items()}
    return {
        key: (
            *(calls, primitive),
            {
                plain(caller): (by[0], by[1])
                for caller, by in callers.items()
                if plain(caller) in stats and "sample_program" in plain(caller)[0]
            },
        )
        for key, (primitive, calls, _, _, callers) in stats.items()
        if (key[0] == "~") is c_functions
    }


def test_python_functions_are_counted_like_cprofile_does(both):
    theirs, ours = (counts(stats, c_functions=False) for stats in both)
    assert len(theirs) > 60
    assert any(calls != primitive for calls, primitive, _ in theirs.values())
    assert any(callers for _, _, callers in theirs.values())
    assert {key: ours.get(key) for key in theirs} == theirs
    # What is recorded beside the program: the script around it, and the way out.
    others = {name for file, _, name in ours.keys() - theirs.keys()}
    assert others <= {"<module>", "__exit__", "stop"}


def test_c_functions_too(both):
    theirs, ours = (counts(stats, c_functions=True) for stats in both)
    names = {key[2] for key in theirs}
    assert names >= {"builtins.len", "list.append", "str.join", "builtins.isinstance"}
    same = {key for key in theirs if theirs[key][:2] == ours.get(key, ())[:2]}
    assert len(same) > 0.9 * len(theirs)


def test_times_are_consistent(both):
    _, ours = both
    for key, (primitive, calls, own, total, callers) in ours.items():
        assert 0 < primitive <= calls, key
        assert 0 <= own <= total, key
        by = list(callers.values())
        assert sum(b[0] for b in by) <= calls, key
        assert sum(b[2] for b in by) <= own + 1e-9, key
        for by_calls, by_primitive, by_own, by_total in by:
            assert 0 < by_primitive <= by_calls
            assert 0 <= by_own <= by_total <= total


def test_random_programs_against_cprofile(rng, tmp_path):
    """With a clock that ticks at each call and return, cProfile's times are known."""
    path = tmp_path / "app.whence"
    for _ in range(60):
        trees = call_trees.random_trees(rng, 4)
        names = "abcd"
        functions = [(name, "app.py", number) for number, name in enumerate(names, 1)]
        path.write_bytes(call_trees.recording(functions, [call_trees.steps_of(trees)]))
        with whence.open(path) as recording:
            export(recording, tmp_path / "ours.pstats", force=True)
        profiled(trees, names).dump_stats(tmp_path / "theirs.pstats")
        ours, theirs = (
            in_nanoseconds(pstats.Stats(str(tmp_path / f"{name}.pstats")).stats)
            for name in ("ours", "theirs")
        )
        assert ours == theirs


def in_nanoseconds(stats):
    def rounded(counts):
        return (*counts[:2], *(round(seconds * 1e9) for seconds in counts[2:4]))

    return {
        key: (rounded(value), {by: rounded(part) for by, part in value[4].items()})
        for key, value in stats.items()
    }


def profiled(trees, names):
    """Call functions of these names, in one file, as the trees say."""
    made = {}
    body = "(below):\n for function, rest in below: made[function](rest)"
    for line, name in enumerate(names):
        code = compile("\n" * line + f"def {name}{body}", "app.py", "exec")
        exec(code, {"made": made}, scope := {})
        made[line] = scope[name]
    clock = itertools.count(0, call_trees.STEP).__next__
    profile = cProfile.Profile(clock, 1e-9, subcalls=True, builtins=False)
    for function, below in trees:
        profile.runcall(made[function], below)
    return profile
