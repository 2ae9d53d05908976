"""What recording costs: a span beside VizTracer's, and one record, taken apart.

Spans are timed in turns in one process, each tool recording into a file or buffer of
its own; the best of many rounds, less the empty loop, so the `with` statement is in it.
One record is timed and counted natively (bench/native/write.cpp): by the clock of the
machine, and by callgrind's instruction counts as the difference of two runs.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

import whence

ROUNDS = 60
TIMES = 2_000


def timed(make):
    if make is None:
        start = time.perf_counter_ns()
        for _ in range(TIMES):
            pass
        return (time.perf_counter_ns() - start) / TIMES
    start = time.perf_counter_ns()
    for _ in range(TIMES):
        with make("name"):
            pass
    return (time.perf_counter_ns() - start) / TIMES


def best_of(functions):
    """Best ns of each, in turns."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for name, (make, around) in functions.items():
            with around():
                best[name] = min(best[name], timed(make))
    return best


def measure_spans(folder):
    functions = {"empty loop": (None, contextlib.nullcontext)}
    number = iter(range(1000))

    def recording():
        path = f"{folder}/{next(number)}.whence"
        return whence.record(path, max_size="8MB", gc=False, pack=False, calls=False)

    functions["whence.span, recording"] = (whence.span, recording)
    functions["whence.span, off"] = (whence.span, contextlib.nullcontext)
    try:
        from viztracer import VizTracer
    except ImportError:
        print("viztracer is not there: no comparison")
    else:
        tracer = VizTracer(verbose=0, max_stack_depth=0)

        @contextlib.contextmanager
        def tracing():
            tracer.start()
            yield
            tracer.stop()
            tracer.clear()

        functions["viztracer log_event"] = (tracer.log_event, tracing)
    best = best_of(functions)
    base = best.pop("empty loop")
    print(f"a span ({TIMES * ROUNDS:,} each, less an empty loop of {base:.0f} ns):")
    for name, ns in best.items():
        print(f"  {name:26}{ns - base:9.0f} ns")
    if "viztracer log_event" in best:
        theirs = best["viztracer log_event"] - base
        ratio = theirs / (best["whence.span, recording"] - base)
        print(f"  log_event / span: {ratio:.1f}")


def native(*args):
    command = [*args]
    if shutil.which("taskset"):
        command = ["taskset", "-c", str(max(os.sched_getaffinity(0))), *command]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


def instructions(program, what, folder):
    counts = []
    for times in (1_000, 3_000):
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
        _, err = native(*command, program, what, str(times), f"{folder}/n.whence")
        counts += map(int, re.findall(r"Collected : (\d+)", err))
    return (counts[1] - counts[0]) / 2_000


def measure_records(program, folder):
    kinds = ("clock", "mark", "counter", "span")
    best = dict.fromkeys(kinds, float("inf"))
    for _ in range(15):
        for what in kinds:
            out, _ = native(program, what, "1000000", f"{folder}/n.whence")
            best[what] = min(best[what], float(out))
    clock = best["clock"]
    print(f"one record, natively (a reading of the clock takes {clock:.1f} ns):")
    for what in ("mark", "counter"):
        own = best[what] - clock
        print(
            f"  {what:8}{best[what]:6.1f} ns with its clock reading; encoding and "
            f"commit {own:.1f} ns, {own / clock:.2f} of the reading"
        )
    print(f"  {'span':8}{best['span']:6.1f} ns: two records, two readings")
    if shutil.which("valgrind") is None:
        print("  instructions: not counted, there is no valgrind")
        return
    counts = {what: instructions(program, what, folder) for what in kinds[:3]}
    text = ", ".join(f"{what} {count:.0f}" for what, count in counts.items())
    print(f"  instructions each, loop included, by callgrind: {text}")


def measure_size(folder):
    count = 200_000
    for pack in (False, True):
        path = f"{folder}/size-{pack}.whence"
        with whence.record(path, gc=False, pack=pack, calls=False):
            start = time.perf_counter_ns()
            for number in range(count):
                with whence.span("request"):
                    whence.counter("number", number)
            elapsed = (time.perf_counter_ns() - start) / count
        with whence.open(path) as recording:
            recorded = recording.losses.recorded
        size = os.stat(path).st_size / recorded  # noqa: PTH116
        kind = "packed" if pack else "plain"
        print(f"a span and a counter, {kind}: {size:.2f} bytes an event", end="")
        print(f", {elapsed:.0f} ns for the three events" if not pack else "")


def main():
    print(f"== recording, CPython {platform.python_version()}")
    with tempfile.TemporaryDirectory() as folder:
        measure_spans(folder)
        if len(sys.argv) > 1:
            measure_records(sys.argv[1], folder)
        measure_size(folder)


if __name__ == "__main__":
    main()
