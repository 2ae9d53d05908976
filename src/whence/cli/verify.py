"""``whence verify FILE``: check a recording, and say what it lost."""

from __future__ import annotations

from whence import _recording
from whence.cli._terminal import say, several, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from whence._events import RecordingInfo
    from whence._part import Part
    from whence._recording import Recording

SOUND, DAMAGED = 0, 1
MOST_DAMAGE = 3  # of a process


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its arguments."""
    parser = verbs.add_parser(
        "verify",
        help="check a recording and say what it lost",
        description="Check every byte of a recording, and say what became of its "
        "events. Exit code 0: sound, also if it was never closed; 1: damaged, but "
        "readable; 2: not readable.",
    )
    parser.add_argument("file", metavar="FILE", help="the recording")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Check the recording, process by process, and print what was found."""
    problems = 0
    with _recording.open(given.file) as recording:
        bad = _recording.unreadable(recording)
        parts = _recording.parts_of(recording)
        merged = bool(parts[0].place.name)
        if merged:
            say(describe_merged(recording))
        for part in parts:
            problems += _check(part, f"{part.place.name}: " if merged else "")
    for each in bad:
        say(f"damaged: {each}", "red")
    problems += len(bad)
    say("sound" if not problems else "damaged, but readable", "bold")
    return DAMAGED if problems else SOUND


def _check(part: Part, where: str) -> int:
    """Print what was found in one process; return how many problems that is."""
    totals = part.reader.totals()
    info = part.info
    if where:
        say("")
        info = info._replace(path=part.place.name)
    for line in [*describe(info), *count(totals)]:
        say(line)
    for line in damage(totals, where):
        say(line, "red")
    return len(totals["problems"])


def describe_merged(recording: Recording) -> str:
    """Say what a file with several processes is."""
    info = recording.info
    processes = several(len(recording.processes), "process", "processes")
    return f"{info.path}: a merged recording of {processes}, {size(info.size)}"


def describe(info: RecordingInfo) -> list[str]:
    """Say what the file is."""
    seconds = info.duration / 1e9
    packed = ", packed" if info.packed else ""
    made = [f"process {info.pid}"]
    made += [f"Python {info.python}"] if info.python else []
    made += [f"whence {info.whence}"] if info.whence else []
    lines = [
        f"{info.path}: a recording of {info.program or 'a program without a name'}",
        f"made: {info.start:%Y-%m-%d %H:%M:%S} UTC, {seconds:.3f} s, {', '.join(made)}",
        f"file: format {info.version}, {size(info.size)}{packed}",
    ]
    if not info.closed:
        lines.append("state: never closed; its program is still running, or was killed")
    elif info.ended:
        error = f", system error {info.error}" if info.error else ""
        lines.append(f"state: ended early, reason {info.ended}{error}")
    else:
        lines.append("state: closed")
    return lines


def damage(
    totals: dict[str, Any], where: str = "", most: int | None = None
) -> list[str]:
    """Say what is damaged; of more than so many places, how many there are."""
    problems = totals["problems"]
    shown = problems[:most]
    more = totals["more_problems"] + len(problems) - len(shown)
    lines = [f"damaged: {where}at byte {at:,}: {what}" for at, what in shown]
    return [*lines, f"damaged: {where}and {more:,} more"] if more else lines


def count(totals: dict[str, Any]) -> list[str]:
    """Say how much there is and what was lost."""
    unknown = totals["unknown"]
    newer = f", {unknown:,} of kinds that this version does not know" if unknown else ""
    lines = [
        f"records: {totals['records']:,} in {totals['chunks']:,} chunks{newer}",
        f"events: {totals['produced']:,} produced, {totals['recorded']:,} recorded",
    ]
    lines += [
        f"dropped: {events:,} ({reason})"
        for reason, events in totals["dropped"].items()
    ]
    if totals["names"]:
        lines.append(f"names lost: {totals['names']:,}")
    if totals["names_left_out"]:
        left_out = totals["names_left_out"]
        lines.append(f"names left out: {left_out:,}, more than a reader keeps")
    return lines
