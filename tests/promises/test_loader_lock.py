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


@pytest.mark.parametrize("program", [THREADS, STARTS], ids=["threads", "starts"])
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
