"""What recording every call costs, side by side: whence, VizTracer, cProfile, nothing.

Each measurement is a process of its own on one core, in turns; the best of the rounds
counts, in CPU seconds of the workload alone. A workload is judged if VizTracer adds at
least half of what it takes plain. Bytes are those of the closed file, for each Python
call that the interpreter's own profile events count (resumptions are calls). To stop,
whence takes the median of the rounds; VizTracer saves in the first one only, as that
can take half a minute. The last part counts the instructions that a loop with few calls
takes, recorded and not.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import whence

HERE = Path(__file__).parent
WORKLOADS = ("fib", "objects", "generators", "tasks", "numeric", "threads", "sql")
TOOLS = ("plain", "whence", "viztracer", "cprofile")
# Of what VizTracer adds; the peer became faster with sys.monitoring.
MOST_ADDED = 1 / 3 if sys.version_info < (3, 12) else 0.55
MOST_BYTES, MOST_STOP, MOST_INSTRUCTIONS = 4, 0.03, 1.02
FEW = 50_000  # calls, of which a file is all head and no body: not judged


def tools_there():
    found = ["plain"]
    try:
        whence.record("unused", calls=True)
        found.append("whence")
    except TypeError:
        print("this whence records no calls: no comparison with it")
    try:
        import viztracer  # noqa: F401

        found.append("viztracer")
    except ImportError:
        print("viztracer is not there: no comparison with it")
    return [*found, "cprofile"]


def measure(tool, workload, *options):
    command = [sys.executable, str(HERE / "measure_calls.py"), tool, workload]
    if shutil.which("taskset"):
        command = ["taskset", "-c", str(max(os.sched_getaffinity(0))), *command]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [*command, *options],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=environment,
    )
    return json.loads(done.stdout)


def rounds_of(workload, tools, rounds, folder, *, files):
    """How many calls there are, and what each tool made of them."""
    counted = measure("count", workload)
    options = [f"--calls={counted['calls']}", f"--folder={folder}"]
    found = {tool: [] for tool in tools}
    for number in range(rounds):
        save = ["--save"] if number == 0 and files else []
        for tool in tools:
            found[tool].append(measure(tool, workload, *options, *save))
            if found[tool][-1]["result"] != counted["result"]:
                message = f"{workload} has another result under {tool}"
                raise RuntimeError(message)
    return counted["calls"], {tool: summary(found[tool]) for tool in tools}


def summary(rounds):
    best = {**rounds[0], "seconds": min(one["seconds"] for one in rounds)}
    if "stop" in best:
        saved = [one for one in rounds if "stop" in one]
        best["stop"] = statistics.median(one["stop"] for one in saved)
        best["lost"] = max(one["lost"] for one in saved)
    return best


def verdict(passed):
    return "pass" if passed else "MISSED"


def show_time(best):
    """The line of a workload in the table, and whether its goal was reached."""
    plain = best["plain"]["seconds"]
    added = {tool: best[tool]["seconds"] - plain for tool in TOOLS[1:] if tool in best}
    cells = [f"{plain:8.3f}"]
    cells += [
        f"{added[tool]:+9.3f}" if tool in added else 9 * " " for tool in TOOLS[1:]
    ]
    theirs = added.get("viztracer")
    if theirs is None:
        return "".join(cells)
    judged = theirs >= plain / 2
    if "whence" not in added:
        return "".join(cells) + ("" if judged else "   not judged")
    ratio = added["whence"] / theirs
    text = f"   {ratio:5.2f} " + (
        verdict(ratio <= MOST_ADDED) if judged else "unjudged"
    )
    return "".join(cells) + text


def show_file(calls, best):
    """Bytes a call, calls lost and seconds to stop, of ours and of VizTracer's."""
    texts = []
    for tool in ("whence", "viztracer"):
        found = best.get(tool, {})
        if "stop" in found:
            size = found["bytes"] / calls
            judged = tool == "whence" and calls >= FEW
            goal = f" {verdict(size <= MOST_BYTES)}" if judged else ""
            texts.append(
                f"{tool} {size:.1f} bytes a call{goal}, "
                f"{found['recorded']:,} recorded, {found['lost']:,} lost, "
                f"stop {found['stop']:.3f} s"
            )
    if len(texts) == 2:
        ratio = best["whence"]["stop"] / best["viztracer"]["stop"]
        goal = f" {verdict(ratio <= MOST_STOP)}" if calls >= FEW else ""
        texts.append(f"stop ratio {ratio:.3f}{goal}")
    return "; ".join(texts)


def measure_times(options, tools, folder):
    print(f"CPU seconds plain, and added by each; best of {options.rounds} in turns")
    names = ("plain", "whence", "VizTracer", "cProfile", "ratio")
    print("{:11}{:>8}{:>9}{:>10}{:>9}{:>9}".format("", *names))
    files = {}
    for workload in options.workloads:
        used = [tool for tool in tools if (tool, workload) != ("cprofile", "threads")]
        calls, best = rounds_of(
            workload, used, options.rounds, folder, files=not options.times_only
        )
        print(f"{workload:11}{show_time(best)}", flush=True)
        files[workload] = calls, show_file(calls, best)
    print("cProfile has no threads. The closed files:")
    for workload, (calls, text) in files.items():
        print(f"  {workload:11}{calls:>10,} calls; {text}")


def instructions(tool, size, folder):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command += [sys.executable, str(HERE / "measure_calls.py"), tool, "numeric"]
    done = subprocess.run(
        [*command, f"--size={size}", f"--folder={folder}"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    (count,) = re.findall(r"Collected : (\d+)", done.stderr)
    return int(count)


def measure_instructions(tools, folder):
    """Differences of two sizes, so that start-up and setting up cancel out."""
    if shutil.which("valgrind") is None:
        print("instructions: not counted, there is no valgrind")
        return
    size = 97  # a period of the loop, so each column is there as often
    counts = {
        tool: instructions(tool, 2 * size, folder) - instructions(tool, size, folder)
        for tool in tools
        if tool in ("plain", "whence")
    }
    print(f"instructions of the numeric loop, plain: {counts['plain']:,}", end="")
    if "whence" in counts:
        ratio = counts["whence"] / counts["plain"]
        print(f"; recorded: {ratio:.4f} {verdict(ratio <= MOST_INSTRUCTIONS)}", end="")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--times-only", action="store_true", help="minutes less")
    parser.add_argument("--tools", nargs="+", choices=TOOLS[1:], default=TOOLS)
    parser.add_argument("workloads", nargs="*", default=WORKLOADS, metavar="workload")
    options = parser.parse_args()
    print(f"== calls, CPython {platform.python_version()}")
    print(
        f"goals: at most {MOST_ADDED:.2f} of what VizTracer adds, {MOST_BYTES} bytes a "
        f"call, {MOST_STOP:.0%} of its time to stop, {MOST_INSTRUCTIONS} of the "
        "instructions"
    )
    tools = [tool for tool in tools_there() if tool in ("plain", *options.tools)]
    with tempfile.TemporaryDirectory() as folder:
        measure_times(options, tools, folder)
        if not options.times_only:
            measure_instructions(tools, folder)


if __name__ == "__main__":
    main()
