"""The public surface is exactly what it says it is."""

import copy
import inspect
import pickle
from pathlib import Path

import pytest

import whence
import whence.generated
from whence import _events, _frame, _statistics

PUBLIC = [
    *("Frame", "Recording", "RecordingError", "Stack", "__version__", "capture"),
    *("counter", "generated", "get_include", "handles", "mark", "memory", "open"),
    *("record", "schedule", "span", "statistics", "symbolize", "to_json", "tracers"),
]
LAZY = {
    "handles": [
        *("UNKNOWN", "HandleRecord", "HandleTable", "HandleTableError", "InlinedCall"),
        *("LoweredError", "Recorder", "SourceRange", "event", "install", "uninstall"),
    ],
    "memory": ["Domain", "domain", "export_history", "snapshot", "stack_of", "tag"],
}


def test_all_is_exact_and_sorted(run_python):
    assert whence.__all__ == PUBLIC == sorted(PUBLIC)
    # Other tests may have imported more of the package.
    names = run_python("import whence; print(*vars(whence))").split()
    public = {name for name in names if not name.startswith("_")}
    assert public == set(PUBLIC) - {"__version__", *LAZY}


@pytest.mark.parametrize("name", LAZY)
def test_some_modules_are_imported_when_they_are_asked_for(run_python, name):
    for ask in (f"whence.{name}", f"exec('from whence import {name}') or {name}"):
        out = run_python(
            "import sys, whence; "
            f"print('whence.{name}' in sys.modules, {ask}.__all__, sep='\\n')"
        )
        assert out == f"False\n{LAZY[name]}\n"
    assert not hasattr(whence, "memories")


def test_what_is_said_to_be_in_whence_is_found_there():
    """Pickles look for it there; it is in no list of names."""
    types = [
        value
        for module in (_events, _frame, _statistics)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, tuple)
    ]
    assert len(types) > 14
    for type_ in types:
        assert getattr(whence, type_.__name__) is type_
        assert type_.__module__ == "whence"
        item = type_(*range(len(type_._fields)))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(item, protocol))
            assert (type(again), again) == (type_, item)
        assert copy.deepcopy(item) == copy.copy(item) == item
    assert {t.__name__ for t in types} - {"Frame"} == set(whence._TYPES)


def test_a_pickle_of_what_was_read_is_read_where_nothing_is_imported(run_python):
    item = _events.Function("f", "a.py", 1, 2, 3, 4)
    out = run_python(f"import pickle; print(pickle.loads({pickle.dumps([item])}))")
    assert out == f"{[item]}\n"
    out = run_python("import sys, whence; print('whence._events' in sys.modules)")
    assert out == "False\n"


def test_generated_says_what_it_exports():
    assert whence.generated.__all__ == sorted(whence.generated.__all__)
    for name in whence.generated.__all__:
        assert callable(getattr(whence.generated, name))


def test_everything_public_is_documented_and_named_after_its_place():
    for name in PUBLIC:
        if name != "__version__":
            assert inspect.getdoc(getattr(whence, name)), name
    assert whence.Stack.__module__ == whence.Frame.__module__ == "whence"
    signature = "(*, native=False, skip=0, limit=None, origin=None)"
    assert str(inspect.signature(whence.capture)) == signature


def test_the_header_is_where_get_include_says():
    header = Path(whence.get_include()) / "whence.h"
    assert "whence_api" in header.read_text()


def test_the_version_is_the_one_of_the_package():
    from importlib import metadata

    assert whence.__version__ == metadata.version("whence")
