"""``whence merge FILE... -o OUT``: recordings of several processes as one."""

from __future__ import annotations

from pathlib import Path

from whence import _merge
from whence._new_file import new_file, same_file
from whence.cli._terminal import complain, say, several, size, working

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

CANNOT = 2


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its arguments."""
    parser = verbs.add_parser(
        "merge",
        help="put recordings of several processes into one",
        description="Put recordings of several processes into one file, on one clock. "
        "Each stays in it as it is; unzip takes it apart again.",
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help="the recordings")
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True, help="the merged recording"
    )
    parser.add_argument(
        "-f", "--force", action="store_true", help="replace OUT if it exists"
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Write the merged recording; say what is to be known of it."""
    try:
        return _merge_files(given)
    except _merge.MergeError as error:
        complain(f"whence: {error}")
        return CANNOT


def _merge_files(given: argparse.Namespace) -> int:
    if not given.files:
        message = "nothing to merge: name the recordings before -o"
        raise _merge.MergeError(message)
    for file in given.files:
        if same_file(file, given.output):
            message = f"{given.output} is one of the recordings to merge"
            raise _merge.MergeError(message)
    with (
        working(f"merging {several(len(given.files), 'recording')}"),
        new_file(given.output, force=given.force) as file,
    ):
        sources = _merge.Sources(given.files, str(Path(given.output).parent))
        try:
            one_clock = _merge.write(sources, file)
        finally:
            sources.close()
    for note in sources.notes:
        complain(f"whence: {note}")
    if not one_clock:
        complain(
            "whence: not all are of one boot of one machine: "
            "times agree as well as the wall clocks did"
        )
    processes = several(len(sources.all), "process", "processes")
    say(f"{given.output}: {processes}, {size(Path(given.output).stat().st_size)}")
    return 0
