"""Memory while it is recorded: snapshots, stacks of blocks, and how much is kept."""

import os
import threading

import pytest

import whence
from harness.walks import needs_stacks
from whence import memory

SIZE = 54_321
HEADER = bytes.__basicsize__


class Thing:
    """Has a head before its address, and a dict."""

    def __init__(self):
        self.name = "thing"


class Slim:
    __slots__ = ("name",)


def keep(kept, size=SIZE):
    kept.append(bytes(size))


@pytest.fixture(params=["state", "alloc", "full"])
def recorder(request, tmp_path):
    options = {"calls": False, "gc": False, "memory": True}
    return whence.record(
        tmp_path / "now.whence", memory_detail=request.param, **options
    )


@needs_stacks
def test_a_snapshot_has_what_is_in_use(recorder):
    kept = []
    with recorder:
        for _ in range(10):
            keep(kept)
            bytes(3 * SIZE)
        del kept[3:]
        first = memory.snapshot()
        del kept[1:]
        second = memory.snapshot()
        for groups, count in ((first, 3), (second, 1)):
            # The interpreter takes memory of its own, when it specializes code.
            large = [g for g in groups if g.stack and g.bytes >= SIZE]
            (found,) = [g for g in large if g.stack[0].name == "keep"]
            assert (found.bytes, found.count) == (count * (SIZE + HEADER), count)
        del kept[:]
    with whence.open(recorder.path) as recording:
        leaks = recording.memory.leaks()
        large = [g for g in leaks if g.stack and g.bytes >= SIZE]
        assert not [g for g in large if g.stack[0].name == "keep"]


@needs_stacks
def test_stacks_of_objects(recorder):
    with recorder:
        for make in (Thing, Slim, dict, list, lambda: bytes(SIZE), lambda: {1, 2, 3}):
            thing = make()
            stack = memory.stack_of(thing)
            if make in (dict, list):  # which may have the block of an older one
                continue
            assert stack is not None, make
            assert "test_stacks_of_objects" in [frame.name for frame in stack.frames]
        thing = bytes(SIZE)
        address = id(thing)
        assert memory.stack_of(address) == memory.stack_of(thing)
        del thing
        assert memory.stack_of(address) is None
        assert memory.stack_of(test_stacks_of_objects) is None  # from before
    assert memory.stack_of(address) is None


def test_when_nothing_is_recorded(tmp_path):
    for function in (memory.snapshot, lambda: memory.export_history(tmp_path / "x")):
        with pytest.raises(RuntimeError, match="memory is not recorded: start"):
            function()
        with whence.record(tmp_path / "a", overwrite=True), pytest.raises(RuntimeError):
            function()
    assert memory.stack_of(object()) is None
    with whence.record(tmp_path / "b"):
        assert memory.stack_of(object()) is None


@needs_stacks
def test_the_history_so_far(recorder, tmp_path):
    kept, copy = [], tmp_path / "copy.whence"
    with recorder:
        keep(kept)
        memory.export_history(copy)
        keep(kept)
        with pytest.raises(FileExistsError):
            memory.export_history(copy)
        memory.export_history(copy, overwrite=True)
        keep(kept)
    for path, count in ((copy, 2), (recorder.path, 3)):
        with whence.open(path) as recording:
            groups = recording.memory.leaks()
            found = [g.bytes for g in groups if g.stack and g.stack[0].name == "keep"]
            assert sum(found) // SIZE == count


def test_a_state_has_no_history(tmp_path):
    """Its file does not grow with what comes and goes."""
    sizes = {}
    for detail in ("state", "alloc"):
        path = tmp_path / detail
        options = {"memory": True, "memory_detail": detail, "pack": False}
        with whence.record(path, calls=False, gc=False, **options) as recorder:
            kept = [bytes(1_000) for _ in range(100)]
            for _ in range(20_000):
                bytes(1_000)
        sizes[detail] = recorder.recorded
        with whence.open(path) as recording:
            leaks = recording.memory.leaks()
            assert leaks.total.bytes > len(kept) * 1_000
            assert recording.memory.peak.bytes >= leaks.total.bytes
            kinds = {record.kind for record in recording}
        assert ("freed" in kinds, "obj_in_use" in kinds) == (
            detail == "alloc",
            detail == "state",
        )
    assert sizes["state"] < 2_000
    assert sizes["alloc"] > 40_000


@needs_stacks
def test_blocks_of_a_state_have_their_time_and_thread(tmp_path):
    path, kept, ids = tmp_path / "a", [], []

    def work():
        ids.append(threading.get_native_id())
        keep(kept)

    with whence.record(path, calls=False, memory=True, memory_detail="state"):
        whence.mark("before")
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        whence.mark("after")
        keep(kept, 2 * SIZE)
    with whence.open(path) as recording:
        before, after = (r.time for r in recording if r.kind == "mark")
        (owner,) = (t.id for t in recording.threads if t.os_id == ids[0])
        groups = recording.memory.leaks(before, after)
        (found,) = (g for g in groups if g.bytes == SIZE + HEADER)
        assert found.stack[0].name == "keep"
        of_thread = recording.slice(threads=[owner]).memory.leaks()
        assert found.bytes in [g.bytes for g in of_thread]


def test_a_state_of_all_memory(tmp_path, greedy):
    options = {"calls": False, "memory": "all", "memory_detail": "state"}
    with whence.record(tmp_path / "a", **options):
        block = greedy.take("malloc", SIZE)
        moved, _ = greedy.move(block, 2 * SIZE)
        if "WHENCE_SANITIZED" not in os.environ:  # which would end the process
            assert greedy.move(moved, 2**62)[0] == 0  # it stays
        place = greedy.take("mmap", 1 << 20)
        greedy.unmap(place + (1 << 19), 1 << 18)
        greedy.give(greedy.take("malloc", 5 * SIZE))
    with whence.open(tmp_path / "a") as recording:
        domains = recording.memory.leaks().by_domain()
        assert domains["malloc"].bytes >= 2 * SIZE
        assert domains["malloc"].bytes < 5 * SIZE
        assert domains["mmap"].bytes == (1 << 20) - (1 << 18)
        history = recording.memory.history(place + (1 << 19) + (1 << 18))
        assert [event.action for event in history] == ["in_use"]
    greedy.give(moved)


def test_a_forked_child_has_none_of_it(recorder):
    with recorder:
        kept = [bytes(SIZE)]
        child = os.fork()
        if child == 0:
            os._exit(memory.stack_of(kept[0]) is not None)
        assert os.waitpid(child, 0)[1] == 0


@needs_stacks
def test_detail_changes_while_it_is_recorded(tmp_path):
    def stacks_of_frees(recording):
        return [bool(r.fields["stack"]) for r in recording if r.kind == "freed"]

    recorder = whence.record(tmp_path / "a", calls=False, gc=False, memory=True)
    assert recorder.memory_detail == "alloc"
    with recorder:
        keep([])
        recorder.memory_detail = "full"
        keep([])
        recorder.pause()
        recorder.memory_detail = "alloc"
        recorder.resume()
        keep([])
        with pytest.raises(ValueError, match="'state' has no history"):
            recorder.memory_detail = "state"
        with pytest.raises(ValueError, match="memory_detail must be one of"):
            recorder.memory_detail = "none"
        assert recorder.memory_detail == "alloc"
    with whence.open(recorder.path) as recording:
        blocks = [r for r in recording if r.fields.get("size") == SIZE + HEADER]
        assert len(blocks) == 3
        frees = [
            "stack" in r.fields
            for r in recording
            if r.kind == "freed"
            and r.fields["address"] in {b.fields["address"] for b in blocks}
        ]
        assert frees[:1] == [False]
        assert True in frees
        assert frees[-1:] == [False]
    recorder.memory_detail = "state"  # for the next one


def test_the_table_gives_its_memory_back(tmp_path):
    """So many blocks that it grows, and none is left at the end."""
    options = {"calls": False, "gc": False, "memory": True, "memory_detail": "state"}
    with whence.record(tmp_path / "a", **options) as recorder:
        kept = [bytes(600) for _ in range(50_000)]
        del kept[::2]
        groups = memory.snapshot()
        assert 25_000 <= groups.total.count < 27_000
        del kept
        assert memory.snapshot().total.count < 2_000
    assert recorder.dropped == {}
