"""Another tool that redirects the C library's allocators, beside memory="all"."""

import os
import subprocess

import pytest

from harness import runner

SIZE = 123_456

PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
import greedy, rival  # before whence: as they are then, nobody is loading them
import whence

def saw(recorder):
    with whence.open(recorder.path) as recording:
        seen = sum(record.fields.get("size") == {size} for record in recording)
        said = set((recording.info.memory or "").split(", ")) - {{"no_stacks", ""}}
        return seen, *said

for number, step in enumerate({steps!r}.split()):
    if step == "begin":
        path = f"{{sys.argv[1]}}/{{number}}"
        recorder = whence.record(path, calls=False, memory="all", pack=False).start()
    elif step == "end":
        recorder.stop()
        print(*saw(recorder), sep=",")
    elif step == "rival":
        rival.start()
    elif step == "gone":
        assert rival.stop() >= 0
    else:
        for _ in range(10):
            greedy.give(greedy.take("malloc", {size}))
"""


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("begin work end", "10"),
        ("rival work gone begin work end work", "10"),
        ("rival begin work end gone work begin work end", "10 10"),
        ("begin end rival begin work end work gone", "0 10"),
        ("rival work begin work gone work end work", "10,hook_replaced"),
        ("begin work rival work gone work end work", "10,hook_replaced"),
        ("begin work rival work end work gone work", "10,hook_replaced"),
    ],
)
def test_all_orders(tmp_path, rivals, steps, expected):
    """What can be seen is, and the recording says so if there is more."""
    program = PROGRAM.format(folder=str(rivals), size=SIZE, steps=steps)
    done = runner.run(program, str(tmp_path))
    assert (done.status, done.err) == (0, "")
    assert done.out.split() == expected.split()


OWN = """
#include <stdlib.h>
static char heap[1 << 20];
static size_t top;
void *malloc(size_t size) { top += (size + 31) & ~15ul; return heap + top; }
void free(void *block) {
  if (block && ((char *)block < heap || (char *)block >= heap + sizeof heap)) abort();
}
"""
USER = """
#include <stdlib.h>
void *take(void) { return malloc(100); }
void give(void *block) { free(block); }
"""
DEEP = """
import ctypes, os
import whence
user = ctypes.CDLL({user!r}, mode=os.RTLD_LAZY | os.RTLD_DEEPBIND)
user.take.restype, user.give.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
own = ctypes.CDLL({own!r}, mode=os.RTLD_NOLOAD)
before = user.take() if {early} else None  # free() is not known yet
recorder = whence.record({path!r}, calls=False, memory="all").start()
if {during}:
    user.give(before if {early} else user.take())
recorder.stop()
user.give(user.take())
low = ctypes.addressof(ctypes.c_char.in_dll(own, "malloc"))
print(abs(user.take() - low) < 1 << 22)
"""


@pytest.mark.skipif(
    bool(os.environ.get("WHENCE_SANITIZED")), reason="it forbids RTLD_DEEPBIND"
)
@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("during", [True, False])
def test_a_library_whose_allocator_is_its_own_keeps_it(tmp_path, early, during):
    """As long as it has not called a function, nobody can know which one it means."""
    for name, text in (("own", OWN), ("user", USER)):
        (tmp_path / f"{name}.c").write_text(text)
    build(tmp_path, "own")
    build(tmp_path, "user", "-L.", "-lown", "-Wl,-rpath,$ORIGIN", "-Wl,-z,lazy")
    user, own = (str(tmp_path / f"lib{name}.so") for name in ("user", "own"))
    path = str(tmp_path / "a.whence")
    program = DEEP.format(user=user, own=own, path=path, early=early, during=during)
    done = runner.run(program)
    assert (done.status, done.out, done.err) == (0, "True\n", "")


def build(folder, name, *flags):
    quiet = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    command = ["cc", "-O1", "-fno-builtin", "-shared", "-fPIC", f"{name}.c"]
    command += ["-o", f"lib{name}.so", *flags]
    subprocess.run(command, check=True, cwd=folder, env=quiet)
