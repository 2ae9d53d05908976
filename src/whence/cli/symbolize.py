"""``whence symbolize FILE``: names for native frames, looked up after the fact."""

from __future__ import annotations

import os

from whence import RecordingError, _named_copy
from whence.cli._terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its arguments."""
    parser = verbs.add_parser(
        "symbolize",
        help="look up the names of native frames",
        description="Look up what native frames are: in the libraries that they were "
        "in, in their debug files by build id, and in the directories given. FILE is "
        "replaced by a copy with the names, unless OUT is given. Nothing is run, and "
        "a library whose build id differs is not used.",
    )
    parser.add_argument("file", metavar="FILE", help="the recording")
    parser.add_argument("-o", "--output", metavar="OUT", help="write the copy to OUT")
    parser.add_argument(
        "-f", "--force", action="store_true", help="replace OUT if it exists"
    )
    parser.add_argument(
        "--symbols",
        metavar="MODE",
        default="full",
        choices=("full", "symbols", "off"),
        help="full: files, lines, inlined functions, where there is debug information "
        "(the default); symbols: functions; off: forget the names",
    )
    parser.add_argument(
        "--debug-dir",
        metavar="DIR",
        action="append",
        default=[],
        help="libraries or their debug files are below it; may be given again",
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Write the copy, and say what could be named."""
    for directory in given.debug_dir:
        _expect_directory(directory)
    out = given.file if given.output is None else given.output
    done = _named_copy.write_named_copy(
        given.file,
        out,
        mode=given.symbols,
        debug_dirs=given.debug_dir,
        overwrite=given.output is None or given.force,
    )
    if not done.total:
        say(f"{out}: there are no native frames in it")
        return 0
    say(f"{out}: {done.named:,} of {done.total:,} places in native code have names")
    if done.reason is not None:
        say(f"no files and lines: {done.reason}")
    for path, problem in sorted(done.problems.items()):
        say(f"{path}: {problem}")
    return 0


def _expect_directory(path: str) -> None:
    """Refuse what cannot be searched: in there nothing would be found, in silence."""
    try:
        os.scandir(path).close()
    except OSError as error:
        message = f"--debug-dir {path}: {error.strerror}"
        raise RecordingError(message) from None
