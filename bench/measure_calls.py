"""One measurement of one workload under one tool, for bench/calls.py.

python measure_calls.py TOOL WORKLOAD [--size N] [--calls N] [--folder F] [--save]

Prints a line of JSON: CPU seconds of the workload alone, with the tool started before
and stopped after; seconds to stop and to leave a complete file; its bytes; how many
calls the tool has and how many it lost. `--calls` is how many there will be, so that
VizTracer's buffer holds them all. Without `--save` VizTracer writes no file: that takes
far longer than the workload.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import json
import os
import sys
import threading
import time


@contextlib.contextmanager
def plain(_options, _found):
    yield


@contextlib.contextmanager
def count(_options, found):
    """The calls there are, resumptions included, by Python's own profile events."""
    calls = itertools.count()

    def profile(_frame, event, _argument):
        if event == "call":
            next(calls)  # one step, so no thread loses a count

    threading.setprofile(profile)
    sys.setprofile(profile)
    yield
    sys.setprofile(None)
    threading.setprofile(None)
    found["calls"] = next(calls) - 2  # the end of the with statement: __exit__ and this


@contextlib.contextmanager
def whence(options, found):
    import whence

    path = f"{options.folder}/measured.whence"
    recorder = whence.record(path, calls=True, overwrite=True)
    recorder.start()
    yield
    start = time.perf_counter()
    recorder.stop()
    found["stop"] = time.perf_counter() - start
    found["bytes"] = os.path.getsize(path)  # noqa: PTH202
    found["recorded"] = recorder.recorded
    told = sum(recorder.dropped.values())
    # A call is two events at least. This would show losses that are not even told.
    found["lost"] = max(told, options.calls - recorder.recorded // 2)


@contextlib.contextmanager
def viztracer(options, found):
    from viztracer import VizTracer

    path = f"{options.folder}/measured.json"
    room = options.calls + options.calls // 10 + 10_000
    tracer = VizTracer(ignore_c_function=True, tracer_entries=room, verbose=0)
    tracer.start()
    yield
    start = time.perf_counter()
    tracer.stop()
    if options.save:
        tracer.save(path)
        found["stop"] = time.perf_counter() - start
        found["bytes"] = os.path.getsize(path)  # noqa: PTH202
        found["recorded"] = tracer.total_entries
        found["lost"] = max(0, options.calls - tracer.total_entries)


@contextlib.contextmanager
def cprofile(_options, _found):
    import cProfile

    profile = cProfile.Profile()
    profile.enable()
    yield
    profile.disable()


TOOLS = {tool.__name__: tool for tool in (plain, count, whence, viztracer, cprofile)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=TOOLS)
    parser.add_argument("workload")
    parser.add_argument("--size", type=int)
    parser.add_argument("--calls", type=int, default=0)
    parser.add_argument("--folder", default=".")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    workload = importlib.import_module(f"workloads.{options.workload}")
    size = workload.SIZE if options.size is None else options.size
    found = {}
    workload.run(workload.WARM)
    with TOOLS[options.tool](options, found):
        start = time.process_time()  # of all threads
        found["result"] = workload.run(size)
        found["seconds"] = time.process_time() - start
    print(json.dumps(found), flush=True)
    os._exit(0)  # taking apart what VizTracer parsed takes seconds


if __name__ == "__main__":
    main()
