"""``whence export FILE -o OUT``: a recording as a file for another tool."""

from __future__ import annotations

import contextlib
import shlex
import warnings
from pathlib import Path

from whence import _recording, _units, export
from whence.cli._terminal import complain, say, size, working

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whence._events import Thread
    from whence._recording import Recording

CANNOT = 2
_MOST_LISTED = 10


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its arguments."""
    formats = "; ".join(
        f"{each.name} ({', '.join(each.suffixes)}): {each.purpose}"
        for each in export.FORMATS
    )
    parser = verbs.add_parser(
        "export",
        help="write a recording as a file for another tool",
        description="Write a recording, or a part of it, as a file for another tool. "
        f"The suffix of OUT chooses the format, unless --format does. {formats}.",
    )
    parser.add_argument("file", metavar="FILE", help="the recording")
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True, help="the file to write"
    )
    parser.add_argument(
        "-f", "--force", action="store_true", help="replace OUT if it exists"
    )
    parser.add_argument("--format", metavar="NAME", help="the format")
    parser.add_argument(
        "--from",
        dest="start",
        metavar="T",
        help="leave out what was before: 1.5s, 500ms, 2m since the recording began",
    )
    parser.add_argument(
        "--to", dest="end", metavar="T", help="leave out what was after"
    )
    parser.add_argument(
        "--thread",
        metavar="ID-or-NAME",
        action="append",
        help="only this thread; may be given several times",
    )
    parser.add_argument("--process", metavar="PID", help="only this process")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Write the file; say what it is and how to open it."""
    try:
        chosen = export.choose(given.output, given.format)
        with _recording.open(given.file) as recording, _told_of_warnings():
            part = _part(recording, given)
            with working(f"exporting {given.file}"):
                export.export(part, given.output, chosen.name, force=given.force)
    except export.ExportError as error:
        complain(f"whence: {error}")
        return CANNOT
    say(f"{given.output}: {chosen.name}, {size(_size(Path(given.output)))}")
    say(chosen.opening.format(shlex.quote(given.output)))
    return 0


def _part(recording: Recording, given: argparse.Namespace) -> Recording:
    pid = str(recording.info.pid)
    if given.process not in (None, pid):
        message = f"there is no process {given.process} in {given.file}, only {pid}"
        raise export.ExportError(message)
    start, end = _time(given.start, "--from"), _time(given.end, "--to")
    if start is not None and end is not None and end < start:
        message = f"--to {given.end} is before --from {given.start}"
        raise export.ExportError(message)
    threads = None
    if given.thread is not None:
        known = recording.threads
        threads = [t.id for text in given.thread for t in _find(known, text)]
    return recording.slice(start, end, threads=threads)


def _time(text: str | None, option: str) -> int | None:
    try:
        return None if text is None else _units.moment(text, option)
    except ValueError as error:
        raise export.ExportError(str(error)) from None


def _find(threads: list[Thread], text: str) -> list[Thread]:
    """Return the thread of that id, or all of that name."""
    found = [t for t in threads if str(t.id) == text]
    found = found or [t for t in threads if t.name == text]
    if found:
        return found
    listed = [f"{t.id} ({t.name})" if t.name else str(t.id) for t in threads]
    more = f" and {len(listed) - _MOST_LISTED:,} more"
    names = ", ".join(listed[:_MOST_LISTED])
    message = f"there is no thread {text}; there are: {names or 'none'}"
    raise export.ExportError(message + (more if len(listed) > _MOST_LISTED else ""))


@contextlib.contextmanager
def _told_of_warnings() -> Iterator[None]:
    """Say on stderr what a writer warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in caught:
        complain(f"whence: {warning.message}")


def _size(out: Path) -> int:
    files = out.iterdir() if out.is_dir() else [out]
    return sum(file.stat().st_size for file in files)
