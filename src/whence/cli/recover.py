"""``whence recover FILE -o OUT``: what can be read of a recording, as a sound one."""

from __future__ import annotations

import os

from whence import RecordingError, _recording
from whence._new_file import new_file, same_file
from whence.cli._terminal import say
from whence.cli.verify import damage

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its arguments."""
    parser = verbs.add_parser(
        "recover",
        help="write what can be read of a damaged recording to a new file",
        description="Write what can be read of a recording to a new, closed one. What "
        "is lost is counted there as damaged.",
    )
    parser.add_argument("file", metavar="FILE", help="the recording")
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True, help="the new recording"
    )
    parser.add_argument(
        "-f", "--force", action="store_true", help="replace OUT if it exists"
    )
    parser.add_argument(
        "--no-pack", dest="pack", action="store_false", help="do not pack with zstd"
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Write the new recording and print what is in it."""
    if same_file(given.file, given.output):
        message = f"{given.output} is the recording itself: it is not replaced"
        raise RecordingError(message)
    with _recording.open(given.file) as recording:
        if _recording.parts_of(recording)[0].place.name:
            message = f"{given.file} is a merged recording: unzip it, recover its parts"
            raise RecordingError(message)
        with new_file(given.output, force=given.force) as file:
            totals = _recording.rewrite(recording, file.fileno(), pack=given.pack)
            os.fsync(file)
    dropped = sum(totals["dropped"].values())
    say(f"{given.output}: {totals['recorded']:,} events, {dropped:,} lost")
    for line in damage(totals):
        say(line, "red")
    return 0
