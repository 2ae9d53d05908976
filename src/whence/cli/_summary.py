"""A few lines about a recording: how large, how long, what was dropped, what is hot."""

from __future__ import annotations

import io
import os

from whence import RecordingError, _recording
from whence._memory_names import history_of
from whence._text import printable, shell_word
from whence.cli import _reasons
from whence.cli._memory import as_far_as, resident
from whence.cli._terminal import duration, several, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whence._recording import Recording

    Lines = list[tuple[str, str]]  # each with its style

_MOST = 5
_MOST_NAMED = 8  # files, one by one
_SUFFIX = ".whence"


def describe(path: str, shown: str, *, follows: bool, chooses: bool) -> Lines:
    """Say what is in the recording at ``path``, which people know as ``shown``.

    ``chooses``: only some functions were to be recorded, ``follows``: children, too.
    """
    try:
        return _describe(path, shown, follows=follows, chooses=chooses)
    except Exception as error:  # noqa: BLE001
        return [(f"whence: recorded {shown}; no summary: {error!r}", "bold")]


def _describe(path: str, shown: str, *, follows: bool, chooses: bool) -> Lines:
    with _recording.open(path) as recording:
        info, losses = recording.info, recording.losses
        functions = recording.functions
        threads = several(len(recording.threads), "thread")
        hot = _list_hottest(functions, recording)
        memory, metric = _list_memory(recording)
    children = _find_children(path) if follows else []
    processes = several(1 + len(children), "process", "processes")
    about = f"{size(info.size)}, {duration(info.duration)}, {threads}, {processes}"
    calls = sum(function.calls for function in functions)
    lines = [(f"whence: recorded {shown}: {about}", "bold")]
    lines += [(f"  {several(calls, 'call')} kept, {_dropped(losses)}", "")]
    if chooses and not calls and not losses.dropped:
        lines += [("  no function matched --include", "yellow")]
    if "ring" in losses.dropped:
        lines += [("  the ring wrapped: these are the newest events", "yellow")]
    if info.ended:
        lines += [(f"  the recording ended early: {info.ended}", "red")]
    amiss = _reasons.missing(info) + _reasons.unnamed(losses.names)
    lines += [(f"  {sentence}", "red") for sentence in amiss]
    lines += hot + memory
    file, stem = shell_word(shown), shown.removesuffix(_SUFFIX)
    lines += [("  look further:", "")]
    lines += [(f"    whence summary {file}", "cyan")]
    lines += [(f"    whence export {file} -o {shell_word(stem + '.pftrace')}", "cyan")]
    if memory:
        out = shell_word(stem + ".speedscope.json")
        lines += [(f"    whence export {file} -o {out} --metric {metric}", "cyan")]
    if children:
        lines += [(f"    {_merge_command(path, shown, children)}", "cyan")]
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


def _list_memory(recording: Recording) -> tuple[Lines, str]:
    """Say how much was in use, if memory was recorded, and which metric shows it."""
    if not _recording.has_memory(recording):
        return [], ""
    (part,) = _recording.parts_of(recording)
    history, memory = history_of(part.reader), recording.memory
    left = size(memory.leaks().total.bytes)
    if history == "none":
        text = f"  memory: {left} in use at the end; no history was kept"
        return [(text, "")], "leaks"
    peak, blocks = memory.peak, several(memory.counts.allocated, "block")
    most = f"at most {size(peak.bytes)} in use, after {duration(peak.time)}"
    most += as_far_as(history)
    taken = f"; {blocks} taken" if memory.counts.allocated else ""
    lines: Lines = [(f"  memory: {most}; {left} at the end{taken}", "")]
    lines += [(f"  {sentence}", "") for sentence in resident(part.reader, memory)]
    return lines, "peak"


def _dropped(losses: Any) -> str:
    if not losses.dropped:
        return "nothing dropped"
    reasons = [f"{events:,} ({reason})" for reason, events in losses.dropped.items()]
    return f"events dropped: {', '.join(reasons)}"


def _find_children(path: str) -> list[str]:
    """Return the files beside this one that children of this process have made."""
    with _recording.open(path) as recording:
        pid, start = recording.info.pid, recording.info.start
    folder, name = os.path.split(path)
    family = _family(name, pid)
    found = []
    for file in sorted(os.listdir(folder)):
        number = file.removeprefix(family).removesuffix(_SUFFIX)
        if file == name or file != f"{family}{number}{_SUFFIX}":
            continue
        if not number.isdecimal():
            continue
        try:
            with _recording.open(os.path.join(folder, file)) as recording:
                if recording.info.start >= start:
                    found.append(file)
        except (OSError, RecordingError):
            continue
    return found


def _merge_command(path: str, shown: str, children: list[str]) -> str:
    """Return what puts all of them into one file, as short as it is exact."""
    folder, name = os.path.split(path)
    beside = os.path.dirname(shown)
    with _recording.open(path) as recording:
        family = _family(name, recording.info.pid)
    files = [
        shell_word(shown),
        *(shell_word(os.path.join(beside, c)) for c in children),
    ]
    start = os.path.join(beside, family)
    alike = [
        file
        for file in os.listdir(folder)
        if file.startswith(family) and file.endswith(_SUFFIX)
    ]
    exact = set(alike) - {name} == set(children)
    if len(children) > _MOST_NAMED and exact and shell_word(start) == start:
        own = [] if name in alike else files[:1]
        files = [*own, f"{start}*{_SUFFIX}"]
    out = shell_word(f"{start[:-1]}.merged{_SUFFIX}")
    return f"whence merge {' '.join(files)} -o {out}"


def _family(name: str, pid: int) -> str:
    """Return what the names of the files of all children begin with."""
    return name.removesuffix(_SUFFIX).removesuffix(f"-{pid}") + "-"
