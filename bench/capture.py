"""What a capture costs, side by side: time and kept bytes, three depths, two cases.

"same" captures one live stack again and again: the best of many rounds, interleaved on
one core. "fresh" makes a new chain of calls for every capture: the median of what a
capture adds to the chain, each round measured with it and without it. Kept bytes are
the growth of resident memory in a child process that keeps thousands of captures, of
one stack ("same") or from 200 places ("fresh").
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
import traceback

import whence

DEPTHS = (10, 50, 200)
ROUNDS = 40
ROUND_NS = 1_000_000


def getframe_walk():
    frame = sys._getframe(1)
    found = []
    while frame is not None:
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return found


def methods():
    found = {
        "whence.capture": whence.capture,
        "sys._getframe walk": getframe_walk,
        "traceback.extract_stack": traceback.extract_stack,
    }
    try:
        from torch._C._profiler import gather_traceback
        from torch.utils._traceback import CapturedTraceback
    except ImportError:
        return found
    found["torch gather_traceback"] = lambda: gather_traceback(
        python=True, script=False, cpp=False
    )
    found["torch CapturedTraceback"] = CapturedTraceback.extract
    return found


def dive(depth, function):
    """Call `function` from `depth` frames further in; nothing is called for None."""
    if depth:
        return dive(depth - 1, function)
    if function is not None:
        return function()
    return None


def below():
    """Frames that are already there when main() dives."""
    return whence.capture(skip=1).depth


def timed(function, times):
    start = time.perf_counter_ns()
    for _ in range(times):
        function()
    return (time.perf_counter_ns() - start) / times


def timed_chain(chain, function, times):
    start = time.perf_counter_ns()
    for _ in range(times):
        dive(chain, function)
    return (time.perf_counter_ns() - start) / times


def time_same(depth, functions):
    """Best ns of each function, called in a loop at that depth."""
    best = dict.fromkeys(functions, float("inf"))

    def at_depth():
        times = {}
        for name, function in functions.items():
            timed(function, 3)
            times[name] = max(3, int(ROUND_NS / timed(function, 3)))
        for _ in range(ROUNDS):
            for name, function in functions.items():
                best[name] = min(best[name], timed(function, times[name]))

    dive(depth - below() - 2, at_depth)
    return best


def time_fresh(depth, functions):
    """Median ns that each function adds to a new chain of calls, measured in pairs."""
    chain = depth - below() - 2
    added = {name: [] for name in functions}
    for _ in range(ROUNDS):
        for name, function in functions.items():
            times = max(3, int(ROUND_NS / timed_chain(chain, function, 3)))
            without = timed_chain(chain, None, times)
            added[name].append(timed_chain(chain, function, times) - without)
    return {name: statistics.median(found) for name, found in added.items()}


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def in_child(function):
    """The integer that `function` returns, in a process of its own."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, str(function()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return float(text)


def kept_bytes(depth, function, fresh):
    """Resident bytes per capture, of captures that are all kept."""
    count = max(500, min(200_000, 40_000_000 // (depth * 200)))
    if function is whence.capture:
        count = 200_000
    lines = 200  # captures come from this many places

    def measure():
        source = "def places(chain, dive, function, kept):\n" + "".join(
            "    kept.append(dive(chain, function))\n" for _ in range(lines)
        )
        namespace = {}
        exec(source, namespace)
        places = namespace["places"]
        chain = depth - below() - 2
        kept = []
        places(chain, dive, function, kept)
        before = resident()
        if fresh:
            for _ in range(count // lines):
                places(chain, dive, function, kept)
        else:

            def again():
                kept.extend(function() for _ in range(count))

            dive(chain, again)
        return (resident() - before) / count

    return in_child(measure)


def show(depth, case, times, kept):
    ours = times["whence.capture"]
    for name, ns in times.items():
        print(
            f"{depth:>5}  {case:<5}  {name:<24} {ns:>11,.0f} {kept[name]:>11,.0f}"
            f" {ns / ours:>8.1f}"
        )
    print()


def bench_table():
    def again(times):
        for _ in range(times):
            whence.capture()

    seen = []
    for times in (10, 1_000_000):
        again(times)
        seen.append(whence.statistics())
    before, after = seen
    added = {
        "stacks": after.stacks - before.stacks,
        "codes": after.codes - before.codes,
        "bytes": after.stacks_bytes - before.stacks_bytes,
        "code bytes": after.codes_bytes - before.codes_bytes,
    }
    grown = ", ".join(f"{what} +{count}" for what, count in added.items())
    print(f"1,000,000 captures of one stack: {grown}")


def bench_dropped(count=1_000_000):
    """Bytes kept for each function that was made, called and dropped.

    CPython keeps something too (from 3.12 on, the interned name), so what a run without
    any capture keeps is taken off.
    """

    def run(body, capture):
        namespace = {"capture": whence.capture}
        start = resident()
        for number in range(count):
            exec(f"def function_{number}(): return {body}", namespace)
            namespace.pop(f"function_{number}")()
            if capture and number % 100 == 0:
                whence.capture()
        return (resident() - start) / count

    plain = in_child(lambda: run("1", capture=False))
    elsewhere = in_child(lambda: run("1", capture=True))
    captured = in_child(lambda: run("capture()", capture=True))
    print(
        "1,000,000 functions made and dropped as captures go on, bytes kept for each: "
        f"{max(0, elsewhere - plain):.1f} if never captured, "
        f"{captured - plain:.1f} if captured"
    )


def main():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    functions = methods()
    walk = whence.statistics().walk
    print(f"CPython {platform.python_version()}, {walk} walk, {ROUNDS} rounds")
    head = ("depth", "case", "method", "ns", "kept bytes", "x ours")
    print("{:>5}  {:<5}  {:<24} {:>11} {:>11} {:>8}".format(*head))
    for depth in DEPTHS:
        for case, measure in (("same", time_same), ("fresh", time_fresh)):
            times = measure(depth, functions)
            kept = {
                name: kept_bytes(depth, function, case == "fresh")
                for name, function in functions.items()
            }
            show(depth, case, times, kept)
    bench_table()
    bench_dropped()


if __name__ == "__main__":
    main()
