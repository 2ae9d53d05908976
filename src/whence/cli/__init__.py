"""The command line: one file for each verb.

Exit codes: 0 all is well, 1 what the verb looked at is not, 2 it could not be done.
"""

from __future__ import annotations

import os
import sys

from whence.cli import _import_path
from whence.cli._terminal import complain

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; return the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["run"]:
        return _run(given[1:])
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    with _import_path.without_first():
        parsed = _parser().parse_args(given)
        return _call(lambda: parsed.run(parsed))


def script() -> int:
    """Run one verb for the installed script, which exits with what this returns.

    Where a prompt is to come, after PYTHONINSPECT, any such exit would be shown as an
    error and be one: ``python -m whence`` can end without.
    """
    if sys.flags.inspect and sys.executable:
        of_python = sys.orig_argv[1 : -len(sys.argv)]
        command = [sys.executable, *of_python, "-m", "whence", *sys.argv[1:]]
        os.execv(sys.executable, command)  # noqa: S606
    return main()


def _run(given: list[str]) -> int:
    """Run a program, which is to find as little of ours as possible."""
    from whence.cli import run  # noqa: PLC0415

    try:
        return run.main(given)
    except run.HelpWanted:
        with _import_path.without_first():
            from whence.cli import _run_help  # noqa: PLC0415

            return _call(_run_help.show)
    except KeyboardInterrupt:  # before it began
        return INTERRUPTED


def _call(verb: Callable[[], int]) -> int:
    from whence import RecordingError  # noqa: PLC0415

    try:
        code = verb()
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except RecordingError as error:
        return _fail(str(error))
    except OSError as error:
        where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}")
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _fail(message: str) -> int:
    complain(f"whence: {message}")
    return 2


def _parser() -> argparse.ArgumentParser:
    import whence  # noqa: PLC0415
    from whence.cli import (  # noqa: PLC0415
        doctor,
        export,
        info,
        merge,
        recover,
        run,
        summary,
        symbolize,
        verify,
    )
    from whence.cli._usage import Parser  # noqa: PLC0415

    parser: argparse.ArgumentParser = Parser(
        prog="whence", description="A flight recorder for Python programs."
    )
    parser.add_argument(
        "--version", action="version", version=f"whence {whence.__version__}"
    )
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    reading = summary, info, export, merge, symbolize, verify, recover
    for verb in (run, *reading, doctor):
        verb.add_to(verbs)
    return parser
