"""Calls out of random programs, and out of nonsense, against what they must be."""

import random

import pytest

from reference import call_stories, recording_reader
from reference import recording as twin
from whence import _core, _zstd

pytestmark = pytest.mark.store

THREAD, GENERATOR, NUMBER = 7, 11, 12


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


def test_calls_are_what_the_programs_did(seed):
    for number in range(150):
        rng = random.Random(f"{seed}:calls:{number}")
        file, expected = call_stories.story(rng)
        calls = list(read(file).calls())
        where = f"--seed {seed}, story {number}"
        assert renumbered(calls) == renumbered(expected), where
        for thread in (1, 2, 3):
            mine = [call for call in calls if call[THREAD] == thread]
            ends = [call[3] + call[4] for call in mine]
            assert ends == sorted(ends), where


def test_nonsense_agrees_with_the_twin(seed):
    for number in range(400):
        rng = random.Random(f"{seed}:nonsense:{number}")
        file = call_stories.nonsense(rng)
        where = f"--seed {seed}, recording {number}"
        found = recording_reader.read(twin.write(file))
        reader = read(file)
        assert list(reader.calls()) == found.calls, where
        assert list(reader.exceptions()) == found.exceptions, where
        assert reader.tasks() == found.tasks, where
        assert list(reader.awaits()) == found.awaits, where


def test_a_ring_that_took_chunks_agrees_with_the_twin(seed):
    for number in range(60):
        rng = random.Random(f"{seed}:ring:{number}")
        file, _ = call_stories.story(rng)
        events = [chunk for chunk in file.chunks if chunk.what == twin.EVENTS]
        for chunk in events[: rng.randint(0, len(events))]:
            file.chunks.remove(chunk)
        found = recording_reader.read(twin.write(file))
        where = f"--seed {seed}, ring {number}"
        assert list(read(file).calls()) == found.calls, where
