"""The command line: one file for each verb.

Exit codes: 0 all is well, 1 what the verb looked at is not, 2 it could not be done.
"""

from __future__ import annotations

import argparse
import os
import sys

import whence
from whence.cli import doctor, export, info, recover, summary, verify
from whence.cli._terminal import printable

VERBS = (summary, info, export, verify, recover, doctor)


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    given = _parser().parse_args(arguments)
    try:
        code: int = given.run(given)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except whence.RecordingError as error:
        return _fail(str(error))
    except OSError as error:
        where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}")
    except KeyboardInterrupt:
        return 130
    return code


def _fail(message: str) -> int:
    print(f"whence: {printable(message)}", file=sys.stderr)  # noqa: T201
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="whence", description="A flight recorder for Python programs."
    )
    parser.add_argument(
        "--version", action="version", version=f"whence {whence.__version__}"
    )
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for verb in VERBS:
        verb.add_to(verbs)
    return parser
