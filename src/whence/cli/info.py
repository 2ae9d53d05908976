"""``whence info FILE``: what a recording says about itself."""

from __future__ import annotations

from whence import _recording
from whence.cli._terminal import duration, say
from whence.cli.verify import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from whence._recording import Recording

_MOST_THREADS = 50


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its arguments."""
    parser = verbs.add_parser(
        "info",
        help="say what a recording is of",
        description="Say what a recording is of: file, clock, process, threads, and "
        "the options that it was made with.",
    )
    parser.add_argument("file", metavar="FILE", help="the recording")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print what the header and the metadata say."""
    with _recording.open(given.file) as recording:
        info = recording.info
        for line in describe(info):
            say(line)
        say(f"id: {info.file_id}")
        say(f"clock: {_clock(recording)}")
        if info.calls:
            say(f"calls: not recorded, or not all: {info.calls}")
        options = recording._reader.info("options")  # noqa: SLF001
        if options:
            say(f"options: {options}")
        _say_threads(recording)
    return 0


def _clock(recording: Recording) -> str:
    cost = recording._reader.info("clock_cost")  # noqa: SLF001
    kind = recording.info.clock
    return f"{kind}, a reading took {cost} ns" if cost else kind


def _say_threads(recording: Recording) -> None:
    threads = recording.threads
    say(f"threads: {len(threads):,}")
    for thread in threads[:_MOST_THREADS]:
        began = "" if thread.start is None else f", from {duration(thread.start)}"
        ended = "" if thread.end is None else f", until {duration(thread.end)}"
        say(f"  {thread.id}: {thread.name or '?'} ({thread.os_id}{began}{ended})")
    if len(threads) > _MOST_THREADS:
        say(f"  and {len(threads) - _MOST_THREADS:,} more")
