"""What a recording says about memory, against what the program knows of itself."""

import random
import sys
import threading
import time

import pytest

import whence
from harness.recorded import recorded
from harness.walks import needs_stacks
from reference import memory as twin
from reference import recording_reader
from whence import _zstd

KEPT = []
FILE = __file__
EMPTY = sys.getsizeof(b"")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.whence"


def line_of(text):
    with open(FILE) as source:
        return next(n for n, line in enumerate(source, 1) if text in line)


def places(group):
    return [(frame.filename, frame.line) for frame in group.stack]


def test_a_recording_without_memory_is_empty(path):
    with whence.record(path):
        pass
    with whence.open(path) as recording:
        memory = recording.memory
        assert memory.peak == (0, 0, [])
        assert set(memory.counts) == {0}
        assert memory.usage() == ([], [])
        assert memory.live_at(0) == memory.leaks() == memory.churn() == []
        assert memory.history(id(KEPT)) == []
        assert memory.leaks().total == (0, 0)
        assert memory.leaks().by_line() == []
        assert memory.leaks().by_domain() == memory.leaks().by_thread() == {}


def step(rng, kept, model):
    """Take a block or give one back: bytes objects have no free list."""
    if len(kept) > 50 and rng.random() < 0.5:  # some are always there
        place = rng.randrange(len(kept))
        kept[place], kept[-1] = kept[-1], kept[place]
        model.pop(id(kept[-1]))
        kept.pop()
    else:
        made = bytes(rng.randrange(600, 20_000))  # TAKEN HERE
        model[id(made)] = len(made) + EMPTY
        kept.append(made)


@needs_stacks
def test_many_steps_agree_with_a_model(path, rng, steps):
    """At many moments, what is in use by one line is what the program holds."""
    kept, model, sums = [], {}, []
    with recorded(path, pack=False):
        for number in range(10 * steps):
            step(rng, kept, model)
            if (number + 1) % steps == 0:
                whence.mark("look")
                time.sleep(0.001)  # times of events are told every 20 us
                sums.append((sum(model.values()), len(model)))
    line = line_of("# TAKEN HERE")
    with whence.open(path) as recording:
        memory = recording.memory
        assert memory.counts.contradictions == memory.counts.left_out == 0
        looks = [r.time for r in recording if r.kind == "mark"]
        for at, expected in zip(looks, sums, strict=True):
            lines = memory.live_at(at + 50_000).by_line()
            found = [each[-2:] for each in lines if each[:2] == (FILE, line)]
            assert found == [expected]
        groups = [g for g in memory.leaks() if places(g)[0] == (FILE, line)]
        assert sum(g.bytes for g in groups) == sums[-1][0]
        assert memory.peak.bytes >= max(size for size, _ in sums)
        assert memory.peak.bytes == memory.peak.groups.total.bytes
        assert max(p.bytes for p in memory.usage().points) == memory.peak.bytes
        held = next(iter(model))
        assert [e.action for e in memory.history(held)][-1] == "allocated"
        assert memory.history(held)[-1].size == model[held]
        inner = memory.history(held + 100)[-1]
        assert (inner.address, inner.size) == (held, model[held])


def churn(rng, held, steps):
    for _ in range(steps):
        held.append(bytearray(rng.randrange(2_000)))
        if len(held) > 50:
            held.pop(rng.randrange(len(held)))


def test_threads_agree_with_the_twin(path, rng):
    with recorded(path, chunk_size=8192):
        held = []
        threads = [
            threading.Thread(target=churn, args=(random.Random(n), held, 300))
            for n in (rng.random() for _ in range(3))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    truth = twin.replay(recording_reader.read(path.read_bytes(), _zstd.unpack))
    with whence.open(path) as recording:
        memory = recording.memory
        size, at, groups = truth.peak()
        assert (memory.peak.bytes, memory.peak.time) == (size, at)
        by_stack = {}
        for (stack, *_), (part, count) in groups.items():
            before = by_stack.get(stack, (0, 0))
            by_stack[stack] = before[0] + part, before[1] + count
        found = {g._stack: (g.bytes, g.count) for g in memory.peak.groups}
        assert found == by_stack
        largest = [group.bytes for group in memory.leaks()]
        assert largest == sorted(largest, reverse=True)
        assert memory.leaks().total.bytes == sum(b for b, _ in truth.live().values())
        by_thread = memory.leaks().by_thread()
        assert (
            sum(level.count for level in by_thread.values())
            == memory.leaks().total.count
        )
        assert len(by_thread) >= 3


@needs_stacks
def test_churn_is_what_is_given_back_at_once(path):
    with recorded(path):
        for _ in range(500):
            bytes(3_000)  # CHURN
        kept = [bytes(3_000) for _ in range(500)]
        del kept
    with whence.open(path) as recording:
        group = recording.memory.churn()[0]
        assert places(group)[0] == (FILE, line_of("# CHURN"))
        assert (group.bytes, group.count) == (500 * (3_000 + EMPTY), 500)
        wide = recording.memory.churn(within=10_000)
        assert wide.total.count >= 1_000


def test_a_slice_is_about_its_time_and_its_threads(path):
    with recorded(path):
        early = bytes(50_000)
        whence.mark("early")
        time.sleep(0.001)
        late = bytes(70_000)
    with whence.open(path) as recording:
        moment = next(r.time for r in recording if r.kind == "mark") + 500_000
        before = recording.slice(end=moment).memory
        after = recording.slice(start=moment).memory
        assert len(early) < before.peak.bytes < len(late)
        assert after.peak.bytes > len(early) + len(late)
        assert (
            len(late) < recording.memory.leaks(start=moment).total.bytes < 2 * len(late)
        )
        ours = recording.threads[0].id
        assert recording.slice(threads=[ours]).memory.leaks().total.bytes > len(early)
        assert recording.slice(threads=[ours + 1]).memory.peak.bytes == 0


def test_a_time_limit_ends_an_answer_with_a_warning(path):
    with recorded(path):
        KEPT.extend(bytes(600) for _ in range(100))
    with whence.open(path) as recording:
        part = recording.slice(timeout="1ns").memory
        with pytest.warns(UserWarning, match="only a part of the recording"):
            assert part.leaks() == []


def test_bad_questions_are_one_clear_line(path):
    with whence.record(path):
        pass
    with whence.open(path) as recording:
        memory = recording.memory
        for within in (0, -1, "many", 2**64):
            with pytest.raises(ValueError, match="within must be a number of blocks"):
                memory.churn(within)
        for address in (-1, 2**64, None):
            with pytest.raises(ValueError, match="address must be a number of up to"):
                memory.history(address)
        with pytest.raises(ValueError, match="pool must be a number of up to"):
            memory.history(1, pool=-1)
        with pytest.raises(TypeError, match="time takes nanoseconds or a text like"):
            memory.live_at(None)
        assert memory.live_at(2**70) == memory.leaks(-(2**70), at=2**70) == []
        with pytest.raises(TypeError, match="at takes nanoseconds or a text like"):
            memory.leaks(at=1.5)
    with pytest.raises(ValueError, match="the recording is closed"):
        memory.leaks()


@needs_stacks
def test_full_detail_tells_who_gave_a_block_back(path):
    with recorded(path, memory_detail="full"):
        made = bytes(30_000)
        address = id(made)
        del made  # GIVEN BACK
    with whence.open(path) as recording:
        events = recording.memory.history(address)
        given = next(e for e in events if e.action == "freed" and e.size > 30_000)
        assert given.stack[0].line == line_of("# GIVEN BACK")
        assert given.domain == "obj"
        assert repr(given).startswith("<freed 30033 bytes at 0x")
