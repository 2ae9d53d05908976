"""A pytest plugin that runs inside a package's suite: starts tools, keeps outcomes.

WHENCE_ARRANGEMENT says what to start and stop (see suites.py), WHENCE_RESULTS is the
folder for results.json and recordings.
"""

import gc
import json
import os
import random
from collections import defaultdict
from pathlib import Path

import other_tools
import pytest

FOLDER = Path(os.environ["WHENCE_RESULTS"])
BEGINNING, MIDDLE, END = os.environ["WHENCE_ARRANGEMENT"].split("/")

outcomes = defaultdict(list)
tools = {}
left = 0  # tests until the middle


def arrange(steps):
    for step in steps.split():
        action, name = step[0], step[1:]
        if name not in tools:
            tools[name] = other_tools.TOOLS[name](FOLDER)
        {"+": tools[name].start, "-": tools[name].stop}[action]()


def beside_another_tool():
    return bool(set(BEGINNING.split()) - {"+whence"})


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests():
    """Begin before anything of the package is imported.

    Beside another tool the collector is off. It calls back into jinja2 (weak
    references), and whether a tool sees that depends on when it runs: on 3.13 importing
    sqlite3 first, with no whence about, changes the debugger's counts. Runs alone
    have the collector on.
    """
    if beside_another_tool():
        gc.disable()
    arrange(BEGINNING)


def pytest_sessionstart():
    """Hypothesis is to try the same examples each time, not many, at any speed."""
    try:
        from hypothesis import HealthCheck, settings
    except ImportError:
        return
    slow = [HealthCheck.too_slow]
    options = {"deadline": None, "database": None, "suppress_health_check": slow}
    options |= {"derandomize": True, "max_examples": 10}
    settings.register_profile("same", settings(**options))
    settings.load_profile("same")


def pytest_pycollect_makeitem(obj):
    """Leave click's 31,000 stress tests out: it deselects them, but only at the end."""
    if any(mark.name == "stress" for mark in getattr(obj, "pytestmark", ())):
        return []
    return None


def pytest_collection_modifyitems(config, items):
    """Beside another tool, leave out what hypothesis tests.

    What it tries need not be the same in two runs: with no whence about, one run in 24
    had another count of a function of attrs. Runs alone have these tests.
    """
    if beside_another_tool():
        tried = [item for item in items if item.get_closest_marker("hypothesis")]
        config.hook.pytest_deselected(items=tried)
        items[:] = [item for item in items if item not in tried]


def pytest_collection_finish(session):
    global left
    left = len(session.items) // 2


def pytest_collectreport(report):
    if not report.passed:
        outcomes[f"collecting {report.nodeid}"].append(report.outcome)


def pytest_runtest_setup():
    random.seed(0)  # jinja2 makes texts by chance


def pytest_runtest_call(item):
    if "wreck" in tools:
        tools["wreck"].spoil(item)


def pytest_runtest_logreport(report):
    expected = " as expected" if hasattr(report, "wasxfail") else ""
    outcomes[report.nodeid].append(f"{report.when} {report.outcome}{expected}")


def pytest_runtest_logfinish():
    global left
    left -= 1
    if left == 0:
        arrange(MIDDLE)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure():
    arrange(END)
    recordings = tools.pop("whence").found() if "whence" in tools else []
    results = {
        "outcomes": {name: ", ".join(each) for name, each in outcomes.items()},
        "tools": {name: tool.found() for name, tool in tools.items()},
        "recordings": recordings,
    }
    (FOLDER / "results.json").write_text(json.dumps(results))
