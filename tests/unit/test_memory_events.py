"""Blocks of memory in a recording: where, how large, and who asked for them."""

import contextlib
import gc
import sys
import threading
import time
import tracemalloc

import pytest

import whence
from harness import runner
from harness.walks import needs_stacks
from whence._recording import parts_of

KEPT = {}


def take(size):
    return bytes(size)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.whence"


@contextlib.contextmanager
def recorded(path, **options):
    wanted = {"calls": False, "gc": False, "memory": True, "overwrite": True}
    with whence.record(path, **wanted | options):
        yield


class Replay:
    """What is live at the end, by address: (size, stack); and all that happened."""

    def __init__(self, path):
        self.live = {}
        self.events = []
        self.before = 0  # frees of what was there before
        with whence.open(path) as recording:
            (part,) = parts_of(recording)
            self.stack, self.code = part.reader.stack, part.reader.code
            events = sorted(recording, key=lambda record: record.time or 0)
            for record in events:
                self._apply(record.kind, record.fields)
            self.names = {event: self._names(event) for event in set(self._stacks())}

    def _apply(self, kind, values):
        if kind.endswith(("_allocated", "_moved")):
            self.events.append((kind, values["address"], values["size"]))
            self.live[values["address"]] = (values["size"], values["stack"])
        elif kind == "freed":
            self.events.append((kind, values["address"], None))
            self.before += self.live.pop(values["address"], None) is None

    def _stacks(self):
        return (stack for _, stack in self.live.values())

    def _names(self, stack):
        names = []
        while stack:
            stack, code, _ = self.stack(stack)
            names.append(self.code(code)[0])
        return names

    def of(self, thing):
        """The size of an object without a header of the collector's, and its stack."""
        size, stack = self.live[id(thing)]
        return size, self.names[stack]

    def kinds_of(self, address):
        return [kind for kind, at, _ in self.events if at == address]


@needs_stacks
def test_a_block_has_its_size_and_the_stack_that_asked_for_it(path):
    with recorded(path):
        small, large = take(100), take(100_000)
        gone = id(take(200_000))
    replay = Replay(path)
    for thing in (small, large):
        size, names = replay.of(thing)
        assert size == sys.getsizeof(thing)
        assert names[:2] == [
            "take",
            "test_a_block_has_its_size_and_the_stack_that_asked_for_it",
        ]
    assert replay.kinds_of(gone)[:2] == ["obj_allocated", "freed"]


def test_only_the_outermost_allocator_counts(path):
    """A large object passes the object and the raw domain."""
    with recorded(path):
        large = take(5_000)
    kinds = Replay(path).kinds_of(id(large))
    assert kinds == ["obj_allocated"]


def test_growing_blocks_are_moved(path):
    with recorded(path):
        grown = []
        while len(grown) < 10_000:
            grown.append(None)
    replay = Replay(path)
    assert any(kind == "mem_moved" for kind, _, _ in replay.events)
    assert [size for size, _ in replay.live.values() if size >= 8 * len(grown)]


def test_what_was_there_before_is_no_error(path):
    old = [take(1_000) for _ in range(50)]
    with recorded(path):
        del old
    assert Replay(path).before >= 50


def test_threads_share_one_history(path):
    made = []

    def work():
        for _ in range(2_000):
            made.append(take(3_000))
            if len(made) > 100:
                made.pop(0)

    with recorded(path):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
    replay = Replay(path)
    size = sys.getsizeof(take(3_000))
    assert {id(m) for m in made} == {
        a for a, (s, _) in replay.live.items() if s == size
    }


def test_nothing_is_recorded_while_paused_or_after(path):
    with whence.record(path, calls=False, gc=False, memory=True) as recorder:
        recorder.pause()
        paused = take(7_777)
        recorder.resume()
        resumed = take(7_777)
    after = take(7_777)
    live = Replay(path).live
    assert id(resumed) in live
    assert id(paused) not in live
    assert id(after) not in live


def test_what_the_system_holds_is_sampled(path):
    with recorded(path):
        kept = bytearray(80_000_000)
        end = time.monotonic() + 0.1
        while time.monotonic() < end:
            take(1_000)
        del kept
    with whence.open(path) as recording:
        samples = [r.fields["bytes"] for r in recording if r.kind == "resident"]
    assert len(samples) >= 3
    assert max(samples) - min(samples) > 40_000_000


def test_captures_of_code_that_is_new_are_not_disturbed(path):
    """To remember code takes memory: in the middle of a capture, and for us."""

    def dive(depth, source):
        if depth:
            return dive(depth - 1, source)
        namespace = {"capture": whence.capture}
        exec(source, namespace)
        return namespace["f"]()

    with recorded(path):
        for number in range(300):
            source = f"def f():\n    return (lambda: capture())()  # {number}"
            stack = dive(number, source)
            names = [frame.name for frame in stack.frames]
            assert names[:3] == ["<lambda>", "f", "dive"]
            assert names.count("dive") == number + 1


@needs_stacks
def test_full_detail_has_stacks_of_frees(path):
    with recorded(path, memory_detail="full"):
        take(100_000)
    with whence.open(path) as recording:
        freed = [r for r in recording if r.kind == "freed"]
    assert freed
    assert all(record.fields["stack"] for record in freed)


@pytest.mark.parametrize("first", ["whence", "tracemalloc"])
def test_tracemalloc_comes_and_goes(path, first):
    """Started and stopped in every order; both see what they should, nothing breaks."""
    with contextlib.ExitStack() as stack:
        stack.callback(tracemalloc.stop)
        if first == "tracemalloc":
            tracemalloc.start()
        for _ in range(3):
            with recorded(path):
                tracemalloc.start()
                KEPT["both"] = take(12_345)
                assert tracemalloc.get_object_traceback(KEPT["both"]) is not None
            assert id(KEPT["both"]) in Replay(path).live
        tracemalloc.stop()
        with recorded(path):
            KEPT["one"] = take(12_345)
        assert id(KEPT["one"]) in Replay(path).live


def test_hooks_that_others_have_taken_out_are_noticed(path):
    tracemalloc.start()
    with recorded(path):
        tracemalloc.stop()  # which puts back what was there before both
        KEPT["lost"] = take(12_345)
    with whence.open(path) as recording:
        assert parts_of(recording)[0].reader.info("memory") == "hook_replaced"
    with recorded(path):
        KEPT["again"] = take(12_345)
    assert id(KEPT["again"]) in Replay(path).live


def test_a_child_that_is_forked_records_nothing_of_it(path):
    done = runner.run(
        "import os, whence\n"
        f"with whence.record({str(path)!r}, memory=True):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        kept = [bytes(1000) for _ in range(10_000)]\n"
        "        os._exit(len(kept) != 10_000)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
    )
    assert done.status == 0, done.err


def test_bad_options_are_one_clear_line():
    with pytest.raises(ValueError, match="memory must be True, False or 'all', not 7"):
        whence.record(memory=7)
    with pytest.raises(
        ValueError, match="memory_detail must be one of 'state', 'alloc', 'full'"
    ):
        whence.record(memory_detail="everything")
