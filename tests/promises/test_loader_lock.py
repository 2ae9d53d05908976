"""Whoever lists libraries holds the loader's lock, and may be waiting for the GIL."""

import pytest

from harness import runner

# As threadpoolctl does: ctypes gives the GIL away, and what is called takes it back.
LISTING = """
import ctypes, sys, threading
import whence

library = ctypes.CDLL(None)
look = ctypes.CFUNCTYPE(ctypes.c_int, *3 * [ctypes.c_void_p])(lambda *_: 0)
done = []

def list_libraries():
    while not done:
        library.dl_iterate_phdr(look, None)

def record(**options):
    return whence.record(sys.argv[1], overwrite=True, pack=False, **options)

lister = threading.Thread(target=list_libraries)
"""
END = """
done.append(True)
lister.join()
print("done")
"""
THREADS = """
with record(**{options}):
    lister.start()
    for _ in range(300):
        thread = threading.Thread(target=sum, args=[range(10)])
        thread.start()
        thread.join()
        for _ in range(30):
            ctypes.CDLL(None).getpid
"""
STARTS = """
lister.start()
for _ in range(30):
    with record(**{options}):
        sum(range(1000))
"""


# Each is loaded without the GIL, and asked for a function with it.
LOADS = """
import shutil, _ctypes
libraries = []
for number in range(40):
    libraries.append(sys.argv[1] + str(number) + ".so")
    shutil.copy(_ctypes.__file__, libraries[-1])
load = library.dlopen
load.restype, load.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_int]
with record(**{options}):
    lister.start()
    for path in libraries:
        assert load(path.encode(), 1)
        library["getppid"]
"""


@pytest.mark.parametrize(
    "program", [THREADS, STARTS, LOADS], ids=["threads", "starts", "loads"]
)
@pytest.mark.parametrize(
    "options",
    [
        {"calls": True},
        {"calls": False, "memory": True},
        {"calls": False, "memory": "all"},
        {"calls": False, "memory": "all", "native": True},
    ],
    ids=["calls", "memory", "all", "native"],
)
def test_nobody_waits_for_it_with_the_gil(tmp_path, program, options):
    whole = LISTING + program.format(options=options) + END
    done = runner.run(whole, str(tmp_path / "a.whence"), timeout=120)
    assert (done.status, done.out, done.err) == (0, "done\n", "")


# Who lists libraries takes three seconds: who looks at them waits, and is waited for.
FORKS = """
import os, shutil, time, warnings, _ctypes
warnings.simplefilter("ignore", DeprecationWarning)  # about forks beside threads
inside = threading.Event()
def slowly(*_):
    inside.set()
    time.sleep(3)
    return 1
slowly = ctypes.CFUNCTYPE(ctypes.c_int, *3 * [ctypes.c_void_p])(slowly)
ask = library.dlsym
ask.restype, ask.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
shutil.copy(_ctypes.__file__, sys.argv[1] + ".so")

def fork(times):
    start = time.monotonic()
    for _ in range(times):
        child = os.fork()
        if child == 0:
            return None
        os.waitpid(child, 0)
    return time.monotonic() - start

with record(calls=False, memory="all"):
    ctypes.CDLL(sys.argv[1] + ".so")
    list_once = threading.Thread(target=library.dl_iterate_phdr, args=[slowly, None])
    list_once.start()
    inside.wait()
    look_once = threading.Thread(target=ask, args=[library._handle, b"getppid"])
    look_once.start()
    time.sleep(0.2)
    out, into = os.pipe()
    took = fork(1)
    if took is None:
        took = fork(5)
        if took is not None:
            os.write(into, str(took).encode())
        os._exit(0)
    assert float(os.read(out, 100)) < took, took
    list_once.join()
    look_once.join()
print("done")
"""


def test_a_child_does_not_wait_for_threads_that_it_does_not_have(tmp_path):
    done = runner.run(LISTING + FORKS, str(tmp_path / "a.whence"), timeout=120)
    assert (done.status, done.out, done.err) == (0, "done\n", "")
