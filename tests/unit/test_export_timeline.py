"""Perfetto and Chrome traces: read back by others' schemas and rules."""

import math
from collections import Counter

import pytest

import whence
from harness.traces import COUNTER, Perfetto, chrome, lengths
from whence import export
from whence._recording import start_of


def leaf(number):
    return number + 1


def numbers(count):
    for number in range(count):
        yield leaf(number)


def recursive(depth):
    return recursive(depth - 1) if depth else sum(numbers(3))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    import threading

    path = tmp_path_factory.mktemp("timeline") / "a.whence"

    def other():
        recursive(20)

    with whence.record(path, c_calls=True):
        with whence.span("outer", size=3, ratio=0.5, name="é", flag=True):
            with whence.span("inner"):
                recursive(50)
            whence.counter("bytes", 12)
            whence.counter("bytes", -1.5)
        try:
            with whence.span("failing"):
                leaf("text")
        except TypeError:
            pass
        thread = threading.Thread(target=other, name="other \N{SNOWMAN}")
        thread.start()
        thread.join()
    with whence.open(path) as recording:
        yield recording


def check_slices(recording, slices):
    """``slices`` are (thread, name, start, end), in any order, in nanoseconds."""
    calls = recording.calls().read()
    start = start_of(recording)
    expected = Counter(
        (c.thread, c.function, start + c.start, start + c.start + c.duration)
        for c in calls
    )
    assert Counter(slices) == expected
    totals = Counter(name for _, name, *_ in slices)
    by_name = Counter()
    for function in recording.functions:
        by_name[function.name] += function.calls
    assert totals == by_name


def test_perfetto_slices_are_the_calls(recorded, tmp_path):
    target = tmp_path / "a.pftrace"
    export.export(recorded, target)
    trace = Perfetto(target.read_bytes())
    threads = {t.os_id: t for t in recorded.threads}
    slices = [
        (threads[trace.tracks[track].thread.tid].id, name, start, end)
        for track, name, start, end in trace.slices(lambda t: t.HasField("thread"))
    ]
    check_slices(recorded, slices)
    for track in trace.tracks.values():
        if track.HasField("thread"):
            assert track.thread.pid == recorded.info.pid
            assert track.thread.thread_name == threads[track.thread.tid].name
        if track.parent_uuid:
            assert track.parent_uuid in trace.tracks
    places = {f.name: (f.filename or "", f.line or 0) for f in recorded.functions}
    assert trace.places == places


def test_perfetto_has_spans_counters_and_collections(recorded, tmp_path):
    target = tmp_path / "a.pftrace"
    export.export(recorded, target)
    trace = Perfetto(target.read_bytes())
    start = start_of(recorded)
    spans = list(trace.slices(lambda track: track.name == "spans"))
    assert sorted((name, a - start, b - a) for _, name, a, b in spans) == sorted(
        (s.name, s.start, s.duration) for s in recorded.spans
    )
    (outer,) = [e for *_, name, _, e in trace.events if name == "outer"]
    notes = {note.name: note for note in outer.debug_annotations}
    assert notes["size"].int_value == 3
    assert notes["ratio"].double_value == 0.5
    assert notes["name"].string_value == "é"
    assert notes["flag"].bool_value is True
    counted = [
        (time - start, getattr(event, event.WhichOneof("counter_value_field")))
        for _, kind, _, time, event in trace.events
        if kind == COUNTER
    ]
    assert counted == [(c.time, c.value) for c in recorded.counters]
    collections = list(trace.slices(lambda t: t.name == "garbage collections"))
    assert len(collections) == len(list(recorded.gc))


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_chrome_slices_are_the_calls(recorded, tmp_path, suffix):
    trace = chrome(recorded, tmp_path / f"a{suffix}")
    events = [e for e in trace["traceEvents"] if e.get("cat") == "call"]
    slices = [(row[1], *rest) for row, *rest in lengths(events)]
    check_slices(recorded, slices)
    assert {e["pid"] for e in events} == {recorded.info.pid}


def test_chrome_has_names_spans_counters_and_collections(recorded, tmp_path):
    events = chrome(recorded, tmp_path / "a.json")["traceEvents"]
    names = {
        e["tid"]: e["args"]["name"]
        for e in events
        if e["ph"] == "M" and e["name"] == "thread_name"
    }
    threads = {t.id: t.name for t in recorded.threads}
    assert threads.items() <= names.items()
    assert {e["tid"] for e in events if "tid" in e} == names.keys()
    assert f"spans of {threads[1]}" in names.values()
    spans = [e for e in events if e.get("cat") == "span"]
    assert sorted(e["name"] for e in spans) == sorted(s.name for s in recorded.spans)
    (outer,) = [e for e in spans if e["name"] == "outer"]
    assert outer["args"] == {"size": 3, "ratio": 0.5, "name": "é", "flag": True}
    counted = [e["args"]["value"] for e in events if e["ph"] == "C"]
    assert counted == [c.value for c in recorded.counters]
    for event in events:
        assert math.isfinite(event.get("ts", 0))
        assert event.get("dur", 0) >= 0


def test_a_slice_of_a_recording(recorded, tmp_path):
    starts = sorted(c.start for c in recorded.calls().read() if c.thread == 1)
    middle = starts[len(starts) // 2]
    (other,) = [t.id for t in recorded.threads if t.name.startswith("other")]
    part = recorded.slice(end=middle, threads=[1])
    trace = chrome(part, tmp_path / "a.json")
    tids = {e["tid"] for e in trace["traceEvents"] if e.get("cat") == "call"}
    assert tids == {1}
    assert other != 1


def test_an_empty_recording(tmp_path):
    path = tmp_path / "a.whence"
    with whence.record(path, calls=False, gc=False):
        pass
    with whence.open(path) as recording:
        events = chrome(recording, tmp_path / "a.json")["traceEvents"]
        assert {event["ph"] for event in events} == {"M"}
        target = tmp_path / "a.pftrace"
        export.export(recording, target)
        assert Perfetto(target.read_bytes()).events == []
