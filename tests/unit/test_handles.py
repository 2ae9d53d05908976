"""Ranges, inlined calls, and recorders that issue handles."""

import copy
import gc
import os
import pickle
import sys
import weakref

import pytest

from whence.handles import HandleTable, InlinedCall, Recorder, SourceRange

DEEP = 100_000


class Text(str):
    __slots__ = ("__dict__",)


class TestSourceRange:
    def test_fields_are_what_was_given(self):
        place = SourceRange("a.ex", 3, 8, end_line=4, end_column=2)
        fields = place.filename, place.line, place.column
        assert (*fields, place.end_line, place.end_column) == ("a.ex", 3, 8, 4, 2)
        short = SourceRange(filename="a.ex", line=3)
        assert (short.column, short.end_line, short.end_column) == (None, None, None)

    def test_it_is_a_value(self):
        fields = ("a.ex", 3, 8, 4, 2)
        place = SourceRange(*fields)
        assert place == SourceRange(*fields)
        assert hash(place) == hash(SourceRange(*fields))
        others = {
            SourceRange(*fields[:at], other, *fields[at + 1 :])
            for at, other in enumerate(["b.ex", 2, 7, 5, None])
        }
        assert len(others) == 5
        assert place not in others
        assert place != fields
        for again in (pickle.loads(pickle.dumps(place)), copy.deepcopy(place)):
            assert again == place

    @pytest.mark.parametrize(
        ("fields", "text"),
        [
            (("a.ex", 3), "SourceRange('a.ex', 3)"),
            (("a.ex", 3, 8), "SourceRange('a.ex', 3, 8)"),
            (("a.ex", 3, None, 4), "SourceRange('a.ex', 3, None, 4, None)"),
        ],
    )
    def test_repr_makes_it_again(self, fields, text):
        assert repr(SourceRange(*fields)) == text
        assert eval(text) == SourceRange(*fields)

    def test_it_cannot_be_changed_or_derived_from(self):
        with pytest.raises(AttributeError):
            SourceRange("a.ex", 3).line = 4
        with pytest.raises(TypeError):
            type("Derived", (SourceRange,), {})

    @pytest.mark.parametrize(
        ("fields", "error", "message"),
        [
            ((3, 3), TypeError, "filename must be a str, not int"),
            (("a", "3"), TypeError, "line must be an int, not str"),
            (("a", None), TypeError, "line must be an int, not NoneType"),
            (("a", 0), ValueError, "line must be from 1 to 2147483647, not 0"),
            (("a", 2**70), ValueError, "line must be from 1 to 2147483647, not 1180"),
            (("a", 1, -1), ValueError, "column must be from 0 to 2147483647, not -1"),
            (("a", 1, "x"), TypeError, "column must be an int or None, not str"),
            (("a", 5, 1, 4), ValueError, "end_line 4 is before line 5"),
        ],
    )
    def test_what_is_wrong_is_one_clear_line(self, fields, error, message):
        with pytest.raises(error, match=f"^{message}"):
            SourceRange(*fields)

    def test_a_str_of_another_type_is_kept_as_a_str(self):
        assert type(SourceRange(Text("a.ex"), 3).filename) is str


def deep():
    call = None
    for line in range(1, DEEP + 1):
        call = InlinedCall("f", SourceRange("a.ex", line), callee=call)
    return call


class TestInlinedCall:
    def test_fields_are_what_was_given(self):
        inner = InlinedCall("g", None)
        call = InlinedCall("f", SourceRange("a.ex", 3), "T", "i", inner)
        assert (call.function, call.range) == ("f", SourceRange("a.ex", 3))
        assert (call.type, call.instance) == ("T", "i")
        assert call.callee is inner
        assert (inner.range, inner.type, inner.instance, inner.callee) == (None,) * 4
        assert (len(call), len(inner)) == (2, 1)

    def test_repr_is_short_whatever_the_length(self):
        inner = InlinedCall("g", None, type="T")
        assert repr(inner) == "InlinedCall('g', None, type='T')"
        outer = InlinedCall("f", SourceRange("a", 1), instance="i", callee=inner)
        assert repr(outer) == (
            "InlinedCall('f', SourceRange('a', 1), instance='i', "
            "callee=<InlinedCall, 1 deep>)"
        )

    def test_a_long_list_is_never_walked_by_recursion(self):
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(200)
        try:
            one, other = deep(), deep()
            assert one == other
            assert hash(one) == hash(other)
            assert len(one) == DEEP
            assert repr(one).endswith(f"callee=<InlinedCall, {DEEP - 1} deep>)")
            assert pickle.loads(pickle.dumps(one)) == one
            assert copy.deepcopy(one) == one
            shared = InlinedCall("g", None, callee=one.callee)
            del one, other
            gc.collect()
            assert len(shared) == DEEP
            del shared
        finally:
            sys.setrecursionlimit(limit)

    def test_a_tail_that_somebody_has_stays(self):
        tail = InlinedCall("h", None)
        middle = InlinedCall("g", None, callee=tail)
        InlinedCall("f", None, callee=middle)
        assert middle.callee is tail
        del middle
        assert tail.function == "h"

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ((None, None), "function must be a str, not NoneType"),
            (("f", ("a", 3)), "range must be whence.handles.SourceRange or None, not"),
            (("f", None, 3), "type must be a str, not int"),
            (("f", None, None, 3), "instance must be a str, not int"),
            (("f", None, None, None, "g"), "callee must be whence.handles.InlinedCall"),
        ],
    )
    def test_what_is_wrong_is_one_clear_line(self, fields, message):
        with pytest.raises(TypeError, match=f"^{message}"):
            InlinedCall(*fields)


class TestRecorder:
    @pytest.mark.parametrize(
        ("args", "kwargs", "message"),
        [
            ((), {}, r"issue\(\) needs a range, which may be None, and a kind"),
            ((None,), {}, r"issue\(\) needs a range"),
            ((None, "a", None, 3), {}, r"issue\(\) takes range, kind and stack, not 4"),
            ((None, "a"), {"king": 1}, r"issue\(\) has no argument 'king'"),
            ((None, "a"), {"kind": "b"}, r"issue\(\) got 'kind' twice"),
            (("a.ex", "a"), {}, "range must be SourceRange or None, not str"),
            ((None, None), {}, "kind must be a str, not NoneType"),
            ((None, "a", "b"), {}, "stack must be InlinedCall or None, not str"),
        ],
    )
    def test_wrong_arguments_issue_nothing(self, args, kwargs, message):
        recorder = Recorder()
        with pytest.raises(TypeError, match=f"^{message}"):
            recorder.issue(*args, **kwargs)
        assert len(recorder) == 0

    def test_arguments_by_name_in_any_order(self):
        recorder, place = Recorder(), SourceRange("a", 1)
        name = "stack kind"[6:]  # not interned
        handle = recorder.issue(**{"stack": None, name: "op", "range": place})
        assert recorder.stop()[handle][:2] == (place, "op")

    def test_a_kind_of_another_type_is_kept_as_a_str(self):
        recorder = Recorder()
        kind = Text("op")
        kind.recorder = recorder  # would be a cycle
        handle = recorder.issue(None, kind)
        assert type(recorder.stop()[handle].kind) is str

    def test_recorders_and_tables_die_with_their_last_reference(self):
        recorder = Recorder()
        place = SourceRange("a.ex", 3)
        before = sys.getrefcount(place)
        for _ in range(1000):
            recorder.issue(place, "op", InlinedCall("f", place))
        table = recorder.stop()
        gone = weakref.ref(recorder)
        del recorder
        assert len(list(table)) == 1000
        assert table[list(table)[-1]].range is place
        del table
        assert gone() is None
        assert sys.getrefcount(place) == before

    def test_the_last_handle_is_followed_by_a_clear_error(self, run_python):
        out = run_python("""
            from whence import _core
            from whence.handles import HandleTable, Recorder
            recorder = Recorder()
            _core.skip_handles(2**63 - 3)
            _core.skip_handles(5)  # never back
            print([recorder.issue(None, "") for _ in range(2)])
            for _ in range(3):
                try:
                    recorder.issue(None, "")
                except OverflowError as error:
                    print(error)
            table = recorder.stop()
            assert HandleTable.from_json(table.to_json()) == table
            print(len(table), 2**63 - 2 in table, 2**63 - 1 in table, 2**70 in table)
        """)
        line = f"all {2**63 - 2} handles of this process have been issued\n"
        assert out == (
            f"[{2**63 - 3}, {2**63 - 2}]\n{line}{line}{line}2 True False False\n"
        )

    def test_derived_handles_know_their_parents(self):
        recorder = Recorder()
        a, b = (recorder.issue(None, kind) for kind in "ab")
        fused = recorder.derive("fused", iter([a, b]))
        place = SourceRange("a", 1)
        own = recorder.derive("rewritten", fused, range=place, op="c")
        table = recorder.stop()
        assert table[fused] == (None, "fused", None, "fused", (a, b))
        assert table[own] == (place, "c", None, "rewritten", (fused,))

    @pytest.mark.parametrize(
        ("kind", "parents", "error", "message"),
        [
            (
                "melted",
                [0],
                ValueError,
                "kind must be one of fused, split, inlined, re",
            ),
            ("fused", ["a"], TypeError, "parents are handles, ints, not 'a'"),
            ("fused", [-2], ValueError, "-2 is no handle"),
            ("fused", [2**63 - 1], ValueError, f"{2**63 - 1} is no handle"),
        ],
    )
    def test_wrong_edges_issue_nothing(self, kind, parents, error, message):
        recorder = Recorder()
        with pytest.raises(error, match=f"^{message}"):
            recorder.derive(kind, parents)
        assert len(recorder) == 0

    def test_top_must_be_a_text(self):
        with pytest.raises(TypeError, match="top must be a str or None, not int"):
            Recorder(top=3)

    def test_namespaces_are_random_and_a_fork_gets_its_own(self):
        recorder = Recorder()
        recorder.issue(None, "parent's")
        assert len({Recorder().stop().namespace for _ in range(50)}) == 50
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            recorder.issue(None, "child's")
            os.write(write, recorder.stop().to_json().encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as answer:
            table = HandleTable.from_json(answer.read())
        os.waitpid(child, 0)
        recorder.issue(None, "other")
        own = recorder.stop()
        assert table.namespace != own.namespace
        merged = HandleTable.merge(own, table)
        kinds = {merged[key].kind for key in merged}
        assert kinds == {"parent's", "child's", "other"}


@pytest.mark.parametrize("described", [None, (), (None,), "ab", (None, "a", None, 1)])
def test_a_description_that_is_none(described):
    with pytest.raises(TypeError, match=r"^describe\(node\) must give"):
        Recorder().issue_all([1], children=lambda _: (), describe=lambda _: described)
