"""HandleTable.explain(root=): the folder below which sources are opened."""

import re

import pytest

from whence import handles


class BytesPath:
    def __fspath__(self):
        return b"folder"


@pytest.fixture
def table():
    recorder = handles.Recorder()
    recorder.issue(handles.SourceRange("model.ex", 2), "mul")
    return recorder.stop()


def test_is_a_str_or_a_path(table, tmp_path):
    (handle,) = table
    (tmp_path / "model.ex").write_text("first\n    second\n")
    for root in (tmp_path, str(tmp_path)):
        assert "    second\n" in table.explain(handle, root=root)


@pytest.mark.parametrize(
    ("root", "type_"),
    [(b"folder", "bytes"), (BytesPath(), "bytes"), (3, "int"), (["a"], "list")],
)
def test_is_nothing_else(table, root, type_):
    message = f"^{re.escape(f'root must be a str or a path, not {type_}')}$"
    with pytest.raises(TypeError, match=message):
        table.explain([], root=root)
