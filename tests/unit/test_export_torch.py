"""Snapshots as PyTorch has them: devices, segments, what happened, and limits."""

import json

import pytest

import whence
from harness import exported_memory as read
from reference.recording import METADATA, Chunk, File, Raw, write
from whence.export import export

pytestmark = pytest.mark.store

OBJ, RAW = 0x8A, 0x88
PAGE = 4096
BASE = 0x10_0000


def block(time, address, size, kind=OBJ, stack=0):
    return Raw(kind, [time, address, size, stack])


def free(time, address):
    return Raw(0x49, [time, address])


@pytest.fixture
def snapshot(tmp_path):
    """Make a recording of these records; export it."""

    def snapshot(*records, **options):
        metadata = Chunk(1, [Raw(0x72, [0, 7, 2])], METADATA)
        events = Chunk(2, list(records), thread=1, end=(90_000, 90_000))
        file = File([metadata, events], end=(90_000, 90_000), count=2)
        path, out = tmp_path / "app.whence", tmp_path / "app.torch.json"
        path.write_bytes(write(file))
        with whence.open(path) as recording:
            export(recording, out, force=True, **options)
        return read.torch(out)

    return snapshot


def shape(segment):
    blocks = [(b["state"], b["size"]) for b in segment["blocks"]]
    return segment["address"], segment["device"], segment["stream"], blocks


def test_blocks_that_lie_side_by_side_are_a_segment(snapshot):
    made = snapshot(
        block(10, BASE, 100),
        block(11, BASE + 100, 50),
        block(12, BASE + 150 + PAGE, 10),  # as far away as it can be
        block(13, BASE + 160 + 2 * PAGE + 1, 10),
        block(14, BASE - 64, 64, RAW),
    )
    active = "active_allocated"
    assert list(map(shape, made["segments"])) == [
        (BASE - 64, 0, 0, [(active, 64)]),
        (BASE, 0, 2, [(active, 100), (active, 50), ("inactive", PAGE), (active, 10)]),
        (BASE + 160 + 2 * PAGE + 1, 0, 2, [(active, 10)]),
    ]


def test_a_pool_is_a_device_of_its_own(snapshot):
    pool = Raw(0xA2, [20, 7, BASE, 300, 0])
    made = snapshot(block(10, BASE, 100), pool, Raw(0x83, [30, 7, BASE, 0]))
    assert [len(trace) for trace in made["device_traces"]] == [1, 3]
    assert made["whence"]["devices"] == ["process", "pool 7"]
    assert [e["action"] for e in made["device_traces"][1]] == [
        *("alloc", "free_requested", "free_completed"),
    ]
    made = snapshot(block(10, BASE, 100), pool)
    assert [segment["device"] for segment in made["segments"]] == [0, 1]


def test_what_a_pool_holds_is_a_segment(snapshot):
    segment = Raw(0xA6, [10, 7, BASE, 1000, 0])
    other = Raw(0xA6, [11, 7, BASE + 5000, 500, 0])
    made = snapshot(
        *(segment, other, Raw(0xA2, [20, 7, BASE + 100, 300, 0])),
        *(Raw(0xA2, [30, 7, BASE + 600, 400, 0]), Raw(0xA2, [40, 7, 50, 9, 0])),
        Raw(0x86, [50, 7, BASE + 5000, 0]),
    )
    active = "active_allocated"
    assert list(map(shape, made["segments"])) == [
        (50, 1, 0, [(active, 9)]),  # in none of them
        (
            *(BASE, 1, 0),
            [("inactive", 100), (active, 300), ("inactive", 200), (active, 400)],
        ),
    ]
    assert [s["total_size"] for s in made["segments"]] == [9, 1000]
    assert [s["active_size"] for s in made["segments"]] == [9, 700]
    told = [(e["action"], e["size"]) for e in made["device_traces"][1]]
    assert told[:2] == [("segment_alloc", 1000), ("segment_alloc", 500)]
    assert told[-1] == ("segment_free", 500)


def test_what_happened(snapshot):
    made = snapshot(
        free(5, BASE + 999),  # of a block from before: nothing is known of it
        block(10, BASE, 100),
        free(20, BASE),
        block(30, BASE, 200),
        Raw(0xA5, [2_000_000, 2, 1 << 40, 0, 0]),
    )
    (trace,) = made["device_traces"]
    short = [(e["action"], e.get("addr"), e["size"]) for e in trace]
    assert short == [
        ("alloc", BASE, 100),
        ("free_requested", BASE, 100),
        ("free_completed", BASE, 100),
        ("alloc", BASE, 200),
        ("oom", None, 1 << 40),
    ]
    assert trace[-1]["device_free"] == 0
    times = [entry["time_us"] for entry in trace]
    assert times == sorted(times)
    for entry in trace:
        assert {"action", "size", "stream", "time_us", "frames"} <= set(entry)


def test_a_block_that_was_never_freed_begins_anew(snapshot):
    made = snapshot(
        *(block(10, BASE, 100), block(20, BASE, 60)),  # its free was lost
        *(free(30, BASE), Raw(0x4A, [30, BASE])),  # a realloc that failed
    )
    (trace,) = made["device_traces"]
    taken = 0
    for entry in trace:
        taken += {"alloc": 1, "free_completed": -1}.get(entry["action"], 0)
        assert taken in (0, 1)
    assert [b["size"] for s in made["segments"] for b in s["blocks"]] == [60]


def test_a_limit_keeps_the_largest_and_the_newest(snapshot):
    sizes = [5, 900, 70, 800, 6]
    records = [block(10 + n, BASE + n * 2 * PAGE, s) for n, s in enumerate(sizes)]
    made = snapshot(*records, limit=2)
    assert [s["total_size"] for s in made["segments"]] == [900, 800]
    assert [e["size"] for e in made["device_traces"][0]] == [800, 6]
    about = made["whence"]
    assert (about["blocks_left_out"], about["bytes_left_out"]) == (3, 81)
    assert about["events_left_out"] == 3
    assert set(made) == {
        *("segments", "device_traces", "allocator_settings"),
        *("external_annotations", "whence"),
    }


def test_segments_that_look_free_for_want_of_room_are_told_of(snapshot):
    records = [
        Raw(0xA6, [10, 7, BASE, 1000, 0]),
        *(Raw(0xA2, [20 + n, 7, BASE + 100 * n, 10 + n, 0]) for n in range(3)),
    ]
    with pytest.warns(UserWarning, match=r"^blocks left out: 2, .* look free"):
        made = snapshot(*records, limit=1)
    assert [s["active_size"] for s in made["segments"]] == [12]


def test_hostile_numbers_are_exported_all_the_same(snapshot):
    made = snapshot(
        block(10, 2**64 - 1, 2**64 - 1),
        block(11, 0, 0),
        Raw(0xA5, [20, 2**63 - 1, 2**64 - 1, 0, 2**40]),
        block(30, BASE, 10, stack=2**40),
    )
    assert len(json.dumps(made)) < 10_000


@pytest.mark.torch
def test_pytorch_reads_it(snapshot):
    viz = pytest.importorskip("torch.cuda._memory_viz")
    made = snapshot(
        *(block(10, BASE, 100), block(20, BASE + 100, 30), free(30, BASE)),
        Raw(0xA5, [40, 2, 1 << 40, 0, 0]),
    )
    text = viz.trace(made)
    assert ":100.0B]" in text
    assert "raise OutOfMemoryError # 1.0TiB requested" in text
    assert "segments: 1\n" in viz.segsum(made)
    assert viz.memory(made, format_flamegraph=str).endswith(" 30\n")
    assert viz.trace_plot(made)
