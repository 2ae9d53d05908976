"""A few lines about a recording: how large, how long, what was dropped, what is hot."""

from __future__ import annotations

import io
import os

from whence import _recording
from whence.cli._terminal import duration, printable, several, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whence._recording import Recording

    Lines = list[tuple[str, str]]  # each with its style

_MOST = 5
_SUFFIX = ".whence"


def describe(path: str, shown: str, *, follows: bool) -> Lines:
    """Say what is in the recording at ``path``, which people know as ``shown``."""
    try:
        return _describe(path, shown, follows=follows)
    except Exception as error:  # noqa: BLE001
        return [(f"whence: recorded {shown}; no summary: {error!r}", "bold")]


def _describe(path: str, shown: str, *, follows: bool) -> Lines:
    with _recording.open(path) as recording:
        info, losses = recording.info, recording.losses
        functions = recording.functions
        threads = several(len(recording.threads), "thread")
        hot = _list_hottest(functions, recording)
    children = _count_children(path) if follows else 0
    processes = several(1 + children, "process", "processes")
    about = f"{size(info.size)}, {duration(info.duration)}, {threads}, {processes}"
    calls = sum(function.calls for function in functions)
    lines = [(f"whence: recorded {shown}: {about}", "bold")]
    lines += [(f"  {several(calls, 'call')} kept, {_dropped(losses)}", "")]
    if "ring" in losses.dropped:
        lines += [("  the ring wrapped: these are the newest events", "yellow")]
    if info.ended:
        lines += [(f"  the recording ended early: {info.ended}", "red")]
    if info.calls:
        lines += [(f"  calls were not recorded, or not all: {info.calls}", "red")]
    lines += hot
    file = _quote(shown)
    out = _quote(shown.removesuffix(_SUFFIX) + ".pftrace")
    lines += [("  look further:", "")]
    lines += [(f"    whence summary {file}", "cyan")]
    lines += [(f"    whence export {file} -o {out}", "cyan")]
    return lines


def render(lines: Lines, *, terminal: bool) -> str:
    """Write the lines as one text, with colours if they are for a terminal."""
    try:
        return _render_richly(lines, terminal=terminal)
    except Exception:  # noqa: BLE001
        # The program may have modules of its own with the names of those of rich.
        return "".join(f"{printable(text)}\n" for text, _ in lines)


def _render_richly(lines: Lines, *, terminal: bool) -> str:
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    file = io.StringIO()
    console = Console(
        file=file,
        force_terminal=terminal,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
    )
    for text, style in lines:
        console.print(Text(printable(text), style=style))
    return file.getvalue()


def _list_hottest(functions: list[Any], recording: Recording) -> Lines:
    """Return the functions with most time of their own, one a line."""
    all_own = sum(function.own for function in functions) or 1
    hottest = sorted(functions, key=lambda function: -function.own)[:_MOST]
    lines = [("  most time of their own:", "")] if hottest else []
    for function in hottest:
        share = f"{100 * function.own / all_own:.0f} %"
        calls = several(function.calls, "call")
        where = function.name or "?"
        if function.filename:
            where += f" ({recording.shorten(function.filename)}:{function.line})"
        lines += [
            (f"  {duration(function.own):>10} {share:>5} {calls:>14}  {where}", "")
        ]
    return lines


def _dropped(losses: Any) -> str:
    if not losses.dropped:
        return "nothing dropped"
    reasons = [f"{events:,} ({reason})" for reason, events in losses.dropped.items()]
    return f"events dropped: {', '.join(reasons)}"


def _count_children(path: str) -> int:
    """Count the files beside this one that children of this process have made."""
    with _recording.open(path) as recording:
        pid, start = recording.info.pid, recording.info.start
    folder, name = os.path.split(path)
    family = name.removesuffix(_SUFFIX).removesuffix(f"-{pid}") + "-"
    count = 0
    for file in os.listdir(folder):
        number = file.removeprefix(family).removesuffix(_SUFFIX)
        if file == name or file != f"{family}{number}{_SUFFIX}":
            continue
        if not number.isdecimal():
            continue
        try:
            with _recording.open(os.path.join(folder, file)) as recording:
                count += recording.info.start >= start
        except (OSError, _recording.RecordingError):
            continue
    return count


def _quote(word: str) -> str:
    """Write it as the shell wants it."""
    if all(c.isalnum() or c in "_-./%+=:@" for c in word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"
