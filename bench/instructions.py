"""Instructions a capture takes, by callgrind: the same however busy the machine is.

Each figure is the difference between two runs of a child that captures 1,000 and 3,000
times, so start-up and the first capture cancel out. The loop's own instructions and
the making and freeing of the Stack object are in it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

CHILD = """
import sys, whence
depth, times = int(sys.argv[1]), int(sys.argv[2])

def dive(depth, capture):
    if depth:
        return dive(depth - 1, capture)
    for _ in range(times):
        capture()

dive(depth - 2, whence.capture)
"""


def instructions(depth, times):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command += [sys.executable, "-c", CHILD, str(depth), str(times)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (count,) = re.findall(r"Collected : (\d+)", done.stderr)
    return int(count)


def main():
    if shutil.which("valgrind") is None:
        print("instructions per capture: not counted, there is no valgrind")
        return
    counts = {}
    for depth in (10, 50, 200):
        counts[depth] = (instructions(depth, 3000) - instructions(depth, 1000)) / 2000
    each = (counts[200] - counts[10]) / 190
    text = ", ".join(f"{count:,.0f} at depth {d}" for d, count in counts.items())
    print(f"instructions per capture of the same stack: {text}; {each:.1f} a frame")


if __name__ == "__main__":
    main()
