"""Calls out of random programs, and out of nonsense, against what they must be.

All of it without and with work of lowered programs, and line maps of generated code.
"""

import random

import pytest

from harness.traced import calls_of
from reference import call_reader, call_stories, recording_reader, work_stories
from reference import recording as twin
from whence import _core, _zstd

pytestmark = [
    pytest.mark.store,
    pytest.mark.parametrize(
        "stories", [call_stories, work_stories], ids=["calls", "work"]
    ),
]

THREAD, GENERATOR, NUMBER, PARENT = 7, 11, 12, 13


def read(file):
    return _core.Reader(twin.write(file), _zstd.unpack)


def renumbered(calls):
    """By thread and number, with the instances of generators as they come."""
    instances = {None: None}
    out = []
    for call in sorted(calls, key=lambda call: (call[THREAD], call[NUMBER])):
        instance = instances.setdefault(call[GENERATOR], len(instances))
        out.append((*call[:GENERATOR], instance, *call[GENERATOR + 1 :]))
    return out


@pytest.fixture
def programs(request):
    return request.config.getoption("--programs")


def test_calls_are_what_the_programs_did(seed, stories, programs):
    for number in range(programs * 3 // 10):
        rng = random.Random(f"{seed}:calls:{number}")
        file, expected = stories.story(rng)
        calls = calls_of(read(file))
        where = f"--seed {seed}, story {number}"
        assert renumbered(calls) == renumbered(expected), where
        for thread in (1, 2, 3):
            mine = [call for call in calls if call[THREAD] == thread]
            ends = [call[3] + call[4] for call in mine]
            assert ends == sorted(ends), where


def test_nonsense_agrees_with_the_twin(seed, stories, programs):
    for number in range(programs * 8 // 10):
        rng = random.Random(f"{seed}:nonsense:{number}")
        file = stories.nonsense(rng)
        where = f"--seed {seed}, recording {number}"
        found = recording_reader.read(twin.write(file))
        reader = read(file)
        assert calls_of(reader) == found.calls, where
        assert list(reader.exceptions()) == found.exceptions, where
        assert reader.tasks() == found.tasks, where
        assert list(reader.awaits()) == found.awaits, where


def test_slices_agree_with_the_twin(seed, stories, programs):
    for number in range(programs * 3 // 10):
        rng = random.Random(f"{seed}:slice:{number}")
        make = rng.choice([stories.nonsense, lambda r: stories.story(r)[0]])
        file = make(rng)
        last = max(chunk.end[0] for chunk in file.chunks)
        start, end = sorted(rng.randint(-5, last + 5) for _ in range(2))
        threads = rng.choice([None, [1], [2, 3], []])
        part = call_reader.Slice(start, end, threads)
        found = recording_reader.read(twin.write(file), slice_=part)
        reader = read(file)
        where = f"--seed {seed}, slice {number}: {part}"
        assert calls_of(reader, start, end, threads) == found.calls, where
        assert list(reader.exceptions(start, end, threads)) == found.exceptions, where
        check_tree(reader.tree(start, end, threads), found.calls, where)


def check_tree(table, calls, where):
    """The paths, their calls and their times are those of the calls one by one."""
    functions, *columns, _, until = table
    assert until is None, where
    parents, numbers, *counts = (
        memoryview(column).cast("I" if i < 2 else "Q").tolist()
        for i, column in enumerate(columns)
    )
    paths = {0: ()}
    got = {}
    for node in range(1, len(parents)):
        assert parents[node] < node, where
        paths[node] = (*paths[parents[node]], functions[numbers[node]][:3])
        got[paths[node]] = tuple(column[node] for column in counts)
    assert got == by_path(calls), where
    totals = {function[:3]: function[3:] for function in functions}
    assert totals == by_function(got), where


def by_path(calls):
    known = {(call[THREAD], call[NUMBER]): call for call in calls if call[-1] == 1}
    found = {}
    for call in calls:
        path = [call[:3]]
        around = known.get((call[THREAD], call[PARENT]))
        while around:
            path.insert(0, around[:3])
            around = known.get((around[THREAD], around[PARENT]))
        before = found.get(tuple(path), (0, 0, 0))
        more = (call[-1], call[4], call[5])
        found[tuple(path)] = tuple(map(sum, zip(before, more, strict=True)))
    return found


def by_function(paths):
    """A function's total counts where no other call of it is around."""
    found = {}
    for (*around, function), (calls, total, own) in paths.items():
        before = found.get(function, (0, 0, 0))
        more = (calls, 0 if function in around else total, own)
        found[function] = tuple(map(sum, zip(before, more, strict=True)))
    return found


def test_a_ring_that_took_chunks_agrees_with_the_twin(seed, stories):
    for number in range(60):
        rng = random.Random(f"{seed}:ring:{number}")
        file, _ = stories.story(rng)
        events = [chunk for chunk in file.chunks if chunk.what == twin.EVENTS]
        for chunk in events[: rng.randint(0, len(events))]:
            file.chunks.remove(chunk)
        found = recording_reader.read(twin.write(file))
        where = f"--seed {seed}, ring {number}"
        assert calls_of(read(file)) == found.calls, where
