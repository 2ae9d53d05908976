"""``whence run``: a program as ``python`` runs it, with a recording around it.

What is imported here and in the modules beside it is there before the program begins,
so it is little; ``rich`` comes when the program is over.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys

from whence import _core, _packing
from whence._record import record
from whence.cli import (
    _arguments,
    _import_path,
    _output,
    _program,
    _settings,
    _sources,
    _uncaught,
)
from whence.cli._after import After
from whence.cli._arguments import HelpWanted
from whence.cli._terminal import complain

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Any

    from whence.cli._program import Program
    from whence.cli._settings import Given

__all__ = ["HelpWanted", "add_to", "main"]

FAILED = 1  # by an exception that nobody has caught
CANNOT = 2  # nothing was run
_REASONS = {
    "disk": "no space is left on the device",
    "quota": "the quota is used up",
    "memory": "there is not enough memory",
    "file_limit": "files of that size are not allowed",
}


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb; ``main`` reads its arguments."""
    verbs.add_parser("run", help="run a Python program and record it", add_help=False)


def main(arguments: list[str]) -> int:
    """Run the program; return its exit code, or leave by its ``SystemExit``.

    Raises ``HelpWanted`` if somebody asks what the options are.
    """
    # The memory that is taken here is ours, but in what _core calls alone.
    before = _core.set_answering(True)
    try:
        return _main(arguments)
    finally:
        _core.set_answering(before)


def _main(arguments: list[str]) -> int:
    try:
        with _import_path.without_first():
            given, program = _arguments.read(arguments)
            given = {**_sources.file(), **_sources.variables(), **given}
            names = [*_output.choose(given, program.stem)]
            make, after = _make(given)
        program.prepare()
        task, error = _attempt(program, program.load)
        if error is None and program.is_there():
            force = _is_on("force", given)
            recorder, path = _start(make, names, program.title, force=force)
            after.begin(path, recorder.path)
    except _settings.UsageError as problem:
        complain(f"whence: {problem}")
        return CANNOT
    except _program.CannotOpen as problem:
        complain(str(problem))
        return CANNOT
    if error is None:
        _, error = _attempt(program, *task)
    program.left()
    if error is not None:
        exactly = type(error) is KeyboardInterrupt  # Python takes no other for one
        after.interrupted = exactly and not sys.flags.inspect
        _uncaught.report(error)
    program.ended()
    # With -i a prompt comes next, and says how this ends.
    return 0 if error is None or sys.flags.inspect else FAILED


def _make(given: Given) -> tuple[Callable[[str], record], After]:
    """Return what makes a recorder and what comes after it; import what they need.

    Later, modules are looked for in the folder of the program, which may have a json.
    """
    from whence import _follow, _hooks  # noqa: F401, PLC0415

    options = _settings.settle(given)
    force, follow = _is_on("force", given), _is_on("follow", given)
    chooses = bool(options.get("include")) and options.get("calls", True)
    after = After(quiet=_is_on("quiet", given), follows=follow, chooses=chooses)
    atexit.register(after)
    _packing.prepare()
    if follow:
        import json  # noqa: F401, PLC0415
    return lambda path: record(path, overwrite=force, **options), after


def _is_on(name: str, given: Given) -> bool:
    return name in given and bool(given[name][0])


def _start(
    make: Callable[[str], record], names: list[str], title: str, *, force: bool
) -> tuple[record, str]:
    """Start the recording, which is told no arguments; return its name, too."""
    argv, sys.argv = sys.argv, [title]
    try:
        for path in names:
            recorder = make(path)
            try:
                _core.call_alone(recorder.start)
            except FileExistsError:
                continue
            break
        else:
            what = "is there already: -f replaces it, -o FILE names another"
            if force or not os.path.isfile(path):  # noqa: PTH113
                what = "is no file that could be replaced"
            message = f"{path} {what}"
            raise _settings.UsageError(message)
    except OSError as error:
        message = f"{path}: {error.strerror or error}"
        raise _settings.UsageError(message) from None
    except (RuntimeError, ValueError) as error:
        raise _settings.UsageError(str(error)) from None
    finally:
        sys.argv = argv
    if recorder.reason is not None:
        why = _REASONS.get(recorder.reason, recorder.reason)
        if not force:  # the file is new, and holds nothing
            with contextlib.suppress(OSError):
                os.unlink(path)  # noqa: PTH108
        message = f"{path}: nothing can be recorded, {why}"
        raise _settings.UsageError(message)
    return recorder, path


def _attempt(
    program: Program, function: Callable[..., Any], *args: Any
) -> tuple[Any, BaseException | None]:
    """Call it; return its result, and what it raised. An exit is passed on."""
    try:
        return function(*args), None
    except SystemExit:
        program.left()
        raise
    except BaseException as error:  # noqa: BLE001
        return None, error
