"""What recording memory costs, side by side: whence, memray, tracemalloc, nothing.

Each measurement is a process of its own on one core, in turns; the best of the rounds
counts, in CPU seconds of the workload alone. memray traces Python's allocators, too,
but for the C extension, where it does what it does by default, and whence records all.
Bytes are those of the closed file for each event that whence has: memray's files have
more, since its tracing makes a frame object for every call, which is none of the
program's doing. A deep recursion is measured with calls, too. The last part runs a
workload four times as long: what a recorder holds in memory must not grow with it.
Before that, peaks are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
EXTENSIONS = HERE.parent / "build" / "bench-extensions"
WORKLOADS = ("allocations", "recursion", "sql", "deep", "blocks_in_c")
TOOLS = ("plain", "whence", "memray", "tracemalloc_1", "tracemalloc_25")
IN_C = "blocks_in_c"
TOOLS_IN_C = ("plain", "whence_all", "memray_default")
DEEP = "deep"
TOOLS_DEEP = ("plain", "whence", "whence_calls", "whence_both", "whence_both_native")
MOST_DEEP = 3
MOST_ADDED, MOST_BYTES, MOST_RESIDENT = 1 / 3, 1.1, 32_000_000
MOST_ADDED_IN_C, MOST_APART = 1 / 2, 0.01


def measure(tool, workload, *options):
    command = [sys.executable, str(HERE / "measure_memory.py"), tool, workload]
    if shutil.which("taskset"):
        command = ["taskset", "-c", str(max(os.sched_getaffinity(0))), *command]
    done = subprocess.run(
        [*command, *options],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(EXTENSIONS)},
    )
    return json.loads(done.stdout)


def in_turns(rounds, tools, workload, folder):
    """Return the best run of each."""
    found = {tool: [] for tool in tools}
    for _ in range(rounds):
        for tool in tools:
            found[tool].append(measure(tool, workload, f"--folder={folder}"))
    return {
        tool: min(runs, key=lambda run: run["seconds"]) for tool, runs in found.items()
    }


def verdict(passed):
    return "pass" if passed else "MISSED"


def tools_there():
    try:
        import memray  # noqa: F401
    except ImportError:
        print("memray is not there: no comparison with it")
        return [tool for tool in TOOLS if tool != "memray"]
    return list(TOOLS)


def show(workload, best):
    plain = best["plain"]["seconds"]
    added = {tool: found["seconds"] - plain for tool, found in best.items()}
    cells = [f"{plain:8.3f}"]
    cells += [
        f"{added[tool]:+15.3f}" if tool in added else 15 * " " for tool in TOOLS[1:]
    ]
    below = added["whence"] < added["tracemalloc_1"]
    goals = [f"below tracemalloc(1) {verdict(below)}"]
    if "memray" in added:
        ratio = added["whence"] / added["memray"]
        goals.insert(0, f"{ratio:.2f} of memray {verdict(ratio <= MOST_ADDED)}")
    print(f"{workload:<12}" + "".join(cells) + "   " + ", ".join(goals))


def show_file(workload, best):
    events = best["whence"]["events"]
    there = [tool for tool in ("whence", "memray") if tool in best]
    each = {tool: best[tool]["bytes"] / events for tool in there}
    texts = [
        f"{tool} {size:.2f} bytes an event "
        f"({best[tool]['bytes'] / best[tool]['events']:.2f} of its "
        f"{best[tool]['events']:,})"
        for tool, size in each.items()
    ]
    if len(each) == 2:
        ratio = each["whence"] / each["memray"]
        texts.append(f"{ratio:.2f} {verdict(ratio <= MOST_BYTES)}")
    texts.append(f"lost {best['whence']['lost']:,}")
    print(f"{workload:<12}" + "; ".join(texts))


def build_extension():
    """As a user's would be."""
    EXTENSIONS.mkdir(parents=True, exist_ok=True)
    target = EXTENSIONS / ("takes" + sysconfig.get_config_var("EXT_SUFFIX"))
    command = ["c++", "-std=c++20", "-O2", "-shared", "-fPIC"]
    command += ["-isystem", sysconfig.get_path("include"), "-o", str(target)]
    subprocess.run([*command, str(HERE / "native" / "takes.cpp")], check=True)


def measure_in_c(rounds, tools, folder):
    """What recording all memory costs a C extension that takes much of it."""
    build_extension()
    wanted = [t for t in TOOLS_IN_C if "memray" not in t or "memray" in tools]
    best = in_turns(rounds, wanted, IN_C, folder)
    plain = best["plain"]["seconds"]
    added = {tool: run["seconds"] - plain for tool, run in best.items()}
    texts = [f"{plain:.3f} s plain", f'memory="all" {added["whence_all"]:+.3f}']
    if "memray_default" in best:
        ratio = added["whence_all"] / added["memray_default"]
        texts.append(f"memray {added['memray_default']:+.3f}")
        texts.append(f"{ratio:.2f} of it {verdict(ratio <= MOST_ADDED_IN_C)}")
    print("a C extension: " + ", ".join(texts))
    for tool in wanted[1:]:
        run = best[tool]
        each = run["bytes"] / run["events"]
        print(f"    {tool}: {run['events']:,} events, {each:.2f} bytes each")


def measure_deep(rounds, folder):
    """Memory with calls in a deep recursion: no more than each on its own, or so."""
    best = in_turns(rounds, TOOLS_DEEP, DEEP, folder)
    plain = best["plain"]["seconds"]
    added = {tool: run["seconds"] - plain for tool, run in best.items()}
    alone = added["whence"] + added["whence_calls"]
    ratio = added["whence_both"] / alone
    print(
        f"a deep recursion: {plain:.3f} s plain, memory {added['whence']:+.3f}, "
        f"calls {added['whence_calls']:+.3f}, both {added['whence_both']:+.3f}, "
        f"{ratio:.2f} of them {verdict(ratio <= MOST_DEEP)}, "
        f"with native frames {added['whence_both_native']:+.3f}"
    )


def measure_peaks(folder):
    """The most that was in use at a time, by both; the collector would move it.

    memray's tracing makes a frame object for every call, and at the peak some of those
    are in use: with whence they are made, too, so that both see the same program.
    """
    for workload in ("allocations", "objects", "sql"):
        options = ["--no-gc", f"--folder={folder}"]
        ours, theirs = (
            measure(tool, workload, *options)["peak"]
            for tool in ("whence_traced", "memray")
        )
        off = abs(ours - theirs) / theirs
        print(
            f"peak of {workload}: {ours:,} bytes, {theirs:,} by memray, "
            f"{100 * off:.2f} % apart {verdict(off <= MOST_APART)}"
        )


def measure_resident(folder):
    """What whence holds in memory beside what the program does, in two lengths."""
    for size in (100_000, 400_000):
        options = [f"--size={size}", f"--folder={folder}"]
        plain, ours = (
            measure(tool, "allocations", *options)["resident"]
            for tool in ("plain", "whence")
        )
        more = ours - plain
        goal = verdict(more <= MOST_RESIDENT)
        print(f"{size:,} rounds: {more / 1e6:.1f} MB more in memory {goal}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--workload", action="append", choices=WORKLOADS)
    options = parser.parse_args()
    print(f"== memory, CPython {platform.python_version()}")
    tools = tools_there()
    print(f"CPU seconds plain, and added by each; best of {options.rounds} in turns")
    print(f"{'':<12}{'plain':>8}" + "".join(f"{tool:>15}" for tool in TOOLS[1:]))
    with tempfile.TemporaryDirectory() as folder:
        all_best = {}
        for workload in options.workload or WORKLOADS:
            if workload in (DEEP, IN_C):
                continue
            all_best[workload] = in_turns(options.rounds, tools, workload, folder)
            show(workload, all_best[workload])
        for workload, best in all_best.items():
            show_file(workload, best)
        if DEEP in (options.workload or WORKLOADS):
            measure_deep(options.rounds, folder)
        if IN_C in (options.workload or WORKLOADS):
            measure_in_c(options.rounds, tools, folder)
        if options.workload is None:
            if "memray" in tools:
                measure_peaks(folder)
            measure_resident(folder)


if __name__ == "__main__":
    main()
