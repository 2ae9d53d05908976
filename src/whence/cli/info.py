"""``whence info FILE``: what a recording says about itself."""

from __future__ import annotations

from whence import _recording
from whence.cli import _reasons
from whence.cli._terminal import duration, say, working
from whence.cli.verify import MOST_DAMAGE, damage, describe, describe_merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from whence._events import Thread
    from whence._part import Part
    from whence._recording import Recording

_MOST_THREADS = 50
_MOST_PROCESSES = 50


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its arguments."""
    parser = verbs.add_parser(
        "info",
        help="say what a recording is of",
        description="Say what a recording is of: file, clock, processes, threads, "
        "and the options that it was made with.",
    )
    parser.add_argument("file", metavar="FILE", help="the recording")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print what the header and the metadata say, process by process; and damage."""
    with _recording.open(given.file) as recording:
        parts = _recording.parts_of(recording)
        with working(f"reading {given.file}"):
            damaged = [line for part in parts for line in _damage(part)]
        if parts[0].place.name:
            say(describe_merged(recording))
        bad = [f"damaged: {each}" for each in _recording.unreadable(recording)]
        for line in bad + damaged:
            say(line, "red")
        for part in parts[:_MOST_PROCESSES]:
            _say_process(part, recording)
        if len(parts) > _MOST_PROCESSES:
            say(f"and {len(parts) - _MOST_PROCESSES:,} more processes")
    return 0


def _damage(part: Part) -> list[str]:
    """Say what is damaged, after reading all of it."""
    where = f"{part.place.name}: " if part.place.name else ""
    return damage(part.reader.totals(), where, MOST_DAMAGE)


def _say_process(part: Part, recording: Recording) -> None:
    info = part.info
    if part.place.name:
        say("")
        info = info._replace(path=part.place.name)
    for line in describe(info):
        say(line)
    if part.place.name:
        say(f"begins: {duration(part.place.time_shift)} after the first")
    say(f"id: {info.file_id}")
    say(f"clock: {_clock(part)}")
    for sentence in _reasons.missing(info):
        say(sentence)
    if options := part.fact("options"):
        say(f"options: {options}")
    _say_threads(recording.slice(processes=[part.id]).threads)


def _clock(part: Part) -> str:
    cost = part.fact("clock_cost")
    kind = part.info.clock
    return f"{kind}, a reading took {cost} ns" if cost else kind


def _say_threads(threads: list[Thread]) -> None:
    say(f"threads: {len(threads):,}")
    for thread in threads[:_MOST_THREADS]:
        began = "" if thread.start is None else f", from {duration(thread.start)}"
        ended = "" if thread.end is None else f", until {duration(thread.end)}"
        say(f"  {thread.id}: {thread.name or '?'} ({thread.os_id}{began}{ended})")
    if len(threads) > _MOST_THREADS:
        say(f"  and {len(threads) - _MOST_THREADS:,} more")
