"""One measurement for bench/read.py. Prints a line of JSON.

python measure_read.py record FILE N | decode FILE | viztracer FILE N | json FILE |
    memray FILE | memray-read FILE | export FILE OUT
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time


def fib(number):
    return number if number < 2 else fib(number - 1) + fib(number - 2)


def record(path, number):
    import whence

    with whence.record(path, gc=False):
        fib(int(number))
    return {}


def decode(path):
    import whence
    import whence._zstd  # as json.load has its module imported, too

    with whence.open(path) as recording:
        start = time.process_time()
        count = sum(len(batch) for batch in recording.calls())
        seconds = time.process_time() - start
    return {"seconds": seconds, "count": count, "records": 2}  # of a call


def viztracer(path, number):
    from viztracer import VizTracer

    tracer = VizTracer(ignore_c_function=True, tracer_entries=10_000_000, verbose=0)
    tracer.start()
    fib(int(number))
    tracer.stop()
    start = time.process_time()
    tracer.save(path)
    seconds = time.process_time() - start
    return {"seconds": seconds, "count": tracer.total_entries}


def load(path):
    with open(path) as file:
        start = time.process_time()
        trace = json.load(file)
        seconds = time.process_time() - start
    count = sum(event["ph"] == "X" for event in trace["traceEvents"])
    return {"seconds": seconds, "count": count}


def memray(path):
    import memray as profiler

    kept = []
    with profiler.Tracker(path, trace_python_allocators=True):
        for number in range(200_000):
            kept.append(bytes(600))
            if number % 3:
                kept.pop()
    return {}


def read_memray(path):
    import memray as profiler

    with profiler.FileReader(path) as reader:
        start = time.process_time()
        count = sum(1 for _ in reader.get_allocation_records())
        seconds = time.process_time() - start
    return {"seconds": seconds, "count": count}


def export(path, out):
    import whence
    from whence import export as package

    with whence.open(path) as recording:
        start = time.process_time()
        package.export(recording, out)
        seconds = time.process_time() - start
        memory = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        count = sum(len(batch) for batch in recording.calls())
    size = os.path.getsize(out)  # noqa: PTH202
    return {"seconds": seconds, "count": count, "memory": memory, "bytes": size}


WHAT = {
    "record": record,
    "decode": decode,
    "viztracer": viztracer,
    "json": load,
    "memray": memray,
    "memray-read": read_memray,
    "export": export,
}


if __name__ == "__main__":
    print(json.dumps(WHAT[sys.argv[1]](*sys.argv[2:])), flush=True)
    os._exit(0)
