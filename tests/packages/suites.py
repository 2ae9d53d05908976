"""Run a package's test suite with an arrangement of tools, and compare two such runs.

An arrangement says what starts (+) and stops (-) at the beginning, in the middle and at
the end of the run: "+hook +whence / -whence +whence / -hook -whence".
"""

import json
import os
from dataclasses import dataclass

from harness import runner
from packages import environment, pins

INSIDE = runner.TESTS / "packages" / "inside"
MOST_SECONDS = 600


@dataclass(frozen=True)
class Run:
    """What came of a suite, as the plugin inside it saw it."""

    status: int  # of pytest
    outcomes: dict[str, str]  # by test
    tools: dict[str, dict[str, object]]  # what each other tool found
    recordings: list[dict[str, object]]


def without_whence(arrangement):
    ours = ("+whence", "-whence")
    phases = [phase.split() for phase in arrangement.split("/")]
    return "/".join(" ".join(s for s in steps if s not in ours) for steps in phases)


class Suites:
    """Runs suites; runs without a recording are kept, as many are compared with each.

    `folders` is where modules are imported from that the suites know nothing of.
    """

    def __init__(self, folder, folders):
        self._folder = folder
        self._path = os.pathsep.join(map(str, [INSIDE, *folders]))
        self._numbers = iter(range(1_000_000))
        self._kept = {}

    def plain(self, name, arrangement, **variables):
        key = name, arrangement, *variables.items()
        if key not in self._kept:
            self._kept[key] = self.run(name, arrangement, **variables)
        return self._kept[key]

    def run(self, name, arrangement, **variables):
        folder = self._folder / str(next(self._numbers))
        folder.mkdir()
        only = variables.pop("only", ())
        command = [environment.python(), "-X", "faulthandler", "-m", "pytest", "-q"]
        command += ["-p", "no:cacheprovider", "-p", "no:randomly", "--assert=plain"]
        command += ["-p", "recorded_suite", f"--basetemp={folder / 'tests'}", *only]
        command += [f"--deselect={test}" for test in pins.SUITES[name].chance]
        done = runner.run_command(
            command,
            timeout=MOST_SECONDS,
            cwd=environment.sources(name),
            env={
                "PYTHONPATH": self._path,
                "PYTHONDONTWRITEBYTECODE": "",  # compiling takes half of the time
                "PYTHONHASHSEED": "0",
                "WHENCE_ARRANGEMENT": arrangement,
                "WHENCE_WATCHED": " ".join(pins.SUITES[name].watched),
                "WHENCE_RESULTS": str(folder),
                **variables,
            },
        )
        results = folder / "results.json"
        assert results.exists(), f"{arrangement}:\n{done.out}\n{done.err}"
        return Run(done.status, **json.loads(results.read_text()))


def differences(expected, got):
    """Return what is not the same in two runs, a line each; nothing of recordings."""
    found = []
    if got.status != expected.status:
        found.append(f"pytest ended with {got.status}, not {expected.status}")
    found += differing("", expected.outcomes, got.outcomes)
    for tool in sorted(expected.tools.keys() | got.tools.keys()):
        pair = expected.tools.get(tool, {}), got.tools.get(tool, {})
        found += differing(f"{tool}: ", *pair)
    return found


def differing(what, expected, got):
    return [
        f"{what}{key}: {got.get(key)}, not {expected.get(key)}"
        for key in sorted(expected.keys() | got.keys())
        if expected.get(key) != got.get(key)
    ]
