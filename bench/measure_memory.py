"""One measurement of one workload under one tool, for bench/memory.py.

python measure_memory.py TOOL WORKLOAD [--size N] [--folder F]

Prints a line of JSON: CPU seconds of the workload alone, bytes of the closed file, how
many events it has, the most that was in use at a time, and how much memory the process
held at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import sys
import time


@contextlib.contextmanager
def plain(_path, _found):
    yield


def whence(path, found):
    return record(path, found, memory=True)


def whence_all(path, found):
    return record(path, found, memory="all")


def whence_native(path, found):
    return record(path, found, memory=True, native=True)


def whence_calls(path, found):
    return record(path, found, calls=True)


def whence_both(path, found):
    return record(path, found, memory=True, calls=True)


def whence_both_native(path, found):
    return record(path, found, memory=True, calls=True, native=True)


@contextlib.contextmanager
def whence_traced(path, found):
    """The same with a frame object for every call, as memray's own tracing makes them.

    Any profile function has that effect; this one makes a slice, and drops it.
    """
    with record(path, found, memory="all"):
        sys.setprofile(slice)
        yield
        sys.setprofile(None)


@contextlib.contextmanager
def record(path, found, **options):
    import whence

    options = {"calls": False, **options}
    recorder = whence.record(path, gc=False, overwrite=True, **options)
    recorder.start()
    yield
    recorder.stop()
    if "memory" in options:
        with whence.open(path) as recording:
            found["peak"] = recording.memory.peak.bytes
    found["events"] = recorder.recorded
    found["lost"] = sum(recorder.dropped.values())


def memray(path, found):
    return track(path, found, trace_python_allocators=True)


def memray_native(path, found):
    return track(path, found, trace_python_allocators=True, native_traces=True)


def memray_default(path, found):
    return track(path, found)


@contextlib.contextmanager
def track(path, found, **options):
    import memray

    with memray.Tracker(path, **options):
        yield
    with memray.FileReader(path) as reader:
        found["events"] = sum(1 for _ in reader.get_allocation_records())
        found["peak"] = reader.metadata.peak_memory
    found["lost"] = 0


@contextlib.contextmanager
def tracemalloc_1(_path, _found):
    import tracemalloc

    tracemalloc.start(1)
    yield
    tracemalloc.stop()


@contextlib.contextmanager
def tracemalloc_25(_path, _found):
    import tracemalloc

    tracemalloc.start(25)
    yield
    tracemalloc.stop()


TOOLS = {
    tool.__name__: tool
    for tool in (
        *(plain, whence, whence_all, whence_native, whence_traced),
        *(whence_calls, whence_both, whence_both_native),
        *(memray, memray_default, memray_native),
        *(tracemalloc_1, tracemalloc_25),
    )
}


def resident():
    """What the process holds in memory, of its own and of files."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", choices=TOOLS)
    parser.add_argument("workload")
    parser.add_argument("--size", type=int)
    parser.add_argument("--folder", default=".")
    parser.add_argument("--no-gc", action="store_true")
    options = parser.parse_args()
    sys.setrecursionlimit(50_000)
    workload = importlib.import_module(f"workloads.{options.workload}")
    workload.run(workload.WARM)
    if options.no_gc:
        gc.collect()
        gc.disable()
    path = f"{options.folder}/memory-{os.getpid()}"
    found = {}
    with TOOLS[options.tool](path, found):
        start = time.process_time()
        found["result"] = repr(workload.run(options.size or workload.SIZE))[:200]
        found["seconds"] = time.process_time() - start
        found["resident"] = resident()
    if os.path.exists(path):  # noqa: PTH110
        found["bytes"] = os.path.getsize(path)  # noqa: PTH202
        os.unlink(path)  # noqa: PTH108
    print(json.dumps(found))


if __name__ == "__main__":
    main()
