"""Behaviours 25 to 60 of a complete stack capture, each by its number.

46, 51 and 54 to 58 are in test_native_behaviours.py. The file is long because it is one
list, and a test checks that no number is missing from it.
"""

import asyncio
import gc
import json
import os
import pickle
import re
import runpy
import threading
import traceback
import weakref
from pathlib import Path

import pytest

import whence
from reference import capture as twin


def here():
    return whence.capture()


def made_by_exec(name, body="return capture()", filename="<made>"):
    namespace = {"capture": whence.capture}
    exec(compile(f"def {name}():\n    {body}\n", filename, "exec"), namespace)
    return namespace.pop(name)  # no cycle: the last reference frees it


def test_every_behaviour_has_a_test_with_its_number():
    numbers = set(range(25, 61)) - {46, 51, 54, 55, 56, 57, 58}
    text = Path(__file__).read_text()
    assert {
        int(n) for n in re.findall(r"^def test_(\d\d)_", text, re.MULTILINE)
    } == numbers


def test_25_a_thread_that_python_does_not_know_has_no_frames(rude):
    assert rude.capture_foreign().frames == ()


def test_26_frames_run_innermost_to_outermost_with_exact_offsets():
    def inner():
        return whence.capture(skip=1), twin.frames(skip=1)

    def outer():
        return inner()

    stack, expected = outer()
    assert [frame.name for frame in stack.frames[:2]] == [
        "outer",
        "test_26_frames_run_innermost_to_outermost_with_exact_offsets",
    ]
    assert list(stack.frames) == expected


def test_27_names_stay_right_though_the_code_object_is_gone():
    function = made_by_exec("short_lived")
    code = weakref.ref(function.__code__)
    stack = function()
    del function
    gc.collect()
    assert code() is None
    assert stack.frames[0] == whence.Frame(
        "short_lived", "<made>", 2, 11, 2, 20, "python"
    )


def test_28_destroying_a_stack_is_legal_on_any_thread():
    stacks = [here() for _ in range(1000)]
    threads = [threading.Thread(target=stacks.clear) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stacks == []


def test_29_nothing_waits_to_be_released():
    function = made_by_exec("waiting")
    watched = weakref.ref(function.__code__)
    stack = function()
    del function
    assert watched() is None  # no further capture and no explicit call was needed
    assert stack.frames[0].name == "waiting"


def test_30_a_death_runs_user_code_that_captures_again():
    captured = []

    def notice(_):
        captured.append(whence.capture())

    function = made_by_exec("dies_loudly")
    watched = weakref.ref(function.__code__, notice)
    function()
    del function
    assert watched() is None
    assert [stack.frames[0].name for stack in captured] == ["notice"]


def test_31_a_stack_holds_no_user_object():
    function = made_by_exec("held")
    stack = function()
    assert gc.get_referents(stack) in ([], [whence.Stack])


def test_32_no_cycle_can_pass_through_a_stack():
    stack = here()
    assert not gc.is_tracked(stack)
    for attribute in ("origin", "frames", "anything"):
        with pytest.raises(AttributeError):
            setattr(stack, attribute, [stack])
    empty = whence.capture(limit=0)
    assert gc.get_referents(empty) in ([], [whence.Stack])


def test_33_frames_have_name_filename_and_line_and_more():
    frame = here().frames[0]
    assert (frame.name, frame.filename) == ("here", __file__)
    assert frame.line == here.__code__.co_firstlineno + 1
    assert frame.kind == "python"
    assert frame._fields == (
        *("name", "filename", "line", "column", "end_line", "end_column", "kind"),
    )


def test_34_the_same_stack_gives_the_same_list_and_equal_frames_are_one_object():
    stacks = [here() for _ in range(2)]
    other = here()
    first, second, third = whence.symbolize([*stacks, other])
    assert first is second
    assert third is not first
    assert third[0] is first[0]


def test_35_results_are_in_the_order_of_the_input():
    a, b = here(), whence.capture()
    results = whence.symbolize([a, b, a, a, b])
    assert [frames[0].name for frames in results] == [
        *("here", b.frames[0].name, "here", "here", b.frames[0].name),
    ]


def test_36_json_has_the_same_fields():
    stacks = [here(), pickle.loads(pickle.dumps(here()))]
    parsed = json.loads(whence.to_json(stacks))
    assert parsed == [[frame._asdict() for frame in s.frames] for s in stacks]


def test_37_a_stack_without_frames_is_an_empty_list_everywhere():
    empty = whence.capture(limit=0)
    assert empty.frames == ()
    assert whence.symbolize([empty]) == [[]]
    assert whence.to_json([empty]) == "[[]]"
    assert whence.to_json([]) == "[]"
    assert empty.format() == []
    assert str(empty) == ""
    assert list(empty.summary()) == []
    assert repr(empty) == "<whence.Stack, empty>"
    assert pickle.loads(pickle.dumps(empty)) == empty


def test_38_origins_of_generated_code_stand_right_after_its_frame():
    function = made_by_exec("generated", filename="<graph 38>")
    whence.generated.register("<graph 38>", {2: ("model.py", 17, "forward")})
    try:
        frames = function().frames
    finally:
        whence.generated.unregister("<graph 38>")
    assert frames[0][:3] == ("generated", "<graph 38>", 2)
    assert frames[1] == whence.Frame("forward", "model.py", 17, kind="generated")
    assert frames[2].name.startswith("test_38")


def test_39_a_provider_that_returns_nothing_changes_nothing():
    stack = here()
    before = stack.frames
    whence.generated.register_provider(provider := lambda filename, line: None)
    try:
        assert stack.frames == before
    finally:
        whence.generated.unregister(provider)


def test_40_naming_a_stack_imports_nothing(run_python):
    out = run_python(
        """
        import sys, whence
        import json, traceback
        try:  # what a traceback imports by itself
            json.loads("[")
        except ValueError:
            traceback.format_exc()
        stack = whence.capture()
        before = set(sys.modules)
        stack.frames, str(stack), whence.to_json([stack]), stack.summary()
        print(sorted(m for m in set(sys.modules) - before if m != "whence._stack"))
        """
    )
    assert out == "[]\n"


def test_41_the_first_provider_that_yields_frames_wins_from_any_thread():
    function = made_by_exec("many", filename="<graph 41>")
    stack = function()
    asked = []

    def provider(number, answer):
        def provide(filename, line):
            if filename == "<graph 41>":
                asked.append(number)
                return answer
            return None

        return provide

    providers = [
        provider(1, None),
        provider(2, [("two.py", 2)]),
        provider(3, [("three.py", 3)]),
    ]
    for function in providers:
        thread = threading.Thread(
            target=whence.generated.register_provider, args=[function]
        )
        thread.start()
        thread.join()
    try:
        assert stack.frames[1][1:3] == ("two.py", 2)
        assert asked == [1, 2]
    finally:
        for function in providers:
            whence.generated.unregister(function)


def test_42_a_thread_without_the_gil_has_an_empty_python_part(rude):
    assert rude.capture_released().frames == ()


def test_43_a_pending_exception_is_not_touched(rude):
    report = []
    with pytest.raises(LookupError, match="still pending"):
        rude.drop_and_raise(report)
    ((stack, was_pending),) = report
    assert was_pending
    assert stack.frames[0].name.startswith("test_43")


def test_44_the_python_part_can_be_switched_off(rude):
    assert rude.capture(1).frames[0].name.startswith("test_44")
    assert rude.capture(0).frames == ()


def test_45_skip_drops_exactly_that_many_innermost_frames():
    def inner(skip):
        return whence.capture(skip=skip)

    def outer(skip):
        return inner(skip)

    names = [frame.name for frame in outer(0).frames]
    assert names[:2] == ["inner", "outer"]
    for skip in range(len(names) + 2):
        assert [frame.name for frame in outer(skip).frames] == names[skip:]


def test_47_summary_and_format_are_standard():
    def inside():
        return whence.capture(skip=1), traceback.extract_stack()[:-1]

    stack, expected = inside()
    summary = stack.summary()
    assert isinstance(summary, traceback.StackSummary)
    assert [tuple(frame) for frame in summary] == [tuple(frame) for frame in expected]
    assert stack.format() == summary.format()
    assert str(stack) == "".join(stack.format())
    places = [line for line in str(stack).splitlines() if line.startswith("  File")]
    standard = "".join(traceback.format_list(expected)).splitlines()
    assert places == [line for line in standard if line.startswith("  File")]


def test_47_a_caret_line_marks_the_call_where_source_is_there():
    stack = [1, here(), 2][1]
    lines = str(stack).splitlines()
    call = next(i for i, line in enumerate(lines) if "[1, here(), 2]" in line)
    marks = lines[call + 1]
    assert set(marks.strip()) <= {"^", "~"}
    assert len(marks) - len(marks.lstrip()) == lines[call].index("here()")
    assert len(marks.strip()) == len("here()")


def test_48_a_stack_cannot_be_emptied_or_changed():
    stack = here()
    assert not hasattr(stack, "cleanup")
    with pytest.raises(TypeError):
        type(stack)()
    with pytest.raises(TypeError):

        class Derived(whence.Stack):
            pass


def test_49_a_pickle_carries_the_resolved_frames(run_python, tmp_path):
    origin = whence.capture()
    stack = whence.capture(origin=origin)
    path = tmp_path / "stack.pickle"
    path.write_bytes(pickle.dumps(stack))
    out = run_python(
        f"""
        import pickle
        stack = pickle.loads(open({str(path)!r}, "rb").read())
        print(stack.frames[0].name, stack.origin.frames[0].line)
        """
    )
    name = test_49_a_pickle_carries_the_resolved_frames.__name__
    assert out.split() == [name, str(origin.frames[0].line)]


def test_50_live_and_unpickled_stacks_are_symbolized_together():
    live = here()
    unpickled = pickle.loads(pickle.dumps(live))
    empty = whence.capture(limit=0)
    results = whence.symbolize([live, unpickled, empty, unpickled])
    assert results[0] == results[1]
    assert results[1] is results[3]
    assert results[2] == []


def test_52_generators_and_coroutines_show_the_awaiting_chain():
    def generator():
        yield here()

    def delegating():
        yield from generator()

    async def innermost():
        return here()

    async def stream():
        yield await innermost()

    async def waiting():
        await asyncio.sleep(0)
        async for stack in stream():
            return stack
        return None

    def names(stack):
        return [frame.name for frame in stack.frames]

    assert names(next(delegating()))[:3] == ["here", "generator", "delegating"]
    assert names(asyncio.run(waiting()))[:4] == [
        "here",
        "innermost",
        "stream",
        "waiting",
    ]


def test_53_an_origin_travels_with_a_stack():
    origin = here()
    stack = whence.capture(origin=origin)
    assert stack.origin is origin
    assert whence.capture().origin is None
    assert pickle.loads(pickle.dumps(stack)).origin == origin


@pytest.mark.parametrize(
    "call",
    [
        lambda: whence.capture(1),
        lambda: whence.capture(skip="1"),
        lambda: whence.capture(skip=1.5),
        lambda: whence.capture(skip=None),
        lambda: whence.capture(limit="1"),
        lambda: whence.capture(limit=[]),
        lambda: whence.capture(origin=1),
        lambda: whence.capture(origin=()),
        lambda: whence.capture(depth=1),
        lambda: whence.symbolize([1]),
        lambda: whence.symbolize([None]),
        lambda: whence.symbolize(1),
        lambda: whence.symbolize(here()),
        lambda: whence.symbolize([here(), object()]),
        lambda: whence.to_json([object()]),
        lambda: whence.to_json(here()),
        lambda: whence.Stack(),
        lambda: whence._core.resolve(()),
        lambda: whence.capture(native="no"),
        lambda: whence.capture(native=2),
        lambda: whence._core.resolve(None),
        lambda: whence._core.to_json(None),
        lambda: whence._core.frames_to_json([[1]]),
        lambda: whence._core.frames_to_json([None]),
        lambda: whence._core.frames_to_json([[("name",)]]),
        lambda: whence._core.restore([], None),
        lambda: whence._core.restore((1,), None),
        lambda: whence._core.restore((whence.Frame(1, "f", 1),), None),
        lambda: whence._core.restore((whence.Frame("f", "f", "1"),), None),
        lambda: whence._core.restore((whence.Frame("f", "f", 2**40),), None),
        lambda: whence._core.restore((whence.Frame("f", "f", -5),), None),
        lambda: whence._core.restore((tuple.__new__(whence.Frame, ("f",)),), None),
        lambda: whence._core.restore((), 1),
        lambda: here() < here(),
        lambda: whence.generated.register(1, {}),
        lambda: whence.generated.register("f", {"1": ("f", 1)}),
        lambda: whence.generated.register("f", {1: 5}),
        lambda: whence.generated.register_provider(None),
    ],
)
def test_59_wrong_types_are_type_errors(call):
    with pytest.raises(TypeError):
        call()


def test_60_names_that_are_not_utf8_are_kept_and_the_batch_succeeds():
    names = [
        "<lone \udc80\udfff>",
        "<\ud800>",
        "<\U0001f40d ä>",
        '<quote " \\>',
    ]
    stacks = [made_by_exec("named", filename=name)() for name in names]
    stacks.append(here())
    assert [s.frames[0].filename for s in stacks[:-1]] == names
    parsed = json.loads(whence.to_json(stacks))
    assert [p[0]["filename"] for p in parsed] == [s.frames[0].filename for s in stacks]
    whence.to_json(stacks).encode()  # lone surrogates are escaped, so the text is UTF-8
    for stack in stacks:
        assert pickle.loads(pickle.dumps(stack)) == stack
        assert isinstance(str(stack), str)


def test_60_a_file_whose_name_is_not_utf8(tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9.py"
    with open(path, "w") as file:
        file.write("from whence import capture\nstack = capture()\n")
    stack = runpy.run_path(os.fsdecode(path))["stack"]
    frame = stack.frames[0]
    assert os.fsencode(frame.filename) == path
    assert "stack = capture()" in stack.format()[-1]
    (frames,) = json.loads(whence.to_json([stack]))
    assert frames[0]["filename"] == frame.filename
    assert pickle.loads(pickle.dumps(stack)) == stack
