"""The providers that whence brings along, with the libraries themselves."""

import sys
import types

import jinja2
import pytest
from IPython.core.interactiveshell import InteractiveShell

import whence


def origins(stack):
    return [frame for frame in stack.frames if frame.kind == "generated"]


def test_a_jinja2_template_from_a_file(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("one\ntwo\n{% for i in range(1) %}\n  {{ look() }}\n{% endfor %}\n")
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(tmp_path))
    seen = []
    template = environment.get_template("page.html")
    template.render(look=lambda: seen.append(whence.capture()) or "")
    (frame,) = origins(seen[0])
    assert frame == whence.Frame("page.html", str(path), 4, kind="generated")
    text = str(seen[0])
    assert f'File "{path}", line 4, in page.html\n    {{{{ look() }}}}' in text


def test_a_jinja2_template_that_several_environments_have(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("\n\n{{ look() }}\n")
    seen = []
    look = lambda: seen.append(whence.capture()) or ""  # noqa: E731
    loader = jinja2.FileSystemLoader(tmp_path)
    one, other = (jinja2.Environment(loader=loader) for _ in range(2))
    page = one.get_template("page.html")
    page.render(look=look)
    same = other.get_template("page.html")
    assert [frame.line for frame in origins(seen[0])] == [3]
    path.write_text("{{ look() }}\n")
    different = jinja2.Environment(loader=loader).get_template("page.html")
    assert origins(seen[0]) == []  # they contradict: no guess is made
    assert same.name == different.name == page.name  # all were alive


def test_a_jinja2_template_from_a_string_if_it_is_the_only_one():
    seen = []
    look = lambda: seen.append(whence.capture()) or ""  # noqa: E731
    template = jinja2.Environment().from_string("\n\n{{ look() }}")
    template.render(look=look)
    assert [frame.line for frame in origins(seen[0])] == [3]
    other = jinja2.Environment().from_string("{{ look() }}")
    other.render(look=look)
    assert origins(seen[0]) == []  # two templates have that name: no guess is made


@pytest.mark.filterwarnings("ignore:Attempting to work in a virtualenv")
def test_an_ipython_cell():
    shell = InteractiveShell.instance()
    try:
        shell.user_ns["capture"] = whence.capture
        shell.run_cell("x = 1\nstack = capture()", store_history=True)
        (frame,) = origins(shell.user_ns["stack"])
        assert frame[:3] == ("<cell>", "Cell In[1]", 2)
    finally:
        InteractiveShell.clear_instance()


def test_inductor_output(monkeypatch):
    """PyTorch is not a test dependency: its code cache is stood in for."""

    class PyCodeCache:
        linemaps = {"/tmp/inductor/c1.py": [(2,), ("...",)]}  # noqa: RUF012

        @classmethod
        def stack_frames_for_code(cls, path, lineno):
            assert path == "/tmp/inductor/c1.py"  # answers are kept for ever
            if lineno != 2:
                return None
            return [
                {"filename": "model.py", "line": 9, "name": "forward"},
                {"filename": "train.py", "line": 5, "name": "step"},
            ]

    module = types.ModuleType("torch._inductor.codecache")
    module.PyCodeCache = PyCodeCache
    monkeypatch.setitem(sys.modules, "torch._inductor.codecache", module)
    namespace = {"capture": whence.capture}
    source = "def call():\n    return capture()\n"
    exec(compile(source, "/tmp/inductor/c1.py", "exec"), namespace)
    stack = namespace["call"]()
    assert [frame[:3] for frame in stack.frames[:3]] == [
        ("call", "/tmp/inductor/c1.py", 2),
        ("forward", "model.py", 9),
        ("step", "train.py", 5),
    ]


def test_nothing_is_imported_for_it(run_python):
    out = run_python(
        """
        import sys, whence
        whence.capture().frames
        print([m for m in ("jinja2", "torch", "IPython") if m in sys.modules])
        """
    )
    assert out == "[]\n"
