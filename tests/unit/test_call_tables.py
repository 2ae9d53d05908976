"""Calls as columns, as Arrow streams, as Parquet: the same calls each time."""

import itertools
import re
from collections import Counter

import pytest

import whence
from whence import export


def leaf():
    pass


def numbers(count):
    for number in range(count):
        leaf()
        yield number


def run(count):
    for _ in numbers(count):
        pass


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "a.whence"
    with whence.record(path, c_calls=True):
        run(50_000)  # more than one batch
        len([])
    with whence.open(path) as recording:
        yield recording


def test_batches_are_parts_of_what_read_gives(recorded):
    batches = list(recorded.calls())
    assert len(batches) > 1
    whole = recorded.calls().read()
    assert sum(map(len, batches)) == len(whole)
    assert [call for batch in batches for call in batch] == list(whole)
    assert whole[-1] == list(whole)[-1]
    with pytest.raises(IndexError):
        whole[len(whole)]
    assert repr(whole) == f"<whence.CallBatch of {len(whole):,} calls>"


def test_columns_say_what_calls_say(recorded):
    batch = next(iter(recorded.calls()))
    for row in (0, 1, len(batch) // 2, len(batch) - 1):
        call = batch[row]
        name, file, line = batch.functions[batch.function[row]]
        assert (call.function, call.filename, call.line) == (name, file, line)
        assert (call.start, call.duration) == (batch.start[row], batch.duration[row])
        assert (call.own, call.depth) == (batch.own[row], batch.depth[row])
        assert call.entered == batch.ENTERED[batch.entered[row]]
        assert call.left == batch.LEFT[batch.left[row]]
        assert (call.parent or 0) == batch.parent[row]
        assert (call.task, batch.task[row]) == (None, 0)
    assert batch.start.format == "q"
    assert len(batch.start) == len(batch)


def test_functions_and_the_tree_add_up_to_the_calls(recorded):
    calls = recorded.calls().read()
    tree = recorded.call_tree()
    assert sum(node.own for node in tree) == sum(calls.own)
    assert sum(node.calls for node in tree) == len(calls)
    counted = Counter(call[:3] for call in calls)
    assert {f[:3]: f.calls for f in recorded.functions} == counted
    assert recorded.functions == sorted(recorded.functions, key=lambda f: -f.own)
    root = tree.root
    assert root.parent is None
    assert root.function is None
    assert root.total == sum(child.total for child in root.children)
    for node in tree:
        assert node in node.parent.children
        assert node.total == node.own + sum(child.total for child in node.children)


def test_slices_share_out_the_time(recorded):
    duration = recorded.info.duration
    cuts = [0, duration // 3, duration // 2, duration + 1]
    parts = [recorded.slice(a, b) for a, b in itertools.pairwise(cuts)]
    own = [sum(part.calls().read().own) for part in parts]
    assert sum(own) == sum(recorded.calls().read().own)
    assert recorded.slice("0.0000001s").info == recorded.info
    assert len(recorded.slice(threads=[]).calls().read()) == 0
    inner = recorded.slice(start=duration // 2).slice(end=duration // 3)
    assert sum(inner.calls().read().own) == 0


@pytest.mark.parametrize("bad", [1.5, "soon", b"1"])
def test_times_of_slices_are_checked(recorded, bad):
    with pytest.raises((TypeError, ValueError), match="start"):
        recorded.slice(start=bad)


def test_times_of_slices_may_be_any(recorded):
    everything = list(recorded.calls().read())
    assert list(recorded.slice(-(10**30), 10**30).calls().read()) == everything
    for none in (recorded.slice(10**30), recorded.slice(end=-(10**30))):
        assert none.functions == []
        assert list(none.spans) == []
        assert none.memory.leaks() == []


@pytest.mark.parametrize("what", ["threads", "processes"])
class TestIdsOfSlices:
    @pytest.mark.parametrize(
        "bad", [["w0"], "w0", "1", b"1", [1, None], [1.0], [True], 1, [[1]], [2j]]
    )
    def test_are_numbers(self, recorded, what, bad):
        message = f"{what} takes ids, as Recording.{what} has them, not "
        with pytest.raises(TypeError, match=re.escape(message)):
            recorded.slice(**{what: bad})

    def test_are_not_what_has_them(self, recorded, what):
        with pytest.raises(TypeError, match=f"as Recording.{what} has them, not"):
            recorded.slice(**{what: getattr(recorded, what)})

    @pytest.mark.parametrize("bad", [-1, 2**32, 2**32 + 1, -(10**30)])
    def test_are_small(self, recorded, what, bad):
        message = f"{what} takes ids, as Recording.{what} has them: {bad} is none"
        with pytest.raises(ValueError, match=message):
            recorded.slice(**{what: [1, bad]})

    @pytest.mark.parametrize("none", [[], [0], [77], [2**32 - 1]])
    def test_may_be_those_of_nothing(self, recorded, what, none):
        part = recorded.slice(**{what: none})
        assert (part.threads, part.functions, list(part.gc)) == ([], [], [])

    def test_may_come_in_any_way(self, recorded, what):
        np = pytest.importorskip("numpy")
        everything = [f.calls for f in recorded.functions]
        for ids in ({1}, iter([1]), {1: "one"}, np.array([1, 7]), range(2)):
            part = recorded.slice(**{what: ids})
            assert [f.calls for f in part.functions] == everything


def test_arrow(recorded):
    pa = pytest.importorskip("pyarrow")
    table = pa.table(recorded.calls())
    calls = recorded.calls().read()
    assert table.num_rows == len(calls)
    assert table["start"].to_pylist() == list(calls.start)
    assert table["function"].to_pylist() == [call.function for call in calls]
    assert table["filename"].to_pylist() == [call.filename for call in calls]
    assert table["line"].to_pylist() == [call.line for call in calls]
    assert table["parent"].to_pylist() == [call.parent for call in calls]
    assert table["generator"].to_pylist() == [call.generator for call in calls]
    assert table["left"].to_pylist() == [call.left for call in calls]
    table.validate(full=True)


def test_arrow_streams_of_slices_and_several_at_once(recorded):
    pa = pytest.importorskip("pyarrow")
    half = recorded.slice(end=recorded.info.duration // 2)
    first = pa.RecordBatchReader.from_stream(half.calls())
    second = pa.RecordBatchReader.from_stream(recorded.calls())
    rows = sum(batch.num_rows for batch in first)
    assert rows == len(half.calls().read())
    assert rows < sum(batch.num_rows for batch in second)


def test_an_arrow_stream_of_a_closed_recording_says_so(recorded):
    pa = pytest.importorskip("pyarrow")
    recording = whence.open(recorded.info.path)
    stream = pa.RecordBatchReader.from_stream(recording.calls())
    recording.close()
    with pytest.raises(Exception, match="the recording is closed"):
        stream.read_next_batch()


def test_polars(recorded):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(recorded.calls())
    calls = recorded.calls().read()
    assert frame["own"].sum() == sum(calls.own)
    counted = frame.group_by("function").len()
    names = [str(name) for name in counted["function"]]
    assert dict(zip(names, counted["len"], strict=True)) == Counter(
        call.function for call in calls
    )


def test_duckdb(recorded):
    pa = pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    stream = pa.RecordBatchReader.from_stream(recorded.calls())
    with duckdb.connect() as database:
        database.register("stream", stream)
        query = """
            select function, filename, line, count(*), sum(own)
            from stream group by all"""
        rows = database.sql(query).fetchall()
    found = {tuple(place): (calls, int(own)) for *place, calls, own in rows}
    assert found == {f[:3]: (f.calls, f.own) for f in recorded.functions}


def test_parquet(recorded, tmp_path):
    pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    folder = tmp_path / "a.parquet"
    export.export(recorded, folder)
    with duckdb.connect() as database:
        query = f"""
            select function, filename, line, count(*), sum(own), max(duration)
            from '{folder}/call.parquet' group by all"""
        found = {
            tuple(place): (count, int(own), longest)
            for *place, count, own, longest in database.sql(query).fetchall()
        }
        totals = database.sql(f"from '{folder}/function.parquet'").fetchall()
        names = database.sql(f"select name from '{folder}/thread.parquet'").fetchall()
    calls = recorded.calls().read()
    for function in recorded.functions:
        own = [call for call in calls if call[:3] == function[:3]]
        expected = (len(own), sum(c.own for c in own), max(c.duration for c in own))
        assert found[function[:3]] == expected
    assert [tuple(row) for row in totals] == [tuple(f) for f in recorded.functions]
    assert [name for (name,) in names] == [t.name for t in recorded.threads]
