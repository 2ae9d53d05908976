"""Behaviours 46, 51 and 54 to 58: native frames, each by its number."""

import _ctypes
import ctypes
import os
import re
import struct
import subprocess
from pathlib import Path

import pytest

import whence
from harness import runner, walks

NUMBERS = {46, 51, 54, 55, 56, 57, 58}
CALLBACK = ctypes.CFUNCTYPE(None)
PT_NOTE = 4


def test_every_behaviour_has_a_test_with_its_number():
    text = Path(__file__).read_text()
    found = re.findall(r"^def test_(\d\d)_", text, re.MULTILINE)
    assert {int(number) for number in found} == NUMBERS


def names(stack, **how):
    return [frame.name for frame in whence.symbolize([stack], **how)[0]]


def library(folder, name, *flags):
    """A library with one function, which calls what it is given."""
    source, target = folder / f"{name}.c", folder / f"lib{name}.so"
    source.write_text(f"""
        typedef void (*callback)(void);
        static inline __attribute__((always_inline)) void {name}_inlined(callback f) {{
          f();
          __asm__ volatile("" ::: "memory");
        }}
        __attribute__((noinline)) void {name}(callback f) {{
          {name}_inlined(f);
          __asm__ volatile("" ::: "memory");
        }}
    """)
    quiet = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    command = ["cc", "-O2", "-shared", "-fPIC", *flags, str(source), "-o", str(target)]
    subprocess.run(command, check=True, env=quiet)
    return target


def captured_in(path, name):
    """The stack of a function that the library calls, and the library, still open."""
    stacks = []
    loaded = ctypes.CDLL(str(path))
    function = CALLBACK(lambda: stacks.append(whence.capture(native=True)))
    getattr(loaded, name)(function)
    return stacks[0], loaded


@walks.fast_only("frames are not brought together")
def test_46_skip_works_with_native_frames(nested):
    stacks = []

    def helper():
        stacks.append(whence.capture(native=True, skip=1))

    def caller():
        nested.call(helper)

    nested.sort(caller)
    known = ("helper", "nested_inner", "nested_call", "caller", "nested_sort")
    kept = [name for name in names(stacks[0]) if name in known]
    assert kept == ["nested_inner", "nested_call", "caller", "nested_sort"]


@walks.fast_only("frames are not brought together")
def test_51_every_python_frame_is_at_its_true_place(nested):
    stacks = []

    def leaf():
        stacks.append(whence.capture(native=True))

    def direct():
        leaf()

    def through_c():
        nested.call(direct)

    def through_sort():
        nested.sort(through_c)

    through_sort()
    wanted = [
        *("leaf", "direct", "nested_inner", "nested_call", "through_c"),
        *("nested_compare", "nested_sort", "through_sort"),
    ]
    assert [name for name in names(stacks[0]) if name in wanted] == wanted
    assert "_PyEval_EvalFrameDefault" not in names(stacks[0])


def test_54_modes_and_an_unknown_one(tmp_path):
    pytest.importorskip("symbolic")
    stack, _ = captured_in(library(tmp_path, "modes", "-g"), "modes")
    (full,) = whence.symbolize([stack], symbols="full")
    inlined, function = (f for f in full if f.name.startswith("modes"))
    assert (inlined.name, function.name) == ("modes_inlined", "modes")
    assert inlined.filename == function.filename == str(tmp_path / "modes.c")
    assert (inlined.line, function.line) == (4, 8)
    (symbols,) = whence.symbolize([stack], symbols="symbols")
    found = next(f for f in symbols if f.name.startswith("modes"))
    assert (found.name, found.line) == ("modes", None)
    assert found.filename == str(tmp_path / "libmodes.so")
    off = names(stack, symbols="off")
    assert [name for name in off if re.fullmatch(r"<libmodes\.so\+0x[0-9a-f]+>", name)]
    message = "symbols must be one of 'full', 'symbols', 'off', not 'dladdr'"
    with pytest.raises(ValueError, match=message):
        whence.symbolize([stack], symbols="dladdr")


@pytest.mark.parametrize("mode", ["full", "symbols", "off"])
def test_55_what_cannot_be_resolved_is_a_placeholder(tmp_path, mode):
    path = library(tmp_path, "lost", "-s")
    stack, _ = captured_in(path, "lost")
    path.unlink()  # and is there no more when it is asked
    frames = whence.symbolize([stack], symbols=mode)[0]
    place = next(f for f in frames if f.filename == str(path))
    assert re.fullmatch(r"<liblost\.so\+0x[0-9a-f]+>", place.name)
    assert (place.kind, place.line) == ("native", None)


def test_55_a_library_may_say_nonsense_of_where_its_notes_are(tmp_path):
    """They are not touched; it has no build id then, and a name all the same."""
    path = library(tmp_path, "nonsense")
    content = bytearray(path.read_bytes())
    start, size, count = struct.unpack_from("<Q14xHH", content, 32)
    for header in range(start, start + size * count, size):
        if struct.unpack_from("<I", content, header) == (PT_NOTE,):
            struct.pack_into("<Q", content, header + 16, 0x1234_5678_0000)
    path.write_bytes(content)
    done = runner.run(f"""
        import ctypes, whence
        loaded, stacks = ctypes.CDLL({str(path)!r}), []
        function = ctypes.CFUNCTYPE(None)
        loaded.nonsense(function(lambda: stacks.append(whence.capture(native=True))))
        print("nonsense" in [frame.name for frame in stacks[0].frames])
    """)
    assert (done.status, done.out, done.err) == (0, "True\n", "")


def test_56_no_mode_runs_anything(tmp_path, nested):
    """No child is made, by any means, and nothing that PATH leads to is asked for."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("addr2line", "llvm-symbolizer", "objdump", "nm", "debuginfod-find"):
        script = tools / tool
        script.write_text(f"#!/bin/sh\ntouch {tmp_path}/run\n")
        script.chmod(0o755)
    program = f"""
        import os, sys, threading
        sys.path.insert(0, {str(Path(nested.__file__).parent)!r})
        import nested, whence

        seen = []
        def audit(event, _):
            if event.startswith(("subprocess.", "os.fork", "os.exec", "os.posix_spawn",
                                 "os.system", "os.spawn", "socket.")):
                seen.append(event)
        sys.addaudithook(audit)
        stacks = []
        nested.call(lambda: stacks.append(whence.capture(native=True)))
        for mode in ("full", "symbols", "off"):
            whence.symbolize(stacks, symbols=mode)
        children = open(f"/proc/self/task/{{os.getpid()}}/children").read()
        tasks = os.listdir("/proc/self/task")
        print(seen, children, threading.active_count(), len(tasks))
    """
    path = f"{tools}:{os.environ['PATH']}"
    done = runner.run(program, env={"PATH": path})
    assert (done.status, done.out, done.err) == (0, "[]  1 1\n", "")
    assert not (tmp_path / "run").exists()


def test_57_names_are_kept_and_an_unloaded_library_is_forgotten(tmp_path):
    """The second library comes to lie where the first was, as a rule."""
    for number in range(6):
        name = f"turn_{number % 3}_of_{number}"
        stack, loaded = captured_in(library(tmp_path, name), name)
        assert name in names(stack)
        assert names(stack) == names(stack)
        _ctypes.dlclose(loaded._handle)
        assert name in names(stack)  # from the file, by its build id


def test_57_a_library_in_the_place_of_another_is_noticed(tmp_path):
    """As many have come and gone in between as cancel out in a count of those there."""
    other = ctypes.CDLL(str(library(tmp_path, "other")))
    first, loaded = captured_in(library(tmp_path, "first"), "first")
    assert "first" in names(first)
    _ctypes.dlclose(loaded._handle)
    path = library(tmp_path, "after")
    ctypes.CDLL(str(path))
    _ctypes.dlclose(other._handle)
    after, _ = captured_in(path, "after")
    assert "after" in names(after)
    assert "first" not in names(after)


def test_58_statistics_are_readable(tmp_path):
    before = whence.statistics()
    captured_in(library(tmp_path, "counted"), "counted")
    after = whence.statistics()
    assert after.native_misses > before.native_misses  # a library nobody has seen
    assert after.native_hits > before.native_hits
    assert after.modules > before.modules
    untold = ("-fno-asynchronous-unwind-tables", "-fno-exceptions")
    captured_in(library(tmp_path, "untold", "-fomit-frame-pointer", *untold), "untold")
    assert whence.statistics().native_unsupported > after.native_unsupported
    assert whence.statistics().native_truncated > after.native_truncated
