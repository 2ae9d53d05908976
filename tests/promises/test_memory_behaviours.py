"""Behaviours 97 to 104 of a complete recorder of memory.

Each test carries its number, and one checks that none is missing.
"""

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import whence
from harness.recorded import recorded
from harness.walks import needs_stacks
from whence import memory

SANITIZED = "WHENCE_SANITIZED" in os.environ  # then such a request ends the process
DEVICE = memory.domain("device of behaviours")
KINDS = {
    "allocated": {"pool_allocated"},
    "moved": set(),
    "freed": {"pool_freed"},
    "out_of_memory": {"out_of_memory"},
    "segments": {"segment_allocated", "segment_freed"},
}
# What the skipped kinds are called where Python's own allocators are concerned.
PYTHON_KINDS = {
    "allocated": {"raw_allocated", "mem_allocated", "obj_allocated"},
    "moved": {"raw_moved", "mem_moved", "obj_moved"},
    "freed": {"freed", "not_freed"},
    "out_of_memory": {"out_of_memory"},
    "segments": set(),
}


def test_every_behaviour_has_a_test_with_its_number():
    found = re.findall(r"^def test_(\d+)_", Path(__file__).read_text(), re.MULTILINE)
    assert {int(n) for n in found} == set(range(97, 105))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.whence"


def use_device():
    DEVICE.segment_allocated(0x10000, 1 << 20)
    for number in range(50):
        DEVICE.allocated(0x10000 + 512 * number, 100 + number)
        if number % 3:
            DEVICE.freed(0x10000 + 512 * number)
    DEVICE.out_of_memory(1 << 21, 1 << 19)
    DEVICE.segment_freed(0x10000)
    grows = []
    for number in range(1_000):
        grows.append(number)  # noqa: PERF402
    ask_python_in_vain()


def ask_python_in_vain():
    if not SANITIZED:
        with pytest.raises(MemoryError):
            bytearray(1 << 60)


def device_events(path):
    every = set().union(*KINDS.values())
    with whence.open(path) as recording:
        return [
            (record.kind, record.fields.get("address"), record.fields.get("size"))
            for record in recording
            if record.kind in every and record.fields.get("domain", 8) >= 8
        ]


def kinds_in(path):
    with whence.open(path) as recording:
        return {record.kind for record in recording}


@pytest.mark.parametrize("skipped", [*KINDS, ("freed", "segments"), tuple(KINDS)])
def test_100_any_kind_of_event_can_be_left_out_and_the_others_stay(path, skipped):
    with recorded(path):
        use_device()
    everything = device_events(path)
    names = (skipped,) if isinstance(skipped, str) else skipped
    gone = set().union(*(KINDS[name] for name in names))
    assert gone <= {kind for kind, *_ in everything}
    with recorded(path, memory_skip=skipped):
        use_device()
    assert device_events(path) == [e for e in everything if e[0] not in gone]
    every = set().union(*PYTHON_KINDS.values())
    gone = set().union(*(PYTHON_KINDS[name] for name in names))
    there = kinds_in(path) & every
    assert not there & gone
    asked = set() if SANITIZED else {"out_of_memory"}
    assert there >= ({"obj_allocated", "freed"} | asked) - gone
    assert there & PYTHON_KINDS["moved"] or "moved" in names


def test_100_what_is_no_kind_is_said_in_one_line():
    for wrong in ("frees", ["frees"], [["freed"]], 5, None):
        with pytest.raises(ValueError, match="memory_skip takes 'allocated', 'moved'"):
            whence.record(memory_skip=wrong)


def test_101_tags_are_of_one_thread_and_on_every_event_made_while_set(path):
    """Two threads take turns; each event is known by its address."""
    turn = threading.Barrier(2)

    def work(number):
        for step in range(300):
            turn.wait()
            with memory.tag(worker=number, step=step):
                DEVICE.allocated(1_000_000 * number + 8 * step, 8)
            DEVICE.allocated(1_000_000 * number + 500_000 + 8 * step, 8)

    with recorded(path, chunk_size=4096):
        threads = [threading.Thread(target=work, args=[number]) for number in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with whence.open(path) as recording:
        for number in (1, 2):
            for step in range(0, 300, 7):
                for place, tags in (
                    (0, {"step": step, "worker": number}),
                    (500_000, {}),
                ):
                    address = 1_000_000 * number + place + 8 * step
                    (event,) = recording.memory.history(address, pool=DEVICE.name)
                    assert event.tags == tags
        by_worker = recording.memory.leaks().by_tag("worker")
        mine = recording.memory.leaks().tagged(worker=2).by_domain()
        assert set(by_worker) == {1, 2, None}
        assert mine[DEVICE.name] == (300 * 8, 300)


def test_101_also_on_events_of_pythons_own_allocators(path):
    with recorded(path):
        with memory.tag(phase="load"):
            kept = bytes(100_000)
        other = bytes(50_000)
        ended = [len(kept), len(other)]
    assert ended
    with whence.open(path) as recording:
        events = [recording.memory.history(id(thing))[-1] for thing in (kept, other)]
    assert [len(kept), len(other)] == ended
    with whence.open(path) as recording:
        loaded = recording.memory.leaks().tagged(phase="load").total.bytes
    assert 100_000 < loaded < 110_000
    assert len(events) == 2


@needs_stacks
def test_103_out_of_memory_is_an_event_with_requested_and_free_sizes(path):
    def ask():
        DEVICE.out_of_memory(1 << 30, 12_345)
        DEVICE.out_of_memory(1 << 31)
        ask_python_in_vain()

    with recorded(path), memory.tag(step=7):
        ask()
    with whence.open(path) as recording:
        found = recording.memory
        first, second, *others = found.failures
        assert len(others) == (not SANITIZED)
        assert found.counts.out_of_memory == len(found.failures)
        assert (first.domain, first.size, first.available) == (
            *(DEVICE.name, 1 << 30, 12_345),
        )
        assert (second.size, second.available) == (1 << 31, None)
        for third in others:
            assert third.domain in ("obj", "mem", "raw")
            assert third.size >= 1 << 60
            assert third.available is None
        for failure in found.failures:
            assert any(frame.name.endswith("ask") for frame in failure.stack)
            assert failure.tags == {"step": 7}
            assert failure.thread == recording.threads[0].id
        times = [failure.time for failure in found.failures]
        assert times == sorted(times)


def kinds_of(path):
    with whence.open(path) as recording:
        return {record.kind for record in recording}


def taken_and_freed(recording, size):
    """Whether the blocks of this size have a stack, and their frees."""
    blocks = [r.fields for r in recording if r.fields.get("size") == size]
    places = {block["address"] for block in blocks}
    frees = [r.fields for r in recording if r.kind == "freed"]
    mine = [free for free in frees if free["address"] in places]
    return [bool(b["stack"]) for b in blocks], [bool(f.get("stack")) for f in mine]


@needs_stacks
@pytest.mark.parametrize("detail", [None, "state", "alloc", "full"])
def test_97_detail_says_precisely_what_is_kept(path, detail):
    options = {"memory": False} if detail is None else {"memory_detail": detail}
    with recorded(path, **options):
        bytes(70_000)
        kept = bytes(80_000)
    header = bytes.__basicsize__
    with whence.open(path) as recording:
        gone = taken_and_freed(recording, 70_000 + header)
        stays = taken_and_freed(recording, 80_000 + header)
        in_use = recording.memory.leaks().total.bytes
    expected = {
        None: ([], []),
        "state": ([], []),
        "alloc": ([True], [False]),
        "full": ([True], [True]),
    }[detail]
    assert (gone[0], gone[1][:1]) == expected
    assert stays[0] == [True] * (detail is not None), len(kept)
    assert (in_use >= 80_000) == (detail is not None)
    assert ("obj_in_use" in kinds_of(path)) == (detail == "state")


def test_98_the_newest_are_kept_and_a_snapshot_does_not_disturb(path):
    with recorded(path, max_size="300KB", chunk_size="4KB") as recorder:
        kept = [bytes(1_000 + number) for number in range(60_000)]
        memory.snapshot()
        kept += [bytes(100_000 + number) for number in range(100)]
        assert recorder.state == "on"
    header = bytes.__basicsize__
    with whence.open(path) as recording:
        sizes = [r.fields["size"] - header for r in recording if "size" in r.fields]
        assert recording.losses.dropped.keys() == {"ring"}
    last = [size for size in sizes if 100_000 <= size < 100_100]
    assert last == list(range(100_000, 100_100))
    early = [size for size in sizes if 1_000 <= size < 61_000 and size > 2_000]
    assert len(early) < 60_000
    assert early == sorted(early)


def test_99_changing_the_detail_keeps_history_and_stopping_ends_it(path):
    with recorded(path) as recorder:
        first = bytes(70_000)
        recorder.memory_detail = "full"
        second = bytes(80_000)
        recorder.memory_detail = "alloc"
        header = bytes.__basicsize__
        with whence.open(path) as recording:
            sizes = [r.fields.get("size") for r in recording]
        assert {len(first) + header, len(second) + header} <= set(sizes)
    assert memory.stack_of(first) is None
    with pytest.raises(RuntimeError, match="memory is not recorded"):
        memory.snapshot()
    with recorded(path):
        assert memory.snapshot().total.bytes < 70_000  # nothing of the one before


@needs_stacks
@pytest.mark.parametrize("detail", ["state", "alloc", "full"])
def test_102_a_live_block_has_its_stack(path, detail):
    with recorded(path, memory_detail=detail):
        kept = bytes(70_000)
        stack = memory.stack_of(kept)
        assert stack.frames[0].name == "test_102_a_live_block_has_its_stack"
        assert memory.stack_of(id(kept)) == stack
        address = id(kept)
        del kept
        assert memory.stack_of(address) is None
        kept = bytes(70_000)
    assert memory.stack_of(kept) is None


def test_104_reports_need_one_file_and_nothing_else(path, tmp_path):
    """No network, no import, no code that the file names: see SECURITY.md."""
    with recorded(path):
        kept = [bytes(70_000)]
    program = (
        "import socket, sys\n"
        "def refuse(*_):\n"
        "    raise AssertionError\n"
        "socket.socket = refuse\n"
        "from whence.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    (tmp_path / "away").mkdir()
    moved = path.rename(tmp_path / "away" / "only.whence")
    for arguments in (
        ["summary", str(moved)],
        ["export", str(moved), "-o", str(tmp_path / "a.torch.json")],
        ["export", str(moved), "-o", str(tmp_path / "a.collapsed"), "--metric=leaks"],
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            cwd=tmp_path / "away",
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    assert "whence" in json.loads((tmp_path / "a.torch.json").read_text())
    assert (tmp_path / "a.collapsed").read_text()
    assert kept
