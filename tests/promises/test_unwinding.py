"""Unwinding never crashes, whatever a stack is made of, and finds the same each time.

tests/native/storm.cpp makes the stacks; how many is an option (--captures). Each is
walked twice in two ways which must agree, and some by glibc as well.
"""

import os
import shutil

import pytest

from harness.storms import SANITIZE, Storm

pytestmark = pytest.mark.native


@pytest.fixture
def captures(request):
    return request.config.getoption("--captures")


@pytest.fixture(scope="module")
def storm(tmp_path_factory):
    return Storm(tmp_path_factory.mktemp("storm"), ["-O3"])


@pytest.mark.timeout(3600)
def test_a_storm_of_captures(storm, captures, seed):
    counts = storm.run(captures, seed)
    met = ("compared with glibc", "interrupted", "signals", "fibers", "exceptions")
    if counts["places come again"]:  # that is up to the loader
        met += ("at the same place",)
    for name in (*met, "edges"):
        assert counts[name] > 0, name


@pytest.mark.timeout(3600)
def test_a_storm_with_a_sanitizer(tmp_path_factory, captures, seed):
    # What a capture needs is measured on stack that is not in use, which is poisoned.
    # A throw on a stack that it was not told of makes it clear the wrong one.
    left_out = ("edges", "fibers", "stacks")
    storm = Storm(tmp_path_factory.mktemp("sanitized"), SANITIZE)
    options = {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0"}
    storm.run(captures // 20, seed, without=left_out, env=options)


@pytest.mark.skipif(
    shutil.which("valgrind") is None or "WHENCE_SANITIZED" in os.environ,
    reason="there is no valgrind, or a sanitizer in its place",
)
def test_a_storm_under_valgrind(storm, seed):
    # Stack that is not in use yet is painted to measure what is needed: an error to it.
    # Once a signal was handled on another stack, it takes locals for what was freed.
    counts = storm.run(
        5000,
        seed,
        without=["edges", "stacks"],
        under=["valgrind", "--error-exitcode=9", "--quiet"],
    )
    assert counts["fibers"] > 0
