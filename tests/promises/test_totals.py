"""Every event has one fate: produced = recorded + dropped, to the last one."""

import threading
from pathlib import Path

import pytest

import whence
from harness import runner

pytestmark = pytest.mark.store


@pytest.mark.timeout(900)
def test_ten_million_records_through_a_ring_of_8_mb(tmp_path, rude):
    path = tmp_path / "ring.whence"
    outcome = runner.run(
        f"""
        import sys
        sys.path.insert(0, {str(Path(rude.__file__).parent)!r})
        import rude, whence

        def memory(*names):
            with open("/proc/self/status") as file:
                lines = dict(line.split(":", 1) for line in file)
            return sum(int(lines[name].split()[0]) for name in names) * 1024

        options = dict(max_size="8MB", gc=False, pack=False, calls=False)
        recorder = whence.record({str(path)!r}, **options)
        before = memory("RssAnon", "RssFile")
        with recorder:
            rude.write_and_join(16, 625_000)
            print(recorder.recorded + sum(recorder.dropped.values()))
        print(memory("VmHWM") - before)
        print(recorder.recorded, recorder.dropped["ring"])
        """,
        timeout=600,
    )
    assert (outcome.status, outcome.err) == (0, "")
    produced, growth, counted = outcome.out.splitlines()
    assert int(produced) == 10_000_000
    assert int(growth) <= 32 * 2**20
    assert path.stat().st_size <= 8 * 2**20
    with whence.open(path) as recording:
        losses = recording.losses
        values = {}
        for counter in recording.counters:
            values.setdefault(counter.name, []).append(counter.value)
    assert losses.produced == 10_000_000
    assert losses.recorded + losses.dropped["ring"] == 10_000_000
    assert counted == f"{losses.recorded} {losses.dropped['ring']}"
    assert sum(map(len, values.values())) == losses.recorded > 500_000
    for have in values.values():
        assert have == list(range(have[0], have[-1] + 1))


@pytest.mark.parametrize("pack", [False, True])
def test_threads_that_write_across_stop(tmp_path, pack):
    """What is written while stop() runs is recorded, or not produced at all."""
    for turn in range(5):
        path = tmp_path / f"stopped-{turn}.whence"
        done = threading.Event()
        counts = [0] * 4

        def write(number, done=done, counts=counts):
            while not done.is_set():
                whence.counter(f"w{number}", counts[number])
                counts[number] += 1

        recorder = whence.record(
            path, chunk_size=4096, gc=False, pack=pack, calls=False
        )
        threads = [threading.Thread(target=write, args=[n]) for n in range(4)]
        with recorder:
            for thread in threads:
                thread.start()
        done.set()
        for thread in threads:
            thread.join()
        with whence.open(path) as recording:
            losses = recording.losses
            have = [counter.value for counter in recording.counters]
        assert losses.produced == losses.recorded == len(have) == recorder.recorded
        assert losses.dropped == {}


def test_a_ring_by_age_keeps_what_is_young(tmp_path):
    path = tmp_path / "young.whence"
    import time

    with whence.record(
        path, keep="1s", chunk_size=4096, gc=False, calls=False
    ) as recorder:
        start = time.monotonic()
        value = 0
        while time.monotonic() - start < 3:
            for _ in range(100):
                whence.counter("value", value)
                value += 1
            time.sleep(0.001)
        size = path.stat().st_size
    with whence.open(path) as recording:
        losses = recording.losses
        kept = [(counter.time, counter.value) for counter in recording.counters]
    assert losses.produced == value
    assert losses.dropped == {"ring": value - len(kept)}
    assert [v for _, v in kept] == list(range(kept[0][1], value))
    assert kept[-1][0] - kept[0][0] >= 500e6  # what is asked for is there
    assert len(kept) < value  # and what is old is gone
    assert size < value * 4  # the file did not grow with the program
    assert recorder.reason is None


def test_names_that_find_no_room_are_counted(tmp_path):
    """A ring keeps half of its chunks for events, whatever names there are."""
    path = tmp_path / "names.whence"
    with whence.record(
        path, max_size=16 * 4096, chunk_size=4096, gc=False, calls=False
    ):
        for number in range(5000):
            whence.mark(f"a name that nobody has used before, number {number}")
    with whence.open(path) as recording:
        losses = recording.losses
        names = [r.fields["name"] for r in recording if r.kind == "mark"]
    assert losses.produced == 5000 == losses.recorded + losses.dropped.get("ring", 0)
    assert losses.names > 0
    assert None in names
    assert path.stat().st_size <= 16 * 4096


def test_a_ring_that_is_too_small_for_its_threads(tmp_path, rude):
    path = tmp_path / "tiny.whence"
    size = 8 * 4096
    with whence.record(
        path, max_size=size, chunk_size=4096, gc=False, pack=False, calls=False
    ):
        rude.write_and_join(32, 3000)
    with whence.open(path) as recording:
        losses = recording.losses
    assert losses.produced == 96_000 == losses.recorded + sum(losses.dropped.values())
    assert set(losses.dropped) <= {"ring", "limit"}
    assert path.stat().st_size <= size


def test_a_ring_bounds_the_memory_for_names_too(tmp_path):
    outcome = runner.run(
        f"""
        import whence

        def memory():
            with open("/proc/self/status") as file:
                lines = dict(line.split(":", 1) for line in file)
            return int(lines["RssAnon"].split()[0]) / 1024

        options = dict(max_size="2MB", pack=False, calls=False)
        with whence.record({str(tmp_path / "a.whence")!r}, **options):
            before = memory()
            for number in range(500_000):
                whence.mark(f"a name that nobody has used before, number {{number}}")
            print(memory() - before < 16)
        """,
        # A sanitizer keeps freed strings back; that is not what is measured here.
        env={"ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=1"},
    )
    assert outcome == runner.Outcome(0, "True\n", "")
    with whence.open(tmp_path / "a.whence") as recording:
        losses = recording.losses
    assert losses.produced == losses.recorded + losses.dropped["ring"] >= 500_000
    assert losses.names > 400_000
