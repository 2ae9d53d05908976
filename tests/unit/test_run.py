"""whence run: every program does what it does when python runs it."""

import importlib
import importlib.machinery
import os
import py_compile
import signal
import sys
import zipapp

import pytest

import whence
from harness.beside_python import execute
from harness.beside_python import whence as whence_command
from whence.cli import _import_path

pytestmark = pytest.mark.store

DESCRIBE = """\
'''A program that describes itself.'''
import sys, __main__
names = vars(__main__)
print(list(names))
for name in ("name", "doc", "package", "file", "cached", "annotations", "builtins"):
    print(name, names.get(f"__{name}__", "is not there"))
for loader in (names["__loader__"], getattr(names["__spec__"], "loader", None)):
    print(type(loader), getattr(loader, "name", ""), getattr(loader, "path", ""))
spec = names["__spec__"]
print(spec and (spec.name, spec.origin, spec.parent, spec.cached))
print(sys.modules["__main__"] is __main__, sys.argv, sys.path, sys.flags)
frame = sys._getframe()
while frame:
    print(frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno)
    frame = frame.f_back
print(sys.exc_info(), sys.stdin.read())
"""


def test_a_script(beside):
    beside.write("app.py", DESCRIBE)
    beside.same("app.py", "-q", "--", "-m", "two words", "", "ü", stdin=b"in put")
    beside.same("./app.py")
    beside.same("../program/app.py")
    beside.same(beside.folder / "app.py")
    beside.same("--", "app.py", "x")
    beside.write("folder/other.py", DESCRIBE)
    beside.same("folder/other.py")
    (beside.folder / "link.py").symlink_to("folder/other.py")
    beside.same("link.py")
    beside.same_text(DESCRIBE, name="ümläut and space.py")
    beside.same_text(DESCRIBE, name="no_suffix")
    beside.write("-dash.py", DESCRIBE)
    beside.same("./-dash.py")
    (beside.folder / os.fsdecode(b"byte-\xff.py")).write_text("print('ran')")
    assert beside.same(os.fsdecode(b"byte-\xff.py")).out == b"ran\n"


def test_a_module(beside):
    beside.write("app.py", DESCRIBE)
    beside.write("package/__init__.py", "print('init')")
    beside.write("package/__main__.py", DESCRIBE)
    beside.write("package/part.py", DESCRIBE)
    beside.write("namespace/inside.py", DESCRIBE)
    beside.write("namespace/inner/__main__.py", DESCRIBE)
    for module in (
        *("app", "package", "package.part", "package.__main__"),
        *("namespace.inside", "namespace.inner"),
    ):
        done = beside.same("-m", module, "-m", "a b", stdin=b"input")
        assert done.status == 0
    beside.same("-mapp", "joined")


def test_a_command(beside):
    beside.same("-c", DESCRIBE, "-c", "a b", stdin=b"input")
    beside.same("-cprint(1)")
    beside.same("-c", "def f():\n    1/0\nf()")
    beside.same("-c", "x = =")
    beside.same("-c", "")
    beside.same("-c", "import sys; print(sys.argv)", "--", "-q")
    beside.same("-c", "  print('indented')")


def test_a_folder_and_an_archive(beside, tmp_path):
    beside.write("folder/__main__.py", DESCRIBE + "import beside\n")
    beside.write("folder/beside.py", "print('beside', __file__)")
    archive = beside.folder / "app.pyz"
    zipapp.create_archive(beside.folder / "folder", archive)
    for target in ("folder", "folder/", "./folder", "app.pyz", archive):
        assert beside.same(target, "x", stdin=b"input").status == 0
    beside.write("broken/__main__.py", "def f():\n    1/0\nf()\n")
    assert beside.same("broken").status == 1
    (beside.folder / "empty").mkdir()
    assert b"can't find '__main__' module" in beside.same("empty").err


def test_a_compiled_script(beside):
    source = beside.write("app.py", DESCRIBE)
    py_compile.compile(source, beside.folder / "app.pyc")
    (beside.folder / "app.pyc").rename(beside.folder / "compiled")
    beside.same("compiled")
    (beside.folder / "compiled").rename(beside.folder / "moved.pyc")
    source.unlink()
    assert beside.same("moved.pyc").status == 0
    (beside.folder / "bad.pyc").write_bytes(b"this is none, for sure")
    beside.same("bad.pyc")


def test_a_program_that_comes_on_the_standard_input(beside):
    program = (
        b"import sys\nprint(sys.argv, sys.path, vars())\nprint(sys.stdin.read())\n"
    )
    program = program.replace(b"vars()", b"list(vars()), __file__, __loader__")
    beside.same("-", "x", stdin=program)
    beside.same("-", stdin=b"def f():\n    1/0\nf()\n")
    beside.same("-", stdin=b"x = =\n")
    beside.same("/dev/stdin", "x", stdin=program.replace(b"__loader__", b"__name__"))
    beside.same("/dev/stdin", stdin=b"1/0\n")


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.exit(3)",
        "import sys; sys.exit(256 + 7)",
        "import sys; sys.exit(-1)",
        "import sys; sys.exit('a message, ü')",
        "import sys; sys.exit(None)",
        "import sys; sys.exit((1, 2))",
        "import sys; sys.exit(True)",
        "raise SystemExit",
        "raise SystemExit(4, 5)",
        "class Mine(SystemExit): pass\nraise Mine(6)",
        "exit(7)",
        "raise KeyboardInterrupt",
        "class Mine(KeyboardInterrupt): pass\nraise Mine('x')",
        "import os; print('lost'); os._exit(8)",
        "import os; os.abort()",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'print(1)'])",
        "raise GeneratorExit",
        "raise BaseException('base')",
        "pass",
    ],
)
def test_how_it_ends(beside, code):
    beside.same_text(code)
    beside.same("-m", "app")
    beside.same("-c", code)


@pytest.mark.parametrize(
    "code",
    [
        "def f(n):\n    return 1 / n\n\ndef g():\n    f(0)\n\ng()",
        "def f():\n    f()\nf()",
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError(1) from e",
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    {}['x']",
        "raise ExceptionGroup('many', [ValueError(1), TypeError(2)])",
        "import json; json.loads('{')",
        "import missing_module",
        "eval('1 +')",
        "exec(compile('1/0', 'elsewhere.py', 'exec'))",
        "e = ValueError('ü\\udc80'); e.add_note('a note'); raise e",
        "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd",
        "import sys; sys.tracebacklimit = 1\ndef f(): 1/0\nf()",
        "assert not 'this', 'that'",
        "x = 1\nif x is 1: pass\n'\\d'",
        "x = =",
        "def f():\npass",
        "print('unclosed",
        "from __future__ import annotations\nx: Nothing = 1\nprint(__annotations__)",
        "import warnings; warnings.warn('here'); warnings.warn('there', stacklevel=2)",
        "import traceback; traceback.print_stack()",
        "import inspect; print([f.function for f in inspect.stack()])",
        "def f(n):\n try: return f(n+1)\n except RecursionError: return n\nprint(f(0))",
    ],
)
def test_what_it_prints(beside, code):
    beside.same_text(code)
    beside.same("-m", "app")
    beside.same("-c", code)


@pytest.mark.parametrize(
    "hook",
    [
        "lambda *args: print('hook', args[0], args[2].tb_frame.f_code.co_name)",
        "lambda *args: 1 / 0",
        "lambda *args: sys.exit(9)",
        "lambda *args: print(sys.exc_info(), sys._getframe().f_back)",
        "None",
    ],
)
def test_a_hook_for_exceptions(beside, hook):
    code = f"import sys, atexit\nsys.excepthook = {hook}\n"
    code += (
        "atexit.register(lambda: print(sys.last_type, sys.last_traceback.tb_next))\n"
    )
    beside.same_text(code + "raise KeyError('x')\n")
    beside.same_text(
        code.replace("sys.excepthook = None", "del sys.excepthook") + "1/0\n"
    )


def test_what_cannot_be_run(beside):
    for arguments in (
        ["missing.py"],
        ["missing/deep.py"],
        ["-m", "missing_module"],
        ["-m", "missing_module.part"],
        ["-m", "json.missing"],
        ["-m", ".relative"],
        ["-m", "json.decoder.deeper"],
        ["-m", "xml"],
    ):
        done = beside.same(*arguments)
        assert done.status in (1, 2), arguments
    beside.write("bad.py", "x = =\n")
    beside.same("-m", "bad")
    beside.write("package/__init__.py", "1/0\n")
    beside.same("-m", "package")
    unreadable = beside.write("unreadable.py", "print(1)")
    unreadable.chmod(0)
    beside.same("unreadable.py")
    beside.same(beside.folder)
    assert [*beside.folder.glob("*.whence")] == []


def test_a_prompt_afterwards(beside):
    for end in ("pass", "1/0"):
        beside.write("app.py", f"x = 5\n{end}\n")
        beside.same("app.py", python=["-i"], stdin=b"print(x, __name__)\n")


def test_the_command_that_is_installed(beside, tmp_path):
    """Not as a module, but as a script in another folder."""
    script = tmp_path / "bin" / "whence"
    script.parent.mkdir()
    script.write_text("import sys\nfrom whence.cli import main\nsys.exit(main())\n")
    beside.write("app.py", DESCRIBE)
    ours = [sys.executable, script, "run", "-q", "-f", "-o", beside.recording]
    for arguments in (
        *(["app.py", "x"], ["-m", "app", "x"], ["-c", DESCRIBE], ["-c", "1/0"]),
        *(["-c", "raise KeyboardInterrupt"], ["-c", "exit(3)"], ["missing.py"]),
    ):
        expected = execute([sys.executable, *arguments], cwd=beside.folder)
        assert execute([*ours, *arguments], cwd=beside.folder) == expected


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_signals(beside, number):
    wait = "import time\nprint('ready', flush=True)\ntime.sleep(30)\n"
    assert beside.same_text(wait, kill=number).status == -number
    assert beside.same("-m", "app", kill=number).status == -number
    handler = (
        f"import signal, sys\nsignal.signal({int(number)}, lambda n, f: sys.exit(n))\n"
    )
    assert beside.same_text(handler + wait, kill=number).status == number
    with whence.open(beside.recording) as recording:
        assert recording.info.closed


def test_streams_in_the_order_of_python(beside):
    code = """
        import sys
        print("out")
        print("err", file=sys.stderr)
        print("more out")
        {}
    """
    for end in ("1/0", "sys.exit('message')", "pass", "raise KeyboardInterrupt"):
        beside.same_text(code.format(end), merge=True)
        beside.same("-m", "app", merge=True)
    for change in ("sys.stdout = None", "sys.stderr = None", "sys.stdout.close()"):
        beside.same_text(code.format(change))
    beside.same_text(code.format("del sys.stdout; 1/0"))


@pytest.mark.parametrize(
    "python",
    [
        *(["-I"], ["-E"], ["-P"], ["-s"], ["-O"], ["-OO"], ["-B"], ["-u"], ["-b"]),
        *(["-Werror"], ["-Xdev"], ["-Xutf8"], ["-Xfrozen_modules=off"], ["-d"]),
    ],
)
def test_options_of_python(beside, python):
    beside.write("app.py", DESCRIBE + "import beside_it\n")
    beside.write("beside_it.py", "assert False, 'not with -O'\n")
    for arguments in (["app.py"], ["-m", "app"], ["-c", DESCRIBE], ["."]):
        beside.same(*arguments, python=python)


def test_what_is_imported_before_the_program_is_little(beside):
    beside.write("app.py", "import sys\nprint(*sys.modules)\n")
    plain = execute([sys.executable, "app.py"], cwd=beside.folder).out.split()
    ours = beside.run("-q", "-f", "-o", beside.recording, "app.py").out.split()
    extra = {name.decode() for name in set(ours) - set(plain)}
    extra = {name for name in extra if not name.startswith(("whence", "backports"))}
    heavy = {"rich", "argparse", "re", "pathlib", "typing", "dataclasses", "json"}
    heavy |= {
        "inspect",
        "tomllib",
        "signal",
        "socket",
        "subprocess",
        "logging",
        "shlex",
    }
    assert not extra & heavy, extra


def test_modules_of_the_program_are_its_own(beside):
    names = ("rich", "argparse", "tomllib", "difflib", "shlex", "glob", "signal", "cli")
    names += ("typing", "logging", "textwrap", "string", "random", "dataclasses")
    for name in names:
        beside.write(f"{name}.py", "print(__name__, __file__)")
    text = "".join(f"import {name}\n" for name in names)
    beside.same_text(text)
    done = beside.run("-f", "-o", beside.recording, "app.py")
    assert done.status == 0
    assert done.out == beside.same("app.py").out
    assert done.err.startswith(b"whence: recorded ")
    assert b"look further" in done.err


@pytest.mark.parametrize("options", [[], ["--memory"], ["--memory-all", "--native"]])
def test_all_modules_of_the_program_may_have_names_of_pythons(beside, options):
    # All that is not imported before the program begins is the program's to have.
    text = "import sys; print(*sorted(sys.stdlib_module_names - set(sys.modules)))"
    beside.write("names.py", text)
    ours = ["-f", "-o", beside.recording, *options]
    done = beside.run("-q", *ours, "names.py")
    builtin = (importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter)
    names = [
        name
        for name in done.out.decode().split()
        if not any(importer.find_spec(name) for importer in builtin)
        and name != "distutils"  # setuptools finds it in its own way
    ]
    assert {"typing", "json", "inspect", "dataclasses", "re"} <= {*names}
    for name in ("rich", *names):
        beside.write(f"folder/{name}.py", "class Own: pass\n")
    text = "".join(f"import {name}; {name}.Own()\n" for name in ("rich", *names))
    # Also functions of atexit, and they come before the summary, have their own.
    text += "import atexit; atexit.register(lambda: print(__import__('typing').Own))\n"
    beside.write("folder/app.py", text)
    done = beside.run(*ours, "folder/app.py")
    assert (done.status, done.out) == (0, b"<class 'typing.Own'>\n"), done.err
    assert done.err.startswith(b"whence: recorded ")
    assert b"no summary" not in done.err
    assert b"look further" in done.err
    assert (b"  memory: at most" in done.err) == bool(options)


def test_modules_of_the_program_are_back_after_the_summary(beside, monkeypatch):
    for name in ("colorsys", "json/__init__", "json/decoder", "wave"):
        beside.write(f"{name}.py", "own = True")
    path = [*sys.path]
    names = ("colorsys", "json", "json.decoder", "wave")
    known = {each for each in sys.modules if each.partition(".")[0] in names}
    for name in known.union(names):
        monkeypatch.setitem(sys.modules, name, None)  # to be undone
        del sys.modules[name]
    monkeypatch.syspath_prepend(beside.folder)
    of_program = {name: importlib.import_module(name) for name in names}
    monkeypatch.setitem(sys.modules, "queue", None)  # which is not to be imported
    before = [*sys.path], sys.modules.copy()
    with _import_path.as_before(path):
        import colorsys
        import json.scanner
        import queue

        assert not any(hasattr(each, "own") for each in (colorsys, json, json.decoder))
        assert queue.Queue
        assert "wave" not in sys.modules
    assert (sys.path, sys.modules) == before
    assert all(module.own for module in of_program.values())


def test_a_summary_that_cannot_be_made_is_a_line(beside):
    text = """\
        import sys
        class Finder:
            def find_spec(self, name, *_):
                if name == "whence.cli._summary":
                    raise {error}("no\\nmore")
        sys.meta_path.insert(0, Finder())
    """
    for error in ("ImportError", "SystemExit"):
        beside.write("app.py", text.format(error=error))
        done = beside.run("-f", "-o", beside.recording, "app.py")
        (line,) = done.err.decode().splitlines()
        assert line.startswith("whence: recorded ")
        assert line.endswith(f"; no summary: {error}('no\\nmore')")


def test_modules_that_whence_needs_are_not_those_of_the_current_folder(beside):
    beside.write("pyproject.toml", "[tool.whence]\nquiet = false")
    for name in ("tomllib", "difflib", "json", "datetime", "rich", "argparse", "shlex"):
        beside.write(f"{name}.py", "raise SystemExit(__name__ + ' is not ours')")
    beside.write("app.py", "print('ran')\n")
    done = beside.run("-f", "-o", beside.recording, "--follow", "app.py")
    assert (done.status, done.out) == (0, b"ran\n")
    assert b"look further" in done.err
    assert b"did you mean" in beside.run("--quite", "app.py").err
    assert b"whence run" in beside.run("--help").out
    for verb in ("info", "summary", "verify"):
        done = execute(whence_command(verb, beside.recording), cwd=beside.folder)
        assert (done.status, done.err) == (0, b"")


def test_modules_that_a_recording_needs_are_not_the_programs(beside):
    needed = ("threading", "contextlib", "json", "gc", "atexit", "collections", "enum")
    for name in (*needed, "runpy", "datetime", "backports", "typing"):
        beside.write(f"folder/{name}.py", f"raise SystemExit('{name} is not ours')")
    beside.write("folder/app.py", "import sys\nprint('ran')\n")
    for options in ([], ["--follow", "--dump-on=exception", "--c-calls"]):
        ours = ["-f", "-o", beside.recording, *options]
        done = beside.run(*ours, "folder/app.py")
        assert (done.status, done.out) == (0, b"ran\n")
        assert b"look further" in done.err
