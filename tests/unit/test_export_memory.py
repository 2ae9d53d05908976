"""Memory in exports: every format says the same as the API, to the byte."""

import threading
from collections import Counter

import pytest

import whence
from harness import exported_memory as read
from harness.traces import COUNTER, Perfetto, chrome
from harness.walks import needs_stacks
from whence.export import export

pytestmark = [pytest.mark.store, needs_stacks]

INSTANT = 3
KEPT = []


def keep(size):
    KEPT.append(bytes(size))


def churn(count):
    return [len(bytearray(10 * n)) for n in range(count)]


def recursive(depth):
    return recursive(depth - 1) if depth else keep(5_000)


def work():
    for size in range(600, 900):
        keep(size)
    churn(300)
    recursive(40)
    del KEPT[::2]


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("memory") / "app.whence"
    with whence.record(path, memory=True):
        thread = threading.Thread(target=work, name="other")
        thread.start()
        work()
        thread.join()
        keep(300_000)
    with whence.open(path) as recording:
        yield recording


@pytest.fixture(params=["whole", "thread", "time"])
def part(request, recording):
    if request.param == "thread":
        return recording.slice(threads=[recording.threads[1].id])
    if request.param == "time":
        return recording.slice(start=recording.info.duration // 2)
    return recording


@pytest.mark.parametrize("metric", read.METRICS)
def test_paths(part, metric, tmp_path):
    wanted = read.expected(part, metric)
    assert len(wanted) > 1
    assert export(part, tmp_path / "a.collapsed", metric=metric) == metric
    found = read.collapsed(tmp_path / "a.collapsed")
    assert found == read.shortened(part, wanted)
    assert export(part, tmp_path / "a.speedscope.json", metric=metric) == metric
    assert read.speedscope(tmp_path / "a.speedscope.json") == wanted


@pytest.mark.parametrize("metric", read.METRICS)
def test_pprof(part, metric, tmp_path):
    assert export(part, tmp_path / "a.pb.gz", metric=metric) == metric
    found, shown = read.pprof(tmp_path / "a.pb.gz")
    assert shown == ("alloc_space" if metric == "allocated" else "inuse_space")
    in_use = "leaks" if metric == "leaks" else "peak"
    assert +found["inuse_space"] == read.expected(part, in_use)
    assert +found["alloc_space"] == read.expected(part, "allocated")
    memory = part.memory
    taken = sum(group.count for group in memory.allocated())
    assert sum(found["alloc_objects"].values()) == taken
    groups = memory.leaks() if metric == "leaks" else memory.peak.groups
    assert sum(found["inuse_objects"].values()) == groups.total.count


def test_parquet(part, tmp_path):
    pytest.importorskip("pyarrow")
    out = tmp_path / "a.parquet"
    export(part, out)
    memory = part.memory
    live = memory.leaks()
    sql = 'select coalesce(sum(size), 0), count(*) from @alloc where "end" is null'
    assert read.query(out, sql) == [tuple(live.total)]
    by_domain = "select domain, sum(size), count(*) from @alloc"
    found = read.query(out, f'{by_domain} where "end" is null group by 1')
    assert {d: (b, n) for d, b, n in found} == live.by_domain()
    by_stack = "select frames, sum(size) from @alloc a left join @stack s on "
    by_stack += (
        'a.stack = s.id and a.process = s.process where "end" is null group by 1'
    )
    wanted = read.expected(part, "leaks")
    found = {
        stack or read.NOWHERE[0][0]: size for stack, size in read.query(out, by_stack)
    }
    assert found == read.shortened(_Unshortened, wanted)
    begun = part._bounds.start or 0
    taken = f"select sum(size), count(*) from @alloc where start >= {begun}"
    assert read.query(out, taken) == [tuple(memory.allocated().total)]
    usage = memory.usage()
    found = read.query(out, 'select "time", domain, bytes, count from @usage')
    assert {row for row in found if row[3]} == {
        (point.time, name, *level)
        for point in usage.points
        for name, level in point.domains.items()
    }
    resident = read.query(out, 'select "time", bytes from @resident order by 1')
    assert resident == [tuple(point) for point in usage.resident]
    line = keep.__code__.co_firstlineno + 1
    inner = f"select function, filename, line from @stack where frames like '%:{line})'"
    assert set(read.query(out, inner)) == {("keep", __file__, line)}


class _Unshortened:
    @staticmethod
    def shorten(filename):
        return filename


def test_torch(part, tmp_path):
    out = tmp_path / "a.torch.json"
    export(part, out, limit=1_000_000)
    snapshot = read.torch(out)
    found = Counter()
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                found[read.frames_of(block)] += block["size"]
    assert +found == _innermost(read.expected(part, "leaks"))
    about = snapshot["whence"]
    assert about["blocks_left_out"] == about["events_left_out"] == 0
    (trace,) = snapshot["device_traces"]
    taken = Counter()
    for entry in trace:
        if entry["action"] == "alloc":
            taken[read.frames_of(entry)] += entry["size"]
    assert +taken == _innermost(read.expected(part, "allocated"))


def _innermost(stacks):
    found = Counter()
    for stack, size in stacks.items():
        found[stack[-64:]] += size
    return found


def test_perfetto(part, tmp_path):
    out = tmp_path / "a.pftrace"
    export(part, out, limit=1_000_000)
    trace = Perfetto(out.read_bytes())
    memory = part.memory
    values = {}
    for track, kind, _, time, event in trace.events:
        name = trace.tracks[track].name
        if kind == COUNTER and "memory" in name:
            assert trace.tracks[track].counter.unit == 3  # UNIT_SIZE_BYTES
            values.setdefault(name, []).append((time, event.counter_value))
    usage = memory.usage()
    domains = {name for point in usage.points for name in point.domains}
    names = {"memory in use", *(f"memory in use: {name}" for name in domains)}
    assert set(values) == names | ({"resident memory"} if usage.resident else set())
    assert max(value for _, value in values["memory in use"]) == memory.peak.bytes
    assert values["memory in use"][-1][1] == memory.leaks().total.bytes
    for name, level in memory.leaks().by_domain().items():
        assert values[f"memory in use: {name}"][-1][1] == level.bytes
    sizes = Counter()
    for track, kind, name, _, event in trace.events:
        if kind == INSTANT and trace.tracks[track].name == "allocations":
            notes = {note.name: note for note in event.debug_annotations}
            sizes[name] += notes["size"].int_value
            assert notes["domain"].string_value in domains | {"pools"}
    functions = Counter()
    for stack, size in read.expected(part, "allocated").items():
        functions[stack[-1][0]] += size
    assert +sizes == functions


def test_large_allocations_are_shown_and_others_told(recording, tmp_path):
    out = tmp_path / "a.pftrace"
    export(recording, out, limit=10)
    trace = Perfetto(out.read_bytes())
    instants = [e for e in trace.events if e[1] == INSTANT]
    by_track = {}
    for track, _, name, _, event in instants:
        by_track.setdefault(trace.tracks[track].name, []).append((name, event))
    ((name, event),) = by_track.pop("memory")
    notes = {note.name: note.int_value for note in event.debug_annotations}
    taken = recording.memory.allocated().total
    assert notes["shown"] == 10
    assert notes["left_out"] == taken.count - 10
    assert name == f"allocations: 10 shown, {taken.count - 10:,} smaller ones left out"
    ((title, shown),) = by_track.items()
    assert title == f"allocations from {notes['least_size']:,} bytes on"
    sizes = [
        note.int_value
        for _, event in shown
        for note in event.debug_annotations
        if note.name == "size"
    ]
    assert len(sizes) == 10
    assert min(sizes) == notes["least_size"]
    assert sum(sizes) + notes["bytes_left_out"] == taken.bytes
    largest = max(shown, key=lambda each: each[1].debug_annotations[0].int_value)
    notes = {note.name: note for note in largest[1].debug_annotations}
    line = keep.__code__.co_firstlineno + 1
    assert notes["frame_0"].string_value == f"keep ({__file__}:{line})"
    assert notes["freed"].bool_value is False
    assert int(notes["address"].string_value, 16)


def test_chrome_counts_bytes(recording, tmp_path):
    events = chrome(recording, tmp_path / "a.json")["traceEvents"]
    counted = [e for e in events if e["ph"] == "C" and e["name"] == "memory in use"]
    most = max(event["args"]["bytes"] for event in counted)
    assert most == recording.memory.peak.bytes


@pytest.mark.parametrize("suffix", [".collapsed", ".speedscope.json", ".pb.gz"])
def test_the_same_bytes_each_time(recording, suffix, tmp_path):
    first, second = (tmp_path / f"{name}{suffix}" for name in "ab")
    for out in (first, second):
        export(recording, out, metric="peak")
    assert first.read_bytes() == second.read_bytes()
