"""A program run by ``python`` and by ``whence run``, which must do the same."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from typing import NamedTuple

LIMIT = 60


class Outcome(NamedTuple):
    """What a program did, as far as anybody outside can tell."""

    status: int  # negative: the signal that ended it
    out: bytes
    err: bytes


def environment(**more):
    """The variables of this process, without those that would change a run."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith("WHENCE_")}
    if "WHENCE_FRAMES" in os.environ:
        ours["WHENCE_FRAMES"] = os.environ["WHENCE_FRAMES"]
    return {**ours, **more}


def execute(command, *, cwd, stdin=b"", env=None, kill=None, merge=False):
    """Run a command; ``kill``: send that signal when it has printed its first line."""
    child = subprocess.Popen(
        [*map(str, command)],
        cwd=cwd,
        env=environment(**(env or {})),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merge else subprocess.PIPE,
    )
    try:
        first = b""
        if kill is not None:
            first = child.stdout.readline()
            time.sleep(0.3)  # it is on its next line
            child.send_signal(kill)
        out, err = child.communicate(stdin, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
        out, err = child.communicate()
        message = f"still running after {LIMIT} s:\n{out}\n{err}"
        raise AssertionError(message) from None
    return Outcome(
        child.returncode, *map(_without_addresses, (first + out, err or b""))
    )


def _without_addresses(text):
    return re.sub(rb"0x[0-9a-f]{8,}", b"0x...", text)


def whence(*arguments, python=()):
    return [sys.executable, *python, "-m", "whence", *arguments]


class Beside:
    """Runs programs in a folder, each in both ways."""

    def __init__(self, folder, recording):
        self.folder = folder
        self.recording = recording

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def same(self, *arguments, python=(), options=(), varies=b"(?!)", **how):
        """Compare both; return what the program did.

        ``varies``: what in its output is different each time.
        """
        plain = [sys.executable, *python, *arguments]
        ours = ["run", "-q", "-f", "-o", self.recording, *options, *arguments]
        expected = execute(plain, cwd=self.folder, **how)
        got = execute(whence(*ours, python=python), cwd=self.folder, **how)
        expected, got = (
            o._replace(out=re.sub(varies, b"", o.out), err=re.sub(varies, b"", o.err))
            for o in (expected, got)
        )
        assert got == expected, f"whence run: {got}\n\npython:     {expected}"
        return got

    def same_text(self, text, *arguments, name="app.py", **how):
        """The same for a script with that text."""
        self.write(name, text)
        return self.same(name, *arguments, **how)

    def run(self, *arguments, python=(), **how):
        """``whence run``, and nothing to compare it with."""
        return execute(whence("run", *arguments, python=python), cwd=self.folder, **how)
