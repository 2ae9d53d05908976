"""Behaviours 1 to 24 of a complete system of debug handles.

Each test carries its number, and one checks that none is missing.
"""

import gc
import json
import re
import sys
import threading
import time
import weakref
from itertools import pairwise
from pathlib import Path

import pytest

import whence
from reference import handles as twin
from whence import handles
from whence.handles import (
    HandleTable,
    HandleTableError,
    InlinedCall,
    LoweredError,
    Recorder,
    SourceRange,
)

DATA = Path(__file__).resolve().parents[1] / "data"


def test_every_behaviour_has_a_test_with_its_number():
    found = re.findall(r"^def test_(\d+)_", Path(__file__).read_text(), re.MULTILINE)
    assert {int(n) for n in found} == set(range(1, 25))


def at(line, column=None):
    return SourceRange("model.ex", line, column)


def nested(*calls):
    """Make a list of calls from (function, line, type, instance), outermost first."""
    stack = None
    for function, line, type_, instance in reversed(calls):
        stack = InlinedCall(function, at(line), type_, instance, stack)
    return stack


STACK = nested(
    ("forward", 10, "net.Block", "block"), ("activate", 20, "net.Act", "act")
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.handles"


def through_file(table, path):
    table.save(path, overwrite=True)
    return HandleTable.load(path)


def lines_of(text):
    return [int(line) for line in re.findall(r"line (\d+), in", text)]


def test_01_handles_start_at_0_and_go_up_whatever_recorder_issues_them(run_python):
    out = run_python("""
        from whence.handles import Recorder
        a, b = Recorder(), Recorder()
        print([r.issue(None, "") for r in (a, b, a, a, b)], a.derive("fused", 0))
    """)
    assert out == "[0, 1, 2, 3, 4] 5\n"


def test_02_threads_never_receive_the_same_handle():
    recorders = [Recorder() for _ in range(4)]
    start = threading.Barrier(64)
    issued = [[] for _ in range(64)]

    def work(number):
        keep, issue = issued[number].append, recorders[number % 4].issue
        kind = f"thread {number}"
        start.wait()
        for _ in range(1_000_000 // 64):
            keep(issue(None, kind))

    threads = [threading.Thread(target=work, args=[number]) for number in range(64)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert len({handle for mine in issued for handle in mine}) == 64 * (1_000_000 // 64)
    tables = [recorder.stop() for recorder in recorders]
    for number, mine in enumerate(issued):
        assert mine == sorted(mine)
        table = tables[number % 4]
        assert all(table[h].kind == f"thread {number}" for h in mine[::50])
        assert all(h in table for h in mine)
    assert sum(map(len, tables)) == 64 * (1_000_000 // 64)


def test_03_a_handle_maps_to_range_name_and_stack():
    recorder = Recorder()
    handle = recorder.issue(range=at(3, 8), kind="aten::add", stack=STACK)
    assert recorder.stop()[handle] == (at(3, 8), "aten::add", STACK, None, ())


def test_04_a_node_without_a_stack_says_so():
    recorder = Recorder()
    table_of = [recorder.issue(at(3), "add"), recorder.issue(at(3), "add", stack=None)]
    table = recorder.stop()
    assert [table[handle].stack for handle in table_of] == [None, None]


def test_05_stop_returns_a_copy_and_the_recorder_goes_on():
    recorder = Recorder()
    first = recorder.issue(at(1), "a")
    early = recorder.stop()
    second = recorder.issue(at(2), "b")
    assert list(early) == [first]
    assert second not in early
    assert list(recorder.stop()) == [first, second]
    assert len(early) == 1


def test_06_stopping_twice_gives_equal_tables():
    recorder = Recorder(top="Model")
    recorder.issue(at(1), "a", STACK)
    recorder.derive("fused", 0)
    one, other = recorder.stop(), recorder.stop()
    assert one == other
    assert hash(one) == hash(other)
    assert one.namespace == other.namespace
    recorder.issue(at(1), "a", STACK)
    assert one != recorder.stop()


def test_07_every_node_of_nested_blocks_gets_one_handle():
    shared = {"op": "shared", "blocks": []}
    loop = {"op": "loop", "blocks": [[{"op": "inner", "blocks": []}, shared], [shared]]}
    loop["blocks"][0].append(loop)  # in circles, too
    graph = [{"op": "first", "blocks": []}, loop, shared]
    recorder = Recorder()
    issued = recorder.issue_all(
        graph,
        children=lambda node: [n for block in node["blocks"] for n in block],
        describe=lambda node: (None, node["op"]),
    )
    assert [node["op"] for node, _ in issued] == ["first", "loop", "inner", "shared"]
    table = recorder.stop()
    assert [table[handle].kind for _, handle in issued] == [n["op"] for n, _ in issued]
    assert len(table) == 4


def test_07_blocks_may_be_nested_deeper_than_python_recurses():
    recorder = Recorder()
    issued = recorder.issue_all(
        [0],
        children=lambda n: [n + 1] if n < 50_000 else [],
        describe=lambda n: (None, "op"),
    )
    assert [node for node, _ in issued] == list(range(50_001))


def test_08_a_trace_has_call_sites_outermost_first_then_the_node():
    recorder = Recorder()
    handle = recorder.issue(at(30), "relu", STACK)
    text = recorder.stop().explain(handle)
    assert lines_of(text) == [10, 20, 30]
    places = re.findall(r'File "model.ex", line \d+, in (\S+)', text)
    assert places == ["<top>", "forward", "activate"]


def test_09_stacks_that_share_a_tail_share_it_in_memory_and_in_the_file(path):
    tail = nested(*((f"f{n}", n + 1, "T", f"i{n}") for n in range(1000)))
    recorder = Recorder()
    for number in range(100):
        recorder.issue(at(1), "op", InlinedCall(f"g{number}", at(2), callee=tail))
    table = recorder.stop()
    loaded = through_file(table, path)
    for of in (table, loaded):
        inner = [of[handle].stack.callee for handle in of]
        assert all(one is other for one, other in pairwise(inner))
        assert inner[0] == tail
    (part,) = twin.read(path.read_bytes())
    assert len(part.calls) == 1100


def test_10_an_unknown_handle_is_named_and_raises_nothing():
    text = Recorder().stop().explain(123456789)
    assert text == "Handle 123456789 is not in the table.\n"


def test_11_one_unknown_handle_hides_no_known_one():
    recorder = Recorder()
    inner, outer = recorder.issue(at(30), "relu"), recorder.issue(at(7), "call")
    text = recorder.stop().explain([inner, 10**17, outer])
    assert lines_of(text) == [7, 30]
    assert text.endswith(f"Handle {10**17} is not in the table.\n")


def test_12_lists_are_innermost_first_and_shown_outermost_first():
    recorder = Recorder()
    inner = recorder.issue(at(30), "relu", STACK)
    outer = recorder.issue(at(7), "call", nested(("main", 6, "M", "m")))
    text = recorder.stop().explain([inner, outer])
    assert lines_of(text) == [6, 7, 10, 20, 30]
    assert text.startswith(f"Traceback of handles {inner}, {outer} (most recent")


def test_13_the_module_hierarchy_goes_from_the_top_to_the_operation():
    recorder = Recorder(top="net.Model")
    handle = recorder.issue(at(30), "aten::relu", STACK)
    last = recorder.stop().explain(handle).splitlines()[-1]
    path = "top(Model).block(Block)::forward.act(Act)::activate.aten::relu"
    assert last == f"Module hierarchy: {path}"


def test_14_what_is_missing_in_it_is_marked():
    recorder = Recorder()
    stack = nested(("f", 1, None, "i"), ("g", 2, "T", None), ("h", 3, None, None))
    handle = recorder.issue(at(4), "op", stack)
    last = recorder.stop().explain(handle).splitlines()[-1]
    marks = "i(<unknown>)::f.<unknown>(T)::g.<unknown>(<unknown>)::h"
    assert last == f"Module hierarchy: top(<unknown>).{marks}.op"


def test_15_an_error_collects_handles_on_its_way_up():
    recorder = Recorder()
    inner, outer = recorder.issue(at(30), "div"), recorder.issue(at(7), "call")
    table = handles.install(recorder.stop())

    def kernel():
        message = "division by zero"
        raise LoweredError(message, inner)

    def delegate():
        try:
            kernel()
        except LoweredError as error:
            raise error.push(outer)  # noqa: B904

    with pytest.raises(LoweredError, match="division by zero") as caught:
        delegate()
    assert caught.value.handles == (inner, outer)
    (note,) = caught.value.__notes__
    assert lines_of(note) == [7, 30]
    handles.uninstall(table)


def test_16_minus_one_is_the_unknown_handle():
    recorder = Recorder()
    handle = recorder.issue(at(30), "relu")
    table = recorder.stop()
    assert handles.UNKNOWN == -1
    assert -1 not in table
    assert table.explain(-1) == "Handle -1 stands for what is unknown.\n"
    assert lines_of(table.explain([-1, handle])) == [30]
    assert LoweredError("no idea", -1).__notes__ == [table.explain(-1).strip()]
    fused = recorder.derive("fused", [-1, handle])
    assert recorder.stop()[fused].parents == (handle,)


def test_17_write_then_read_restores_everything(path):
    recorder = Recorder(top="net.Model")
    recorder.issue(SourceRange("é.ex", 3, 8, 4, 13), "aten::add", STACK)
    recorder.issue(SourceRange("b.ex", 1), "mul", None)
    recorder.derive("rewritten", 0, op="addmul", stack=STACK.callee)
    table = recorder.stop()
    for again in (through_file(table, path), HandleTable.from_json(table.to_json())):
        assert again == table
        assert [again[h] for h in again] == [table[h] for h in table]
        assert again.namespace == table.namespace
        assert again.explain(list(again)) == table.explain(list(table))


def test_18_an_unknown_range_survives_the_round_trip(path):
    recorder = Recorder()
    stack = InlinedCall("f", None, callee=InlinedCall("g", at(3)))
    handle = recorder.issue(None, "op", stack)
    table = recorder.stop()
    for again in (through_file(table, path), HandleTable.from_json(table.to_json())):
        assert again[handle] == (None, "op", stack, None, ())
        assert "File <unknown>, in g" in again.explain(handle)


def test_19_a_duplicate_handle_in_a_file_is_refused(path):
    recorder = Recorder()
    handle = recorder.issue(at(1), "op")
    recorder.issue(at(2), "op")
    table = recorder.stop()
    table.save(path)
    (part,) = twin.read(path.read_bytes())
    first = part.records[0]
    part.records[1] = twin.Record(first.handle, 1, first.kind, None)
    path.write_bytes(twin.write([part]))
    with pytest.raises(HandleTableError, match=f"has handle {handle} twice: save"):
        HandleTable.load(path)
    document = json.loads(table.to_json())
    document["parts"][0]["records"][1][0] = handle
    with pytest.raises(HandleTableError, match=f"handle {handle} is there twice"):
        HandleTable.from_json(json.dumps(document))


def test_20_a_type_that_is_unknown_where_it_is_loaded_keeps_its_short_name(
    path, run_python
):
    recorder = Recorder()
    stack = nested(("forward", 1, "nowhere.to.be_found.Linear", "layer"))
    handle = recorder.issue(at(2), "op", stack)
    recorder.stop().save(path)
    out = run_python(f"""
        import sys
        from whence.handles import HandleTable
        print(HandleTable.load({str(path)!r}).explain({handle}))
        assert "nowhere" not in sys.modules
    """)
    assert "layer(Linear)::forward.op" in out


def test_22_the_table_goes_beside_the_artefact_and_dies_with_it(path):
    class Artefact:
        def __init__(self, table):
            self.code = [("div", list(table)[0])]  # noqa: RUF015
            self.table = handles.install(table)

        def __getstate__(self):
            return {"code": self.code}

    recorder = Recorder()
    handle = recorder.issue(at(30), "div")
    artefact = Artefact(recorder.stop())
    artefact.table.save(path)
    gone = weakref.ref(artefact.table)
    assert lines_of(LoweredError("x", handle).__notes__[0]) == [30]
    assert artefact.__getstate__() == {"code": [("div", handle)]}
    del artefact
    gc.collect()
    assert gone() is None
    (note,) = LoweredError("x", handle).__notes__
    assert note == f"Handle {handle} is not in the table."
    assert HandleTable.load(path)[handle].kind == "div"


def test_21_files_of_every_earlier_version_load():
    """tests/data/make.py wrote them; never write them again, add new ones."""
    for path in sorted(DATA.glob("*.handles")):
        table = HandleTable.load(path)
        assert table == HandleTable.from_json(path.with_suffix(".json").read_text())
    assert (DATA / "table-1.0.handles").exists()


def test_23_work_of_backends_is_in_traces_with_its_modules(tmp_path):
    recorder = Recorder(top="net.Model")
    handle = recorder.issue(at(30), "div", STACK)
    table = handles.install(recorder.stop())
    path = tmp_path / "work.whence"
    with whence.record(path, gc=False):
        start = time.perf_counter_ns()
        end = time.perf_counter_ns()
        handles.event(handle, start, end, "kernel", "jit")
    with whence.open(path) as recording:
        (event,) = recording.handle_events
        assert event[1:4] == (handle, "kernel", "jit")
        assert event.duration == end - start
        calls = {call.number: call for call in recording.calls().read()}
        assert table.explain(handle) == recording.handles.explain(handle)
    (found,) = [call for call in calls.values() if call.function.startswith("kernel")]
    modules = "top(Model).block(Block)::forward.act(Act)::activate.div"
    assert found.function == f"kernel (jit) in {modules}"
    assert (found.filename, found.line) == ("model.ex", 30)
    sites = [calls[found.parent], calls[calls[found.parent].parent]]
    assert [(s.function, s.line) for s in sites] == [("forward", 20), ("net.Model", 10)]


def test_24_stacks_equal_in_every_field_are_equal():
    with_module = [("f", 1, "T", "i"), ("g", 2, "U", "j")]
    without = [("f", 1, None, None), ("g", 2, None, None)]
    for calls in (with_module, without):
        one, other = nested(*calls), nested(*calls)
        assert one == other
        assert hash(one) == hash(other)
    different = [
        nested(*calls)
        for calls in (
            with_module,
            without,
            without[:1],
            without[1:],
            [("h", 1, None, None), without[1]],
            [("f", 9, None, None), without[1]],
            [("f", 1, "T", None), without[1]],
            [("f", 1, None, "T"), without[1]],
            [without[0], ("g", 2, None, "x")],
        )
    ]
    assert len(set(different)) == len(different)
    for place, one in enumerate(different):
        assert all(one != other for other in different[:place])
