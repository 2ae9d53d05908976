"""Line maps and providers."""

import re
import threading
import traceback

import pytest

import whence
from whence import generated, handles


@pytest.fixture(autouse=True)
def clean():
    before = generated._line_maps, generated._providers_in_order
    yield
    generated._line_maps, generated._providers_in_order = before
    generated._failures.clear()


def generated_stack(filename, line=2):
    namespace = {"capture": whence.capture}
    source = "\n" * (line - 2) + "def made():\n    return capture()\n"
    exec(compile(source, filename, "exec"), namespace)
    return namespace["made"]()


def origins(stack):
    return [frame for frame in stack.frames if frame.kind == "generated"]


def test_a_mapping_holds_for_exactly_its_lines():
    generated.register(
        "<exact>", {2: ("a.py", 10), 4: [("b.py", 20), ("c.py", 30, "c")]}
    )
    found = {line: origins(generated_stack("<exact>", line)) for line in (2, 3, 4)}
    assert found[2] == [whence.Frame("<generated>", "a.py", 10, kind="generated")]
    assert found[3] == []
    assert [frame[:3] for frame in found[4]] == [
        ("<generated>", "b.py", 20),
        ("c", "c.py", 30),
    ]


def test_pairs_hold_until_the_next_one():
    generated.register("<pairs>", [(10, None), (3, ("a.py", 1)), (6, ("b.py", 2))])
    found = {
        line: [frame.filename for frame in origins(generated_stack("<pairs>", line))]
        for line in (2, 3, 5, 6, 9, 10, 50)
    }
    assert found == {
        2: [],
        3: ["a.py"],
        5: ["a.py"],
        6: ["b.py"],
        9: ["b.py"],
        10: [],
        50: [],
    }


def test_frames_keep_their_place_and_get_their_kind():
    origin = whence.Frame("forward", "model.py", 7, 4, 7, 12)
    generated.register("<frames>", {2: origin})
    assert origins(generated_stack("<frames>")) == [origin._replace(kind="generated")]


def test_a_later_map_replaces_an_earlier_one_and_can_be_taken_back():
    generated.register("<again>", {2: ("old.py", 1)})
    generated.register("<again>", {2: ("new.py", 1)})
    stack = generated_stack("<again>")
    assert [frame.filename for frame in origins(stack)] == ["new.py"]
    generated.unregister("<again>")
    assert origins(stack) == []
    with pytest.raises(ValueError, match="no line map is registered for '<again>'"):
        generated.unregister("<again>")


def test_unregistering_what_is_not_registered_is_an_error():
    with pytest.raises(ValueError, match="is not a registered provider"):
        generated.unregister(lambda filename, line: None)


def test_line_maps_come_before_providers():
    generated.register_provider(lambda filename, line: [("provider.py", 1)])
    generated.register("<order>", {2: ("map.py", 1)})
    stack = generated_stack("<order>")
    assert stack.frames[1].filename == "map.py"


def test_a_provider_can_be_a_decorator_and_is_asked_once_for_each_line():
    asked = []

    @generated.register_provider
    def provide(filename, line):
        asked.append((filename, line))

    stack = generated_stack("<asked>")
    whence.symbolize([stack, stack, generated_stack("<asked>")])
    assert callable(provide)
    assert asked.count(("<asked>", 2)) == 1
    assert len(asked) == len(set(asked))


def test_a_provider_that_fails_is_noted_and_the_next_is_asked():
    @generated.register_provider
    def broken(filename, line):
        raise LookupError("no idea")

    @generated.register_provider
    def nonsense(filename, line):
        return 7

    generated.register_provider(
        lambda filename, line: ("good.py", 3) if filename == "<failing>" else None
    )
    stack = generated_stack("<failing>")
    assert [frame.filename for frame in origins(stack)] == ["good.py"]
    notes = generated.failures()
    assert any(note.endswith("broken: LookupError: no idea") for note in notes)
    assert any("nonsense: TypeError" in note for note in notes)
    assert len(notes) == 2


def test_only_the_latest_failures_are_kept():
    count = iter(range(1000))

    @generated.register_provider
    def broken(filename, line):
        raise LookupError(next(count))

    for _ in range(20):
        assert whence.capture(limit=1).frames
    notes = generated.failures()
    assert len(notes) == 16
    assert notes[-1].endswith(f"LookupError: {next(count) - 1}")


def test_an_interrupt_in_a_provider_is_not_swallowed():
    @generated.register_provider
    def interrupted(filename, line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generated_stack("<interrupted>").frames


def test_json_has_the_origins_too():
    import json

    generated.register("<json>", {2: ("a.py", 10, "f")})
    (frames,) = json.loads(whence.to_json([generated_stack("<json>")]))
    assert frames[1] == {
        "name": "f",
        "filename": "a.py",
        "line": 10,
        "column": None,
        "end_line": None,
        "end_column": None,
        "kind": "generated",
    }


def test_origins_are_shown_in_tracebacks():
    generated.register("<shown>", {2: ("a.py", 10, "f")})
    text = str(generated_stack("<shown>"))
    assert text.index('File "a.py", line 10, in f') < text.index(
        'File "<shown>", line 2'
    )


def test_registering_from_many_threads_while_others_symbolize():
    before = generated._line_maps
    stack = generated_stack("<busy 0>")
    stop = threading.Event()
    wrong = []

    def change(number):
        while not stop.is_set():
            generated.register(f"<busy {number}>", {2: (f"{number}.py", 1)})
            provider = generated.register_provider(lambda filename, line: None)
            generated.unregister(provider)
            generated.unregister(f"<busy {number}>")

    def look():
        for _ in range(300):
            names = [frame.filename for frame in origins(stack)]
            if names not in ([], ["0.py"]):
                wrong.append(names)

    changers = [threading.Thread(target=change, args=[i]) for i in range(4)]
    lookers = [threading.Thread(target=look) for _ in range(4)]
    for thread in changers + lookers:
        thread.start()
    for thread in lookers:
        thread.join()
    stop.set()
    for thread in changers:
        thread.join()
    assert wrong == []
    assert generated._line_maps == before


def test_sources_of_executed_code_are_found_through_linecache():
    import linecache

    source = "def made():\n    return capture()  # in the cache\n"
    linecache.cache["<cached>"] = (
        len(source),
        None,
        source.splitlines(True),
        "<cached>",
    )
    try:
        namespace = {"capture": whence.capture}
        exec(compile(source, "<cached>", "exec"), namespace)
        assert "return capture()  # in the cache" in str(namespace["made"]())
    finally:
        del linecache.cache["<cached>"]


class TestTracebacks:
    def fail(self, filename="<fails>"):
        namespace = {}
        exec(compile("def made():\n    return 1 / 0\n", filename, "exec"), namespace)
        namespace["made"]()

    def test_sources_stand_before_what_was_generated_from_them(self):
        generated.register("<fails>", {2: [("a.ex", 7, "inner"), ("b.ex", 8, "outer")]})
        with pytest.raises(ZeroDivisionError) as caught:
            self.fail()
        text = generated.format_exception(caught.value)
        lines = ['"b.ex", line 8, in outer', '"a.ex", line 7, in inner']
        lines += ['"<fails>", line 2, in made', "ZeroDivisionError: division by zero"]
        places = [text.index(line) for line in lines]
        assert places == sorted(places)
        assert text.startswith("Traceback (most recent call last):\n")

    def test_causes_and_groups_have_them_too(self):
        generated.register("<fails>", {2: ("a.ex", 7, "inner")})
        errors = []
        for _ in range(2):
            try:
                self.fail()
            except ZeroDivisionError as error:
                errors.append(error)
        wrapped = ValueError("wrapped")
        wrapped.__cause__ = errors[0]
        text = generated.format_exception(ExceptionGroup("all", [wrapped, errors[1]]))
        assert text.count('"a.ex", line 7, in inner') == 2

    @pytest.mark.parametrize("grouped", [False, True])
    def test_what_has_no_line_is_printed_without_one(self, grouped):
        """As of a handle whose source nobody knows; a stack prints it so, too."""
        recorder = handles.Recorder()
        handle = recorder.issue(None, "mul", handles.InlinedCall("fwd", None))
        recorder.stop().line_map("<fails>", {2: handle})
        with pytest.raises(ZeroDivisionError) as caught:
            self.fail()
        error = ExceptionGroup("all", [caught.value]) if grouped else caught.value
        text = generated.format_exception(error)
        assert "None" not in text
        assert re.search(r'^[ |]*  File "<unknown>", in fwd$', text, re.MULTILINE)

    def test_nothing_is_added_where_nothing_is_known(self):
        with pytest.raises(ZeroDivisionError) as caught:
            self.fail("<nobody knows>")
        plain = "".join(traceback.format_exception(caught.value))
        assert generated.format_exception(caught.value) == plain

    def test_origins_of_a_line(self):
        generated.register("<fails>", {2: ("a.ex", 7, "inner")})
        (frame,) = generated.origins("<fails>", 2)
        assert frame == whence.Frame("inner", "a.ex", 7, kind="generated")
        assert generated.origins("<fails>", 3) == ()
