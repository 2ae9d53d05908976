"""whence run: its options, wherever they are given, and what is wrong with them."""

import inspect
import re
import sys
import time
from pathlib import Path

import pytest

import whence
from harness.beside_python import execute
from whence.cli import _settings, _sources

pytestmark = pytest.mark.store

PROGRAM = """
    import gc, json, subprocess, sys
    def outer():
        return inner()
    def inner():
        return len([1])
    for _ in range(100):
        outer()
    try:
        json.loads("{")
    except ValueError:
        gc.collect()
    if "child" in sys.argv:
        subprocess.run([sys.executable, "-c", "def child(): pass\\nchild()"])
    if "fail" in sys.argv:
        1 / 0
"""


@pytest.fixture
def app(beside):
    beside.write("app.py", PROGRAM)
    return beside


def record(app, *options, status=0, argument="", **how):
    """Run the program with these options; return what was recorded."""
    done = app.run("-q", "-f", "-o", app.recording, *options, "app.py", argument, **how)
    assert (done.status, done.out) == (status, b""), done.err
    return whence.open(app.recording)


def functions(recording):
    return {call.function for call in recording.calls().read()}


def one_line_of(done):
    """Return what it says; nothing has been run."""
    (line,) = done.err.decode().splitlines()
    assert done.status == 2
    assert done.out == b""
    assert line.startswith("whence: ")
    return line.removeprefix("whence: ")


def test_native_frames_need_memory(app):
    line = "native frames belong to stacks of memory: add --memory or --memory-all"
    for options, env, source in [
        (["--native"], {}, "--native"),
        (["--native", "--no-memory"], {"WHENCE_MEMORY": "1"}, "--native"),
        ([], {"WHENCE_NATIVE": "1"}, "WHENCE_NATIVE"),
    ]:
        done = app.run("-q", "-o", app.recording, *options, "app.py", env=env)
        assert one_line_of(done) == f"{source}: {line}"
    for options in (["--memory"], ["--memory-all"], ["--no-native"]):
        record(app, "--native", *options).close()
    with pytest.raises(ValueError, match="native frames belong to stacks of memory"):
        whence.record(native=True)


def test_calls(app):
    assert {"outer", "inner"} <= functions(record(app))
    assert functions(record(app, "--no-calls")) == set()
    assert "inner" in functions(record(app, "--no-calls", "--calls"))
    assert "builtins.len" in functions(record(app, "--c-calls"))
    assert "builtins.len" in functions(record(app, "--c_calls"))
    assert "builtins.len" not in functions(record(app, "--c-calls", "--no-c-calls"))


def test_exceptions_and_collections(app):
    assert list(record(app).exceptions) == []
    assert "JSONDecodeError" in str([*record(app, "--exceptions").exceptions])
    assert [*record(app).gc] != []
    assert [*record(app, "--no-gc").gc] == []


def test_memory(app):
    assert record(app).memory.counts.allocated == 0
    assert record(app, "--memory").memory.counts.allocated > 0
    for option, domains in (("--memory", 0b111), ("--memory-all", 0b11111)):
        (began,) = (r for r in record(app, option) if r.kind == "memory_on")
        assert began.fields["domains"] == domains
    full = record(app, "--memory", "--memory-detail", "full", "--no-calls")
    assert any(r.fields["stack"] for r in full if r.kind == "freed")


def test_filters(app):
    assert functions(record(app, "--include", "inner")) == {"inner"}
    assert functions(record(app, "--include", "app.py")) >= {"outer", "inner"}
    assert "inner" not in functions(record(app, "--exclude", "app.py"))
    assert functions(record(app, "--include", "ap[pq].py")) >= {"outer", "inner"}
    assert not functions(record(app, "--include", "pp.py"))
    both = record(app, "--include=inner", "--include", "outer")
    assert functions(both) == {"inner", "outer"}
    found = functions(record(app, "--exclude", "inner", "--exclude=*/json/*"))
    assert "outer" in found
    assert not {"inner", "JSONDecoder.decode"} & found
    assert "inner" not in functions(record(app, "--max-depth", "2"))
    assert any(c.count > 1 for c in record(app, "--min-duration", "1s").calls().read())


def test_the_file(app):
    assert record(app).info.packed
    assert not record(app, "--no-pack").info.packed
    assert record(app, "--chunk-size", "8KB", "--no-pack").info.chunk_size == 8192
    small = ("--max-size=40KB", "--chunk-size=4096", "--no-pack", "--c-calls")
    assert record(app, *small).info.size <= 40 * 1024
    assert record(app, "--keep", "30s").losses.dropped == {}


def test_follow_and_dumps(app):
    record(app, "--follow", argument="child")
    (child,) = app.recording.parent.glob("run-*.whence")
    assert "child" in functions(whence.open(child))
    record(app, "--dump-on", "SIGUSR2,exception", status=1, argument="fail")
    (dump,) = app.recording.parent.glob("run-dump-*.whence")
    assert "inner" in functions(whence.open(dump))
    more = ["--dump-on", "exception", "--dump-on=span>1s"]
    record(app, *more, status=1, argument="fail")
    assert len([*app.recording.parent.glob("run-dump-*.whence")]) == 2


def test_names_of_files(app):
    before = time.strftime("%Y%m%d")
    assert app.run("-q", "-o", "%p-%t-%%.whence", "app.py").status == 0
    (name,) = [path.name for path in app.folder.glob("*.whence")]
    assert re.fullmatch(rf"\d+-{before}-\d{{6}}-%\.whence", name)
    app.write("my module.py", "")
    app.write("package/__init__.py", "")
    app.write("package/__main__.py", "")
    for arguments, stem in (
        (["my module.py"], "my module"),
        (["-m", "package"], "package"),
        (["-m", "package.__main__"], "package.__main__"),
        (["package"], "package"),
        (["-c", ""], "command"),
        (["-"], "stdin"),
        ([app.folder / "app.py"], "app"),
    ):
        assert app.run("-q", *arguments).status == 0
        (path,) = app.folder.glob(f"{stem}-*.whence")
        assert path.name == f"{stem}-{whence.open(path).info.pid}.whence"
        path.unlink()
    assert app.run("-qf", "-oout.whence", "app.py").status == 0
    assert app.run("-fqo", "out.whence", "app.py").status == 0
    assert whence.open(app.folder / "out.whence").info.program == "app.py"


def test_a_file_that_is_there_stays(app):
    app.write("there.whence", "mine")
    line = one_line_of(app.run("-o", "there.whence", "app.py"))
    expected = "there.whence is there already: -f replaces it, -o FILE names another"
    assert line == expected
    assert (app.folder / "there.whence").read_text() == "mine"
    assert app.run("-q", "--force", "-o", "there.whence", "app.py").status == 0
    (app.folder / "folder").mkdir()
    line = one_line_of(app.run("-f", "-o", "folder", "app.py"))
    assert line == "folder is no file that could be replaced"
    line = one_line_of(app.run("-o", "folder", "app.py"))
    assert line == "folder is no file that could be replaced"
    line = one_line_of(app.run("-o", "missing/x.whence", "app.py"))
    assert line == "missing/x.whence: No such file or directory"


def test_a_name_that_nobody_has_asked_for_gives_way(app):
    program = """
        import os, sys
        sys.argv = ["whence", "run", *sys.argv[1:]]
        os.getpid = lambda: 1
        from whence.cli import main
        sys.exit(main())
    """
    app.write("first.py", program)
    for name in ("app-1.whence", "app-1-2.whence", "app-1-3.whence"):
        done = execute([sys.executable, "first.py", "app.py"], cwd=app.folder)
        assert done.err.decode().startswith(f"whence: recorded {name}: ")
        assert (app.folder / name).exists()
    third = (app.folder / "app-1-3.whence").read_bytes()
    for option in (["-f"], ["-o", "app-1.whence"]):
        command = [sys.executable, "first.py", *option, "app.py"]
        assert execute(command, cwd=app.folder).status == (2 if "-o" in option else 0)
    assert len([*app.folder.glob("*.whence")]) == 3
    assert (app.folder / "app-1-3.whence").read_bytes() == third


def test_where_there_is_no_room(app):
    limit = "import resource, runpy, sys, signal\n"
    limit += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
    limit += "runpy.run_module('whence', run_name='__main__')\n"
    app.write("limited.py", limit)
    command = [sys.executable, "limited.py", "run", "-o", "no.whence", "app.py"]
    line = one_line_of(execute(command, cwd=app.folder))
    assert line.startswith("no.whence: nothing can be recorded, ")
    assert not (app.folder / "no.whence").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "nothing to run"),
        (["-q"], "nothing to run"),
        (["-o"], "something is missing after -o"),
        (["-m"], "something is missing after -m"),
        (["--"], "something is missing after --"),
        (["--keep"], "something is missing after --keep"),
        (["--c-cals"], "there is no option --c-cals: did you mean --c-calls?"),
        (["--no-output", "x"], "there is no option --no-output: did you mean"),
        (["--xyzzy=3"], "there is no option --xyzzy"),
        (["-u"], "there is no option -u here; for Python's: python -u -m whence run"),
        (["-Z"], "there is no option -Z"),
        (["--calls=1"], "--calls takes no value"),
        (["--max-size", "abc"], "--max-size: max_size must be bytes or a text like"),
        (["--max-size=1KB"], "--max-size: max_size must be at least"),
        (["--keep", "-3"], "--keep: keep must be seconds"),
        (["--max-depth=x"], "--max-depth: max_depth must be a number of calls"),
        (["--max-depth=0"], "--max-depth: max_depth must be a number of calls"),
        (["--min-duration", "x"], "--min-duration: min_duration must be seconds"),
        (["--chunk-size=5"], "--chunk-size: chunk_size must be a multiple"),
        (["--memory-detail=x"], "--memory-detail: memory_detail must be one of"),
        (["--memory-skip=x"], "--memory-skip: memory_skip takes 'allocated', 'moved'"),
        (["--dump-on=x"], "--dump-on: dump_on takes 'exception'"),
        (["--dump-on=SIGKILL"], "--dump-on: no program hears of SIGKILL"),
        (
            ["--chunk-size=64KB", "--max-size=100KB"],
            "--max-size: max_size must be at least 266240",
        ),
        (["-o", "%x.whence"], "-o: %x is not %p, %t or %%"),
        (["-o", "end%"], "-o: % is not %p, %t or %%"),
        (["-o", ""], "-o: a recording needs a name"),
    ],
)
def test_what_cannot_be_asked_for(app, arguments, expected):
    program = [] if expected.startswith(("nothing", "something")) else ["app.py"]
    assert one_line_of(app.run(*arguments, *program)).startswith(expected)
    assert [*app.folder.glob("*.whence")] == []


def test_detail_needs_memory(app):
    line = "there is no detail without memory: add --memory or --memory-all"
    done = app.run("--memory-detail", "full", "app.py")
    assert one_line_of(done) == f"--memory-detail: {line}"
    done = app.run("app.py", env={"WHENCE_MEMORY_DETAIL": "full"})
    assert one_line_of(done) == f"WHENCE_MEMORY_DETAIL: {line}"
    record(app, "--memory-all", "--memory-detail", "state").close()


def test_a_file_that_cannot_be_read_is_one_line(app):
    path = app.folder / "pyproject.toml"
    text = "[tool.whence]\nmax_size = '8MB'\n"
    for data in (text.encode("utf-16"), text.encode() + b"# \xff", text.encode()[:-3]):
        path.write_bytes(data)
        assert one_line_of(app.run("app.py")).startswith(f"{path}: ")
    path.write_bytes("# Größe".encode("latin-1"))  # and nothing of ours
    record(app).close()
    path.write_text(text + "max-size = '9MB'\n")
    line = "tool.whence.max-size is there twice, with a dash and with an underscore"
    assert one_line_of(app.run("app.py")) == f"{path}: {line}"


def test_variables(app):
    env = {"WHENCE_NOSUCH": "", "WHENCE_FOLLOW": ""}
    assert app.run("-q", "-o", app.recording, "-f", "app.py", env=env).status == 0
    env = {"WHENCE_C_CALLS": "yes", "WHENCE_INCLUDE": "inner, outer"}
    env |= {"WHENCE_OUTPUT": str(app.recording), "WHENCE_QUIET": "1"}
    env |= {"WHENCE_FORCE": "on", "WHENCE_KEEP": "", "WHENCE_MAX_DEPTH": "3"}
    assert app.run("app.py", env=env) == (0, b"", b"")
    assert functions(whence.open(app.recording)) == {"inner", "outer", "builtins.len"}
    env["WHENCE_C_CALLS"] = "0"
    assert app.run("--include", "inner", "app.py", env=env) == (0, b"", b"")
    assert functions(whence.open(app.recording)) == {"inner"}
    for name, value, expected in (
        (
            "WHENCE_MAXSIZE",
            "1",
            "WHENCE_MAXSIZE is no variable of whence: did you mean ",
        ),
        ("WHENCE_MAX_SIZE", "x", "WHENCE_MAX_SIZE: max_size must be bytes"),
        ("WHENCE_GC", "perhaps", "WHENCE_GC must be 1 or 0, not 'perhaps'"),
        ("WHENCE_FOLLOW", "1", "WHENCE_FOLLOW is what whence tells its children: use"),
        ("WHENCE_OUTPUT", "%q", "WHENCE_OUTPUT: %q is not"),
    ):
        line = one_line_of(app.run("app.py", env={name: value}))
        assert line.startswith(expected)
        for python in (["-E"], ["-I"]):
            assert app.run("-q", "app.py", env={name: value}, python=python).status == 0
    known = {"WHENCE_FRAMES": "public"}
    assert app.run("-qfo", "x", "app.py", env=known).status == 0


def test_a_file_of_settings(app):
    settings = app.write(
        "pyproject.toml",
        f"""
        [tool.whence]
        output = "{app.recording}"
        force = true
        quiet = true
        c-calls = true
        include = ["inner", "outer"]
        keep = 1
        max_size = "64MB"
        max_depth = 3
        """,
    )
    (app.folder / "deep" / "er").mkdir(parents=True)
    app.folder = app.folder / "deep" / "er"
    assert app.run("../../app.py") == (0, b"", b"")
    assert functions(whence.open(app.recording)) == {"inner", "outer", "builtins.len"}
    env = {"WHENCE_C_CALLS": "no", "WHENCE_INCLUDE": "outer"}
    assert app.run("../../app.py", env=env) == (0, b"", b"")
    assert functions(whence.open(app.recording)) == {"outer"}
    assert app.run("--include", "inner", "../../app.py", env=env) == (0, b"", b"")
    assert functions(whence.open(app.recording)) == {"inner"}
    isolated = app.run("-q", "../../app.py", python=["-I"])
    assert isolated == (0, b"", b"")
    assert len([*app.folder.glob("app-*.whence")]) == 1
    for content, expected in (
        ("[tool.whence]\nmaxsize = 1", "tool.whence has no key maxsize: did you mean"),
        ("[tool.whence]\nmax_size = 'x'", "tool.whence.max_size: max_size must be"),
        ("[tool.whence]\nmax_size = true", "tool.whence.max_size must be a number or"),
        ("[tool.whence]\nmax_depth = 1.5", "tool.whence.max_depth must be a number"),
        ("[tool.whence]\ncalls = 1", "tool.whence.calls must be true or false, not 1"),
        ("[tool.whence]\noutput = 1", "tool.whence.output must be a text, not 1"),
        ("[tool.whence]\ninclude = [1]", "tool.whence.include must be a list of texts"),
        ("[tool]\nwhence = 3", "tool.whence must be a table"),
        ("[tool.whence", "Expected"),
    ):
        settings.write_text(content)
        line = one_line_of(app.run("../../app.py"))
        assert line.startswith(f"{settings}: {expected}")
    settings.write_text("[project]\nname = 'x'\n[tool.other]\nx = 1")
    assert app.run("-qfo", "x", "../../app.py").status == 0
    (app.folder / "pyproject.toml").write_text("# whence has nothing in here")
    settings.write_text("[tool.whence]\nnonsense = 1")
    assert app.run("-qfo", "x", "../../app.py").status == 0


def test_every_argument_of_record_is_a_setting():
    arguments = set(inspect.signature(whence.record).parameters)
    arguments -= {"path", "overwrite", "schedule", "on_ready"}
    arguments |= {"output", "force", "quiet", "memory_all"}
    assert arguments == set(_settings.BY_NAME)


def test_every_option_is_documented():
    page = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
    part = page.read_text().partition("## `whence run`")[2].partition("\n## `")[0]
    rows = [row for row in part.splitlines() if row.startswith("| `-")]
    for setting in _settings.ALL:
        shown = re.compile(rf"`{setting.option}[` ]")
        (row,) = [row for row in rows if shown.search(row)]
        assert setting.name == "follow" or f"`{setting.variable}`" in row
        assert f"`{setting.name}`" in row


def test_every_variable_of_the_package_is_known():
    package = Path(whence.__file__).parent
    texts = [path.read_text() for path in package.rglob("*.py")]
    used = set(re.findall(r'"(WHENCE_[A-Z]+)"', "".join(texts)))
    assert used == set(_sources.OTHERS)


def test_help(app):
    done = app.run("--help")
    assert (done.status, done.err) == (0, b"")
    for setting in _settings.ALL:
        assert setting.option in done.out.decode()
    assert app.run("-h") == done
