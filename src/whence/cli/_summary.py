"""A few lines about a recording: how large, how long, what was dropped, what is hot."""

from __future__ import annotations

import io
import os
from collections import namedtuple

from whence import _recording
from whence.cli._terminal import printable, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whence._recording import Recording

    Lines = list[tuple[str, str]]  # each with its style

_MOST = 5
_SUFFIX = ".whence"
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"))


def describe(path: str, shown: str, *, follows: bool) -> Lines:
    """Say what is in the recording at ``path``, which people know as ``shown``."""
    try:
        return _describe(path, shown, follows=follows)
    except Exception as error:  # noqa: BLE001
        return [(f"whence: recorded {shown}; no summary: {error!r}", "bold")]


def _describe(path: str, shown: str, *, follows: bool) -> Lines:
    with _recording.open(path) as recording:
        info, losses = recording.info, recording.losses
        functions = _functions(recording)
        threads = _several(len(recording.threads), "thread", "threads")
        hot = _list_hottest(functions, recording)
    children = _count_children(path) if follows else 0
    processes = _several(1 + children, "process", "processes")
    about = f"{size(info.size)}, {_time(info.duration)}, {threads}, {processes}"
    calls = sum(function.calls for function in functions)
    lines = [(f"whence: recorded {shown}: {about}", "bold")]
    lines += [(f"  {_several(calls, 'call', 'calls')} kept, {_dropped(losses)}", "")]
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
        calls = _several(function.calls, "call", "calls")
        where = function.name or "?"
        if function.filename:
            where += f" ({recording.shorten(function.filename)}:{function.line})"
        lines += [(f"  {_time(function.own):>10} {share:>5} {calls:>14}  {where}", "")]
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


def _several(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}"


def _time(nanoseconds: float) -> str:
    for unit, name in _UNITS:
        if nanoseconds >= unit:
            return f"{nanoseconds / unit:.3g} {name}"
    return f"{nanoseconds:.0f} ns"


# Until Recording.functions is there. Then delete everything from here on but the name.
_Function = namedtuple(  # noqa: PYI024
    "_Function", ["name", "filename", "line", "calls", "total", "own"]
)


def _functions(recording: Recording) -> list[Any]:
    there = getattr(recording, "functions", None)
    if there is not None:
        return list(there)
    sums: dict[tuple[Any, ...], list[int]] = {}
    for call in recording.calls():
        key = (call.function, call.filename, call.line)
        found = sums.setdefault(key, [0, 0, 0])
        found[0] += call.count
        found[1] += call.duration
        found[2] += call.own
    return [_Function(*key, *found) for key, found in sums.items()]
