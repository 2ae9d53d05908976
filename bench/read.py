"""What reading costs, side by side: whence, VizTracer's JSON, memray's own reader.

Each measurement is a process of its own on one core; the best of the rounds counts, in
CPU seconds. whence decodes a recording to columns; `json.load` reads what VizTracer
saved of the same program; memray reads the allocations that it recorded of another.
The last part exports ten million calls to Perfetto, with the memory that it took.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
LEAST_JSON, LEAST_MEMRAY, LEAST_SAVE = 40, 5, 20  # times faster, each
MOST_MEMORY = 300_000_000


def measure(what, *arguments):
    command = [sys.executable, str(HERE / "measure_read.py"), what]
    if shutil.which("taskset"):
        command = ["taskset", "-c", str(max(os.sched_getaffinity(0))), *command]
    done = subprocess.run(
        [*command, *map(str, arguments)], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)


def best(rounds, what, *arguments):
    return min(
        (measure(what, *arguments) for _ in range(rounds)), key=lambda m: m["seconds"]
    )


def each(found):
    """Nanoseconds for each call or record."""
    return 1e9 * found["seconds"] / found["count"]


def verdict(passed):
    return "pass" if passed else "MISSED"


def there(module):
    try:
        __import__(module)
    except ImportError:
        print(f"{module} is not there: no comparison with it")
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fib", type=int, default=30, help="2.7 M calls")
    parser.add_argument("--large", type=int, default=33, help="11 M calls")
    options = parser.parse_args()
    print(f"== reading, CPython {platform.python_version()}")
    with tempfile.TemporaryDirectory() as folder:
        ours, rounds = f"{folder}/a.whence", options.rounds
        measure("record", ours, options.fib)
        decoded = best(rounds, "decode", ours)
        print(f"to columns: {each(decoded):.0f} ns a call, {decoded['count']:,} calls")
        saved = None
        if there("viztracer"):
            theirs = f"{folder}/a.json"
            saved = measure("viztracer", theirs, options.fib)
            loaded = best(min(rounds, 3), "json", theirs)  # 12 s each
            ratio = each(loaded) / each(decoded)
            print(
                f"json.load of VizTracer's file: {each(loaded):.0f} ns a call, "
                f"{ratio:.0f} times as long {verdict(ratio >= LEAST_JSON)}"
            )
        if there("memray"):
            theirs = f"{folder}/a.bin"
            measure("memray", theirs)
            read = best(rounds, "memray-read", theirs)
            ours_each = each(decoded) / decoded["records"]
            ratio = each(read) / ours_each
            print(
                f"memray's reader: {each(read):.0f} ns a record, ours {ours_each:.0f}: "
                f"{ratio:.1f} times as long {verdict(ratio >= LEAST_MEMRAY)}"
            )
        large = f"{folder}/large.whence"
        measure("record", large, options.large)
        made = measure("export", large, f"{folder}/large.pftrace")
        memory = made["memory"]
        print(
            f"to Perfetto: {each(made):.0f} ns a call, {made['count']:,} calls, "
            f"{memory / 1e6:.0f} MB of memory {verdict(memory < MOST_MEMORY)}, "
            f"{made['bytes'] / made['count']:.1f} bytes a call"
        )
        if saved is not None:
            ratio = each(saved) / each(made)
            print(
                f"VizTracer's save: {each(saved):.0f} ns a call, {ratio:.0f} times as "
                f"long {verdict(ratio >= LEAST_SAVE)}"
            )


if __name__ == "__main__":
    main()
