"""``whence export FILE -o OUT``: a recording as a file for another tool."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from whence import _recording, _units, export
from whence.cli import _warnings
from whence.cli._terminal import complain, duration, say, size, working

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from whence._events import Thread
    from whence._recording import Recording

CANNOT = 2
_MOST_LISTED = 10
_STDOUT = "-"


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
        "-o",
        "--output",
        metavar="OUT",
        required=True,
        help="the file to write, or - for standard output, with --format",
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
    parser.add_argument(
        "--process",
        metavar="PID",
        action="append",
        help="only this process; may be given several times",
    )
    parser.add_argument(
        "--metric",
        metavar="NAME",
        help="what the numbers are, of formats with a choice "
        f"({_with(lambda each: each.metrics)}): own, the time of its own; calls; "
        "or bytes of memory: peak, in use when that was most; leaks, in use at the "
        "end; allocated, taken at any time (default: own, or peak if only memory was "
        "recorded, or leaks if no history of it was kept)",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        help="how many blocks and events of memory, of formats that do not hold all: "
        f"{_with(lambda each: each.limit)}",
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        help="read no longer than that, 5s or 2m, and export what was read",
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Write the file; say what it is and how to open it."""
    try:
        chosen = export.choose(given.output, given.format)
        if given.output == _STDOUT:
            _to_stdout(given, chosen)
            return 0
        metric = _export(given, chosen, given.output)
    except export.ExportError as error:
        complain(f"whence: {error}")
        return CANNOT
    say(f"{given.output}: {chosen.name}, {size(_size(Path(given.output)))}")
    unit = chosen.unit(metric)
    say(chosen.opening.format(shlex.quote(given.output), unit=unit))
    return 0


def _export(given: argparse.Namespace, chosen: export.Format, out: str) -> str | None:
    with _recording.open(given.file) as recording, _warnings.told():
        for each in _recording.unreadable(recording):
            complain(f"whence: left out: {each}")
        part = _part(recording, given)
        with working(f"exporting {given.file}"):
            metric = export.export(
                *(part, out, chosen.name),
                force=given.force,
                metric=given.metric,
                limit=_number(given.limit),
            )
        if given.timeout is None:
            _warnings.complain_of_losses(given.file, part)
    return metric


def _to_stdout(given: argparse.Namespace, chosen: export.Format) -> None:
    """Write a file beside nothing, and hand it on once it is complete."""
    if chosen.suffix is not None:
        message = f"{chosen.name} is a directory: it cannot be written to stdout"
        raise export.ExportError(message)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "export")
        _export(given, chosen, str(out))
        with out.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _part(recording: Recording, given: argparse.Namespace) -> Recording:
    if given.process is not None:
        ids = [id_ for text in given.process for id_ in _ids(recording, text)]
        recording = recording.slice(processes=ids)
    start, end = _time(given.start, "--from"), _time(given.end, "--to")
    if start is not None and end is not None and end < start:
        message = f"--to {given.end} is before --from {given.start}"
        raise export.ExportError(message)
    _expect_something(recording.info.duration, start, end, given)
    threads = None
    if given.thread is not None:
        known = recording.threads
        threads = [t.id for text in given.thread for t in _find(known, text)]
    return recording.slice(start, end, threads=threads, timeout=_limit(given.timeout))


def _expect_something(
    lasted: int, start: int | None, end: int | None, given: argparse.Namespace
) -> None:
    """Refuse a stretch of no time, and one after the end: nobody wants an empty file.

    Not by what is in it: a thread may have done nothing for as long as that.
    """
    if (start or 0) <= lasted and (end is None or (start or 0) < end):
        return
    first, last = given.start or "its beginning", given.end or "its end"
    message = (
        f"there is nothing between {first} and {last}: "
        f"the recording lasts {duration(lasted)}"
    )
    raise export.ExportError(message)


def _time(text: str | None, option: str) -> int | None:
    try:
        return None if text is None else _units.moment(text, option)
    except ValueError as error:
        raise export.ExportError(str(error)) from None


def _limit(text: str | None) -> str | None:
    try:
        if text is not None:
            _units.nanoseconds(text, "--timeout")
    except ValueError as error:
        raise export.ExportError(str(error)) from None
    return text


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        message = f"--limit must be a number, not {text!r}"
        raise export.ExportError(message) from None


def _with(has: Callable[[export.Format], object]) -> str:
    return ", ".join(each.name for each in export.FORMATS if has(each))


def _find(threads: list[Thread], text: str) -> list[Thread]:
    """Return the thread of that id, or all of that name."""
    found = [t for t in threads if str(t.id) == text]
    found = found or [t for t in threads if t.name == text]
    if found:
        return found
    listed = [f"{t.id} ({t.name})" if t.name else str(t.id) for t in threads]
    message = f"there is no thread {text}; there are: {_list(listed)}"
    raise export.ExportError(message)


def _ids(recording: Recording, pid: str) -> list[int]:
    """Return the processes of that pid: in containers, several may have it."""
    processes = recording.processes
    found = [process.id for process in processes if str(process.pid) == pid]
    if found:
        return found
    listed = list(dict.fromkeys(str(process.pid) for process in processes))
    message = f"there is no process {pid}; there are: {_list(listed)}"
    raise export.ExportError(message)


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_LISTED:,} more"
    listed = ", ".join(names[:_MOST_LISTED]) or "none"
    return listed + (more if len(names) > _MOST_LISTED else "")


def _size(out: Path) -> int:
    files = out.iterdir() if out.is_dir() else [out]
    return sum(file.stat().st_size for file in files)
