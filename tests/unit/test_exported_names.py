"""The public surface is exactly what it says it is."""

import inspect
from pathlib import Path

import whence
import whence.generated

PUBLIC = [
    *("Frame", "Recording", "RecordingError", "Stack", "__version__", "capture"),
    *("counter", "generated", "get_include", "mark", "open", "record", "schedule"),
    *("span", "statistics", "symbolize", "to_json", "tracers"),
]


def test_all_is_exact_and_sorted(run_python):
    assert whence.__all__ == PUBLIC == sorted(PUBLIC)
    # Other tests may have imported more of the package.
    names = run_python("import whence; print(*vars(whence))").split()
    public = {name for name in names if not name.startswith("_")}
    assert public == set(PUBLIC) - {"__version__"}


def test_generated_says_what_it_exports():
    assert whence.generated.__all__ == sorted(whence.generated.__all__)
    for name in whence.generated.__all__:
        assert callable(getattr(whence.generated, name))


def test_everything_public_is_documented_and_named_after_its_place():
    for name in PUBLIC:
        if name != "__version__":
            assert inspect.getdoc(getattr(whence, name)), name
    assert whence.Stack.__module__ == whence.Frame.__module__ == "whence"
    assert (
        str(inspect.signature(whence.capture)) == "(*, skip=0, limit=None, origin=None)"
    )


def test_the_header_is_where_get_include_says():
    header = Path(whence.get_include()) / "whence.h"
    assert "whence_api" in header.read_text()


def test_the_version_is_the_one_of_the_package():
    from importlib import metadata

    assert whence.__version__ == metadata.version("whence")
