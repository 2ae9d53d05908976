"""Native frames in recordings: stacks of memory, names, and names looked up later."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import whence
from harness import runner, walks
from harness.command import run

pytestmark = walks.fast_only("the two kinds of frames are not brought together")

TAKES = """
#include <Python.h>
#include <stdlib.h>

static inline __attribute__((always_inline)) void *takes_inlined(size_t size) {
  return malloc(size);
}
__attribute__((noinline)) void *takes_block(size_t size) {
  void *block = takes_inlined(size);
  __asm__ volatile("" ::: "memory");
  return block;
}
static PyObject *take(PyObject *self, PyObject *size) {
  (void)self;
  return PyLong_FromVoidPtr(takes_block(PyLong_AsSize_t(size)));
}
void takes(PyObject *function) {
  Py_XDECREF(PyObject_CallNoArgs(function));
  __asm__ volatile("" ::: "memory");
}
static PyMethodDef methods[] = {{"take", take, METH_O, 0}, {0}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "takes_memory", 0, -1, methods};
PyMODINIT_FUNC PyInit_takes_memory(void) { return PyModule_Create(&definition); }
"""
PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
import takes_memory, whence

def caller():
    return takes_memory.take(123_457)

with whence.record({path!r}, calls=False, gc=False, memory="all", native={native}):
    caller()
"""


def compiled(folder, *flags):
    import sysconfig

    (folder / "takes_memory.c").write_text(TAKES)
    target = folder / ("takes_memory" + sysconfig.get_config_var("EXT_SUFFIX"))
    quiet = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    command = ["cc", "-O2", "-g", "-shared", "-fPIC", *flags]
    command += ["-isystem", sysconfig.get_path("include")]
    command += [str(folder / "takes_memory.c"), "-o", str(target)]
    subprocess.run(command, check=True, env=quiet)
    return target


@pytest.fixture
def recorded(tmp_path):
    """A recording of one block that an extension has taken, and the extension."""
    folder = tmp_path / "extension"
    folder.mkdir()
    library = compiled(folder)
    path = tmp_path / "a.whence"
    done = runner.run(PROGRAM.format(folder=str(folder), path=str(path), native=True))
    assert (done.status, done.err) == (0, "")
    return path, library


def frames_of(path):
    """The frames of the block, from the inside out to the module."""
    with whence.open(path) as recording:
        (group,) = (g for g in recording.memory.leaks() if g.bytes == 123_457)
        return group.stack


def known(frames):
    wanted = ("takes_inlined", "takes_block", "take", "caller", "<module>")
    return [frame.name for frame in frames if frame.name in wanted]


def test_stacks_of_memory_have_native_frames_with_names(recorded):
    frames = frames_of(recorded[0])
    assert known(frames) == ["takes_block", "take", "caller", "<module>"]
    assert frames[0].name == "takes_block"  # malloc itself is not on the stack
    assert (frames[0].kind, frames[0].filename) == ("native", str(recorded[1]))


DETACHED = """
import ctypes, sys, whence

named = ctypes.CDLL(None).get_current_dir_name
named.restype = None

def make():
    names = {}
    exec(compile("def inner(named):\\n    named()\\n", "made.py", "exec"), names)
    return names["inner"]

def outer(inner):
    inner(named)
    return bytes(7_777)

named()
made = [make() for _ in range(5)]
with whence.record(sys.argv[1], calls=False, gc=False, memory="all", native=True):
    kept = [outer(inner) for inner in made]
"""


def test_a_function_first_seen_without_the_gil_is_gone_when_it_has_returned(tmp_path):
    path = tmp_path / "a.whence"
    assert runner.run(DETACHED, str(path)).status == 0
    with whence.open(path) as recording:
        groups = [g for g in recording.memory.leaks() if g.bytes // g.count > 7_777]
        assert sum(group.count for group in groups) == 5
        for group in groups:
            python = [frame.name for frame in group.stack if frame.kind == "python"]
            assert python[0] == "outer"


def test_without_native_there_are_none(tmp_path):
    folder = tmp_path / "extension"
    folder.mkdir()
    compiled(folder)
    path = tmp_path / "a.whence"
    program = PROGRAM.format(folder=str(folder), path=str(path), native=False)
    assert runner.run(program).status == 0
    frames = frames_of(path)
    assert {frame.kind for frame in frames} == {"python"}
    assert known(frames) == ["caller", "<module>"]


def test_symbolize_adds_files_lines_and_inlined_functions(recorded, tmp_path):
    pytest.importorskip("symbolic")
    path, library = recorded
    out = tmp_path / "named.whence"
    done = run("symbolize", path, "-o", out)
    assert done.returncode == 0, done.stderr
    assert re.match(rf"{re.escape(str(out))}: [\d,]+ of [\d,]+ places", done.stdout)
    frames = frames_of(out)
    assert known(frames) == [
        *("takes_inlined", "takes_block", "take", "caller", "<module>")
    ]
    inlined, block = frames[:2]
    source = str(library.with_name("takes_memory.c"))
    assert (inlined.filename, inlined.line) == (source, 6)
    assert (block.filename, block.line) == (source, 9)
    assert [f.kind for f in (inlined, block)] == ["native", "native"]
    assert known(frames_of(path)) == ["takes_block", "take", "caller", "<module>"]


def test_the_same_after_the_libraries_have_moved(recorded, tmp_path):
    """On another machine, say: by build id, in a directory that is given."""
    pytest.importorskip("symbolic")
    path, library = recorded
    here, there = tmp_path / "here.whence", tmp_path / "there.whence"
    assert run("symbolize", path, "-o", here).returncode == 0
    moved = tmp_path / "moved"
    moved.mkdir()
    shutil.move(library, moved / "renamed.so")
    library.write_bytes(Path(sys.executable).read_bytes())  # another file in its place
    done = run("symbolize", path, "-o", there, "--debug-dir", moved)
    assert done.returncode == 0, done.stderr
    assert frames_of(there) == frames_of(here)
    assert known(frames_of(there))[0] == "takes_inlined"


def test_symbolize_replaces_the_file_and_can_forget(recorded):
    path, _ = recorded
    assert run("symbolize", path, "--symbols", "off").returncode == 0
    frames = frames_of(path)
    assert known(frames) == ["caller", "<module>"]
    assert re.fullmatch(r"<takes_memory\..*so\+0x[0-9a-f]+>", frames[0].name)
    assert run("symbolize", path, "--symbols", "symbols").returncode == 0
    assert known(frames_of(path)) == ["takes_block", "take", "caller", "<module>"]
    done = run("verify", path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_library_whose_path_is_no_text_is_named_all_the_same(tmp_path):
    folder = tmp_path / os.fsdecode(b"ext\xff\xc3\xbc\xed\xb3\xbf")
    folder.mkdir()
    library = compiled(folder)
    alone = f"import sys; sys.path.insert(0, {str(folder)!r}); import takes_memory"
    if "UnicodeEncodeError" in runner.run(alone).err:
        pytest.skip("this CPython imports no extension from there")
    path = tmp_path / "a.whence"
    program = PROGRAM.format(folder=str(folder), path=str(path), native=True)
    program += """
stacks = []
takes = ctypes.PyDLL(takes_memory.__file__).takes
takes.argtypes = [ctypes.py_object]
takes(lambda: stacks.append(whence.capture(native=True)))
import json, os
for how in ("symbols", "off"):
    frames = whence.symbolize(stacks[-1:], symbols=how)[0]
    (frame,) = (f for f in frames if "takes_memory" in f.filename)
    assert os.fsencode(frame.filename) == os.fsencode(takes_memory.__file__)
    assert (frame.name == "takes") == (how != "off"), frame
assert json.loads(whence.to_json(stacks))[-1]
"""
    program = "import ctypes\n" + program
    done = runner.run(program)
    assert (done.status, done.err) == (0, "")
    assert frames_of(path)[0][:2] == ("takes_block", str(library))
    assert run("symbolize", path, "--symbols", "off").returncode == 0
    assert frames_of(path)[0].filename == str(library)
    done = run("symbolize", path, "--symbols", "symbols")
    assert "takes_memory" not in done.stdout  # nothing is wrong with it
    assert frames_of(path)[0][:2] == ("takes_block", str(library))


def test_symbolize_of_nonsense(tmp_path):
    path = tmp_path / "a.whence"
    path.write_bytes(b"nonsense")
    done = run("symbolize", path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert run("symbolize", path, "--symbols", "dladdr").returncode == 2
    assert path.read_bytes() == b"nonsense"


def test_a_recording_that_was_killed_is_named_later(tmp_path):
    folder = tmp_path / "extension"
    folder.mkdir()
    compiled(folder)
    path = tmp_path / "a.whence"
    program = PROGRAM.format(folder=str(folder), path=str(path), native=True)
    program += "    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    assert runner.run(program).status == -9
    assert known(frames_of(path)) == ["caller", "<module>"]
    assert run("symbolize", path, "--symbols", "symbols").returncode == 0
    assert known(frames_of(path)) == ["takes_block", "take", "caller", "<module>"]


def test_every_export_of_memory_and_the_summary_show_native_frames(recorded, tmp_path):
    path, _ = recorded
    done = run("summary", path)
    assert done.returncode == 0
    assert re.search(r"caller \(.+:\d+\), by takes_block \(takes_memory", done.stdout)
    for suffix in ("collapsed", "speedscope.json", "torch.json"):
        out = tmp_path / f"out.{suffix}"
        done = run("export", path, "-o", out, *_metric(suffix))
        assert done.returncode == 0, done.stderr
        assert b"takes_block" in out.read_bytes()


def _metric(suffix):
    return () if suffix == "torch.json" else ("--metric", "leaks")


def test_whence_run_with_native(tmp_path):
    folder = tmp_path / "extension"
    folder.mkdir()
    compiled(folder)
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(folder)!r})\nimport takes_memory\n"
        "def caller():\n    return takes_memory.take(123_457)\ncaller()\n"
    )
    path = tmp_path / "a.whence"
    done = run("run", "--memory-all", "--native", "-q", "-o", path, script)
    assert done.returncode == 0, done.stderr
    assert known(frames_of(path))[:3] == ["takes_block", "take", "caller"]
