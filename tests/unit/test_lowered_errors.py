"""Errors of lowered code show their source wherever Python shows errors."""

import copy
import gc
import io
import logging
import pickle
import threading
import traceback

import pytest

from whence import handles
from whence.handles import LoweredError, Recorder, SourceRange


@pytest.fixture
def recorder():
    return Recorder()


def issue(recorder, line):
    return recorder.issue(SourceRange("model.ex", line), "div")


@pytest.fixture
def known(recorder):
    """A handle of line 30, in a table that is installed."""
    handle = issue(recorder, 30)
    table = handles.install(recorder.stop())
    yield handle
    handles.uninstall(table)


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return caught


SHOWN = '  File "model.ex", line 30, in <top>\n'


def of_traceback(error):
    return "".join(traceback.format_exception(error))


def of_print(error):
    out = io.StringIO()
    traceback.print_exception(error, file=out)
    return out.getvalue()


def of_logging(error):
    out = io.StringIO()
    logger = logging.Logger("lowered")  # noqa: LOG001 - of this test alone
    logger.addHandler(logging.StreamHandler(out))
    logger.error("failed", exc_info=error)
    return out.getvalue()


@pytest.mark.parametrize("show", [of_traceback, of_print, of_logging])
class TestShown:
    def test_after_the_message(self, known, show):
        text = show(raised(LoweredError("division by zero", known)))
        message = "whence.handles.LoweredError: division by zero\n"
        assert text.index(message) < text.index(SHOWN)
        assert f"Traceback of handle {known} (most recent call last):\n" in text

    def test_as_a_cause_and_as_a_context(self, known, show):
        def cause():
            try:
                raise LoweredError("inner", known)
            except LoweredError as error:
                raise ValueError("outer") from error

        def context():
            try:
                raise LoweredError("inner", known)
            except LoweredError:
                raise ValueError("outer")  # noqa: B904

        for chain in (cause, context):
            with pytest.raises(ValueError, match="outer") as caught:
                chain()
            assert SHOWN in show(caught.value)

    def test_in_a_group(self, known, show):
        group = ExceptionGroup("two", [LoweredError("a", known), ValueError("b")])
        text = show(raised(group))
        assert "line 30, in <top>" in text
        assert "ValueError: b" in text

    def test_as_a_derived_class(self, known, show):
        class KernelError(LoweredError):
            pass

        assert SHOWN in show(raised(KernelError("x", known)))


def test_an_error_that_nobody_catches(run_python):
    out = run_python("""
        import subprocess, sys, textwrap
        program = '''if True:
            from whence import handles
            recorder = handles.Recorder()
            handle = recorder.issue(handles.SourceRange("model.ex", 30), "div")
            table = handles.install(recorder.stop())
            raise handles.LoweredError("division by zero", handle)
        '''
        done = subprocess.run([sys.executable, "-c", program], capture_output=True)
        print(done.stderr.decode())
    """)
    assert out.index("LoweredError: division by zero") < out.index(SHOWN)


def test_notes_follow_push(recorder, known):
    error = LoweredError("x", known)
    assert error.push(10**17) is error
    error.add_note("mine")
    source, note = error.__notes__
    assert note == "mine"
    assert SHOWN in source + "\n"
    assert source.endswith(f"Handle {10**17} is not in the table.")
    error.__notes__ = [*error.__notes__, "another"]
    assert error.__notes__ == [source, "mine", "another"]
    with pytest.raises(TypeError, match="note must be a str, not int"):
        error.add_note(3)


class TestNotesOfOthers:
    """PEP 678: ``__notes__`` is a list, and tools change it as they like."""

    def test_they_stay_wherever_they_were_put(self, known):
        error = LoweredError("x", known)
        error.__notes__.append("last")
        error.__notes__.insert(0, "first")
        error.add_note("mine")
        BaseException.add_note(error, "of the base class")
        first, source, *rest = error.__notes__
        assert first == "first"
        assert SHOWN in source + "\n"
        assert rest == ["last", "mine", "of the base class"]

    def test_they_are_shown_with_the_source(self, known):
        error = LoweredError("x", known)
        error.__notes__.append("from a tool")
        text = of_traceback(raised(error))
        assert text.index(SHOWN) < text.index("from a tool\n")
        assert text.count("Traceback of handle") == text.count("from a tool") == 1

    def test_they_stay_when_the_source_changes(self, known):
        other = Recorder()
        handle = issue(other, 7)
        error = LoweredError("x", known)
        notes = error.__notes__
        notes.append("early")
        error.push(handle)
        notes.append("late")  # to the list of before
        assert f"Handle {handle} is not in the table." in error.__notes__[0]
        table = handles.install(other.stop())
        source, *rest = error.__notes__
        assert rest == ["early", "late"]
        assert source.index("line 7,") < source.index("line 30,")
        assert of_traceback(error).count("Traceback of handle") == 1
        handles.uninstall(table)

    def test_the_source_cannot_be_taken_away(self, known):
        error = LoweredError("x", known)
        (source,) = error.__notes__
        error.__notes__.append("gone")
        error.__notes__.clear()
        assert error.__notes__ == [source]
        error.__notes__ = ("new", "ones")
        assert error.__notes__ == [source, "new", "ones"]

    def test_a_list_that_was_assigned_is_the_one_that_is_used(self, known):
        error = LoweredError("x", known)
        mine = ["one"]
        error.__notes__ = mine
        assert error.__notes__ == [mine[0], "one"]
        mine.append("two")
        assert error.__notes__[1:] == ["one", "two"]

    def test_what_is_no_text_harms_nothing(self, known):
        error = LoweredError("x", known)
        error.__notes__.append(3)
        error.push(5)
        assert error.__notes__[1:] == [3]
        assert SHOWN in of_traceback(error)

    @pytest.mark.parametrize(
        "copied",
        [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))],
    )
    def test_copies_have_them(self, known, copied):
        error = LoweredError("x", known)
        error.__notes__.insert(0, "first")
        error.__notes__.append("last")
        twin = copied(error)
        assert twin.__notes__ == error.__notes__
        twin.__notes__.append("of the twin")
        assert "of the twin" not in error.__notes__
        assert len(twin.push(5).__notes__) == 4
        first, source, *rest = copied(twin).__notes__
        assert (first, rest) == ("first", ["last", "of the twin"])
        assert source.count("line 30,") == 1
        assert "Handle 5 is not in the table." in source

    def test_from_many_threads(self, known):
        error = LoweredError("x", known)

        def work(number):
            error.__notes__.append(f"note {number}")
            error.push(number + 10**17)
            assert error.__notes__

        threads = [threading.Thread(target=work, args=[n]) for n in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (_, *notes) = error.__notes__
        assert sorted(notes) == sorted(f"note {n}" for n in range(50))


def test_only_handles_can_be_pushed():
    with pytest.raises(TypeError, match="a handle is an int or"):
        LoweredError("x", "7")
    error = LoweredError("x", 7)
    with pytest.raises(TypeError, match="a handle is an int or"):
        error.push(None)
    assert error.handles == (7,)


def test_several_tables_are_asked(known):
    other = Recorder()
    handle = issue(other, 7)
    error = LoweredError("x", known).push(handle)
    assert f"Handle {handle} is not in the table." in error.__notes__[0]
    table = handles.install(other.stop())
    (note,) = error.__notes__  # a table may come later
    assert note.index("line 7,") < note.index("line 30,")
    handles.uninstall(table)


def test_a_later_table_of_one_recorder_adds_to_an_earlier_one(recorder, known):
    later = issue(recorder, 31)
    table = handles.install(recorder.stop())
    (note,) = LoweredError("x", later).push(known).__notes__
    assert note.index("line 30,") < note.index("line 31,")
    handles.uninstall(table)


def test_an_error_keeps_the_tables_it_was_raised_with(recorder):
    handle = issue(recorder, 30)
    table = handles.install(recorder.stop())
    error = LoweredError("x", handle)
    del table
    gc.collect()
    assert "line 30," in error.__notes__[0]
    del error
    gc.collect()
    assert "line 30," not in LoweredError("x", handle).__notes__[0]


def test_a_copy_says_what_the_tables_say(recorder):
    class WithMore(LoweredError):
        pass

    handle = issue(recorder, 30)
    table = handles.install(recorder.stop())
    error = LoweredError("x", handle).push(5)
    error.add_note("mine")
    data, notes = pickle.dumps(error), error.__notes__
    more = WithMore("y", handle)
    more.code = 7
    twin = copy.copy(more)
    assert (type(twin), twin.code, twin.args) == (WithMore, 7, ("y",))
    handles.uninstall(table)
    del table, error, more, twin
    again = pickle.loads(data)
    assert again.__notes__ == notes
    assert again.handles == (handle, 5)
    assert str(again) == "x"


def test_installing_twice_is_once(recorder):
    table = recorder.stop()
    assert handles.install(table) is table
    handles.install(table)
    handles.uninstall(table)
    with pytest.raises(ValueError, match="is not installed"):
        handles.uninstall(table)
    with pytest.raises(TypeError, match=r"install\(\) takes a HandleTable, not int"):
        handles.install(3)


def test_what_nobody_issues_is_no_handle():
    for handle in (-2, -7, ("0" * 32, -7), 2**63 - 1, 10**5000):
        with pytest.raises(ValueError, match=r"^-?0x[0-9a-f]+ is no handle"):
            handles.LoweredError("x", handle)
        with pytest.raises(ValueError, match=r"^-?0x[0-9a-f]+ is no handle"):
            handles.LoweredError("x", -1).push(handle)
    with pytest.raises(ValueError, match=r"^a namespace is a str of 32 hexa"):
        handles.LoweredError("x", ("nonsense", 3))


def test_notes_can_be_taken_away_but_not_the_source():
    error = handles.LoweredError("x", 10**17)
    error.add_note("mine")
    del error.__notes__
    (source,) = error.__notes__
    assert "is not in the table" in source
