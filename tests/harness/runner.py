"""Child processes with a time limit, compared with a run that has no recorder."""

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Outcome:
    """What a program did, as far as anybody outside can tell."""

    status: int  # negative: the signal that ended it
    out: str
    err: str


def run(code, *args, timeout=60, env=None, cwd=None):
    """Run a program in a child. A hang is a failure that shows where it hung."""
    command = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code), *args]
    env = {"PYTHONPATH": str(TESTS), **(env or {})}
    return run_command(command, timeout=timeout, env=env, cwd=cwd)


def run_command(command, *, timeout, env, cwd=None):
    """The same for any command whose Python has faulthandler on."""
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, **env},
        start_new_session=True,
    )
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGABRT)  # faulthandler tells where
        out, err = child.communicate()
        message = f"still running after {timeout} s:\n{out}\n{err}"
        raise AssertionError(message) from None
    return Outcome(child.returncode, out, err)


def same_as_without(program, recorded, *args, **options):
    """Run a program as it is and with a recorder around it; both must do the same.

    `recorded` is the program's text with the recorder in it. Returns the outcome.
    """
    expected = run(program, *args, **options)
    got = run(recorded, *args, **options)
    assert got == expected
    return got
