"""What native frames cost, side by side: whence, torch, glibc, memray.

First captures of one stack of about 40 native frames, warm, in one process and in
turns: the best round of each counts. Torch is asked for Python and C++ frames, as its
memory snapshots ask; glibc's backtrace() is called from C, on the same stack. Then
memory with native frames, each run a process of its own, as in bench/memory.py.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import platform
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import memory as memory_bench

HERE = Path(__file__).parent
WORKLOADS = ("allocations", "recursion", "sql")
MOST_OF_TORCH, MOST_OF_BACKTRACE, MOST_OF_MEMRAY = 1 / 2, 1 / 10, 1 / 2


def backtrace_in_c():
    """Return a function that calls backtrace() so often, and says what it found."""
    memory_bench.EXTENSIONS.mkdir(parents=True, exist_ok=True)
    target = memory_bench.EXTENSIONS / "libbacktraces.so"
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(target)]
    source = HERE / "native" / "backtraces.c"
    subprocess.run([*command, str(source)], check=True)
    return ctypes.PyDLL(str(target)).backtraces


def torch_gather():
    try:
        from torch._C._profiler import gather_traceback
    except ImportError:
        print("torch is not there: no comparison with it")
        return None
    return functools.partial(gather_traceback, python=True, script=False, cpp=True)


def seconds_of(call, times):
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times


def nothing():
    pass


def measure_captures(rounds):
    import whence

    mixed = functools.partial(whence.capture, native=True)
    gather, backtraces = torch_gather(), backtrace_in_c()
    best = {}

    def keep(name, seconds):
        best[name] = min(best.get(name, seconds), seconds)

    def here():
        stack = mixed()
        frames = whence.symbolize([stack], symbols="off")[0]
        native = sum(frame.kind == "native" for frame in frames)
        for _ in range(rounds):
            keep("loop", seconds_of(nothing, 20_000))
            keep("whence", seconds_of(mixed, 20_000))
            keep("whence, Python frames alone", seconds_of(whence.capture, 20_000))
            if gather is not None:
                keep("torch", seconds_of(gather, 2_000))
            start = time.perf_counter()
            backtraces(2_000)
            keep("backtrace()", (time.perf_counter() - start) / 2_000)
        return native, len(frames) - native, backtraces(1)

    def deeper(depth):
        if depth == 0:
            return here()
        return functools.reduce(lambda _, __: deeper(depth - 1), [1, 2])

    native, python, in_c = deeper(7)
    print(f"{native} native and {python} Python frames; backtrace() finds {in_c}")
    for name, seconds in best.items():
        print(f"    {name:<28}{1e9 * seconds:9.1f} ns")
    ours = best["whence"]
    if gather is not None:
        judge("torch's", ours / best["torch"], MOST_OF_TORCH)
    judge("backtrace()'s", ours / best["backtrace()"], MOST_OF_BACKTRACE)


def judge(whose, ratio, most):
    verdict = memory_bench.verdict(ratio <= most)
    print(f"a capture takes {ratio:.3f} of {whose} time, asked {most:.2f}: {verdict}")


def measure_memory(rounds, folder):
    tools = ("plain", "whence_native", "memray_native")
    print(f"memory with native frames: CPU seconds plain, added; best of {rounds}")
    for workload in WORKLOADS:
        best = memory_bench.in_turns(rounds, tools, workload, folder)
        plain = best["plain"]["seconds"]
        ours, theirs = (best[tool]["seconds"] - plain for tool in tools[1:])
        ratio = ours / theirs
        goal = memory_bench.verdict(ratio <= MOST_OF_MEMRAY)
        each = [best[tool]["bytes"] / best[tool]["events"] for tool in tools[1:]]
        print(
            f"{workload:<12}{plain:8.3f}   whence {ours:+.3f}   memray {theirs:+.3f}   "
            f"{ratio:.2f} {goal}; {each[0]:.2f} and {each[1]:.2f} bytes an event"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(f"== native frames, CPython {platform.python_version()}")
    measure_captures(options.rounds)
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return
    try:
        import memray  # noqa: F401
    except ImportError:
        print("memray is not there: no comparison with it")
        return
    with tempfile.TemporaryDirectory() as folder:
        measure_memory(options.rounds, folder)


if __name__ == "__main__":
    sys.exit(main())
