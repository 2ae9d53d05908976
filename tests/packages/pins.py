"""What is run and with what: every version and hash of tests/packages is here."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    """A package whose own tests, taken from its sdist, are run."""

    version: str
    sha256: str  # of the sdist
    watched: tuple[str, ...]  # the packages it installs
    least: int  # tests that pass, so that an empty run is no success
    chance: tuple[str, ...] = ()  # tests left out, as they pass or fail by chance


SUITES = {
    "attrs": Suite(
        "26.1.0",
        "d03ceb89cb322a8fd706d4fb91940737b6642aa36998fe130a9bc96c985eff32",
        ("attr", "attrs"),
        1_300,
        # Compares the addresses of two objects that do not live at the same time.
        ("tests/test_functional.py::TestFunctional::test_unsafe_hash_false_eq_false",),
    ),
    "click": Suite(
        "8.5.1",
        "9bbfada76703fd1d784b83eea012e3e8c6a001a876543ef104fa56aaaeb072b4",
        ("click",),
        2_300,
    ),
    "jinja2": Suite(
        "3.1.6",
        "0137fb05990d35f1275a587e9aee6d56da821fc83491a0fb838183be43f66d6d",
        ("jinja2",),
        850,
    ),
}

# What the suites need, with what that needs, and the tools they are run together with.
NEEDS = (
    "backports.zstd==1.8.0; python_version < '3.14'",
    "cloudpickle==3.1.2",
    "coverage==7.17.2",
    "hypothesis==6.170.15",
    "idna==3.20",
    "iniconfig==2.3.1",
    "markupsafe==3.0.4",
    "outcome==1.3.0.post0",
    "packaging==26.3",
    "pluggy==1.7.0",
    "pygments==2.21.0",
    "pympler==1.1",
    "pytest==9.0.2",
    "sniffio==1.3.1",
    "sortedcontainers==2.4.0",
    "trio==0.35.0",
)
