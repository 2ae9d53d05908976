"""``whence`` as people type it, in a process of its own."""

import os
import subprocess
import sys


def run(*arguments, **options):
    """Run a verb of the command line; what it printed is text."""
    # That one is for the tests, and no variable of whence's.
    known = {k: v for k, v in os.environ.items() if k != "WHENCE_SANITIZED"}
    options.setdefault("env", known)
    return subprocess.run(
        [sys.executable, "-m", "whence", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


def one_line_of(done):
    """Return the one line that says why nothing was done."""
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("whence: ")
    return line.removeprefix("whence: ")
