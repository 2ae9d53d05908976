"""Suites of other packages come out the same recorded, alone and with other tools."""

import sys

import pytest

import whence
from conftest import compile_extension
from packages import environment, pins
from packages.suites import Suites, differences, without_whence

pytestmark = [pytest.mark.packages, pytest.mark.timeout(1800)]

# A tool of inside/other_tools.py, and what selects its kind.
TOOLS = {
    "coverage, C tracer": ("coverage", {"COVERAGE_CORE": "ctrace"}),
    "coverage, monitoring": ("coverage", {"COVERAGE_CORE": "sysmon"}),
    "debugger": ("debugger", {}),
    "cProfile": ("profile", {}),
}
HOOKS = {
    "theirs first": "+hook +whence // -whence -hook",
    "theirs first, stopped first": "+hook +whence // -hook -whence",
    "ours first": "+whence +hook // -hook -whence",
    "ours first, stopped first": "+whence +hook // -whence -hook",
    "ours again above": "+hook +whence / -whence +whence / -whence -hook",
    "ours again below": "+whence +hook / -whence +whence / -hook -whence",
    "theirs again below": "+hook +whence / -hook +hook / -whence -hook",
    "theirs again above": "+whence +hook / -hook +hook / -whence -hook",
    "ours after all": "+hook +whence // -hook -whence +whence -whence",
}


@pytest.fixture(scope="module")
def suites(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suites")
    compile_extension(folder, "eval_hook")
    return Suites(folder, [folder, environment.link_whence(folder)])


def check(suites, name, arrangement, **variables):
    expected = suites.plain(name, without_whence(arrangement), **variables)
    passed = [each for each in expected.outcomes.values() if "call passed" in each]
    assert len(passed) >= pins.SUITES[name].least
    assert all(len(found) > 5 for found in expected.tools.values())
    got = suites.run(name, arrangement, **variables)
    assert differences(expected, got) == []
    for recording in got.recordings:
        assert recording["state"] == "on", recording
        assert recording["reason"] is None
        assert recording["dropped"] == {}
        whence.open(recording["path"]).close()
    recorded = sum(recording["recorded"] for recording in got.recordings)
    assert recorded > 100 * len(expected.outcomes)  # calls, not just collections
    return got


@pytest.mark.parametrize("name", pins.SUITES)
def test_alone(suites, name):
    check(suites, name, "+whence // -whence")


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", pins.SUITES)
def test_inside_another_tool(suites, name, tool):
    together(suites, name, tool, "+{0} +whence // -whence -{0}")


@pytest.mark.parametrize("tool", TOOLS)
def test_around_another_tool(suites, tool):
    together(suites, "attrs", tool, "+whence +{0} // -{0} -whence")


@pytest.mark.parametrize("tool", TOOLS)
def test_started_again_beside_another_tool(suites, tool):
    together(suites, "attrs", tool, "+whence +{0} / -whence +whence / -whence -{0}")


def together(suites, name, tool, arrangement):
    other, variables = TOOLS[tool]
    if variables.get("COVERAGE_CORE") == "sysmon" and sys.version_info < (3, 12):
        pytest.skip("sys.monitoring came with 3.12")
    got = check(suites, name, arrangement.format(other), **variables)
    if other == "coverage":
        core = {"ctrace": "CTracer", "sysmon": "SysMonitor"}[variables["COVERAGE_CORE"]]
        assert got.tools["coverage"]["core"] == core


@pytest.mark.parametrize("order", HOOKS)
def test_with_another_eval_frame_hook(suites, order):
    check(suites, "jinja2", HOOKS[order])


@pytest.mark.parametrize("name", sorted(pins.SUITES.keys() - {"jinja2"}))
def test_with_an_eval_frame_hook_on_other_suites(suites, name):
    check(suites, name, "+whence +hook // -whence -hook")


@pytest.mark.parametrize(
    ("tool", "variables"),
    [("coverage", {"COVERAGE_CORE": "ctrace"}), ("debugger", {})],
)
def test_a_tool_that_does_harm_is_noticed(suites, tool, variables):
    """What these tests stand on: a test that fails and lines that go missing show."""
    only = ("tests/test_utils.py",)
    plain = suites.plain("jinja2", f"+{tool} // -{tool}", only=only, **variables)
    again = suites.run("jinja2", f"+{tool} // -{tool}", only=only, **variables)
    assert differences(plain, again) == []
    wrecked = f"+{tool} +wreck // -wreck -{tool}"
    bad = suites.run("jinja2", wrecked, only=only, **variables)
    found = differences(plain, bad)
    assert any("call failed, teardown passed, not" in line for line in found), found
    assert any(line.startswith(f"{tool}: ") for line in found), found
    assert found[0] == "pytest ended with 1, not 0"
