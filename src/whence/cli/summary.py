"""``whence summary FILE``: what took the time, at a glance."""

from __future__ import annotations

import warnings

from whence import _groups, _processes, _recording, _units
from whence._bounds import partly
from whence.cli import _branches, _memory, _reasons, _tasks, _warnings
from whence.cli._terminal import complain, duration, say, several, size, working
from whence.cli.verify import MOST_DAMAGE, damage

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from whence._events import Function, Group, Losses, Process, RecordingInfo
    from whence._recording import Recording
    from whence._tree import CallTree

_MOST_FUNCTIONS = 15
_MOST_TASKS = 5
_MOST_PROCESSES = 20
_UNKNOWN = "?"
CANNOT = 2


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its arguments."""
    parser = verbs.add_parser(
        "summary",
        help="show where the time went",
        description="Show the functions with most time of their own, and the branches "
        "of the call tree that matter. Functions of libraries that libraries call are "
        "left out of the tree, unless --all is given.",
    )
    parser.add_argument("file", metavar="FILE", help="the recording")
    parser.add_argument(
        "-n",
        "--functions",
        type=int,
        default=_MOST_FUNCTIONS,
        metavar="N",
        help="list so many functions (default: %(default)s)",
    )
    parser.add_argument(
        "--all", action="store_true", help="show functions inside libraries, too"
    )
    parser.add_argument(
        "--callers",
        type=int,
        default=0,
        metavar="N",
        help="list functions apart by the nearest N callers (default: %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        help="read no longer than that, 5s or 2m, and show what was read",
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Read the recording and print what it comes to."""
    try:
        if given.functions < 0:
            message = f"--functions must be 0 or more, not {given.functions}"
            raise ValueError(message)  # noqa: TRY301
        _groups.expect_callers(given.callers, "--callers")
        if given.timeout is not None:
            _units.nanoseconds(given.timeout, "--timeout")
    except ValueError as error:
        complain(f"whence: {error}")
        return CANNOT
    with _recording.open(given.file) as whole, _warnings.told():
        with working(f"reading {given.file}"):
            tree = whole.call_tree(timeout=given.timeout)
            damaged, losses = _check(whole) if tree.until is None else ([], None)
        if tree.until is not None:
            warnings.warn(partly(tree.until), stacklevel=1)
        recording = whole.slice(end=tree.until, timeout=given.timeout)
        info = recording.info
        say(f"{info.program or _UNKNOWN}: {duration(info.duration)}", "bold")
        about = [
            several(sum(node.calls for node in tree), "call"),
            several(len(tree.functions), "function"),
            several(len(recording.threads), "thread"),
            size(info.size),
        ]
        processes = recording.processes
        if len(processes) > 1:
            about.insert(0, several(len(processes), "process", "processes"))
        say(", ".join(about))
        for each in _recording.unreadable(recording):
            say(f"damaged: {each}", "red")
        for line in damaged:
            say(line, "red")
        _say_losses(info, losses)
        _say_processes(processes)
        _say_groups(recording, tree.grouped(given.callers), given.functions)
        _say_tree(recording, tree, everything=given.all)
        _say_collections(recording)
        _say_tasks(recording)
        _memory.say_memory(recording)
    return 0


def _check(recording: Recording) -> tuple[list[str], Losses]:
    """Say what is damaged, and what became of the events."""
    lines: list[str] = []
    each = []
    for part in _recording.parts_of(recording):
        each.append(part.reader.totals())
        where = f"{part.place.name}: " if part.place.name else ""
        lines += damage(each[-1], where, MOST_DAMAGE)
    return lines, _processes.losses_of(each)


def _say_losses(info: RecordingInfo, losses: Losses | None) -> None:
    if not info.closed:
        say("never closed: its program is still running, or was killed", "yellow")
    if info.ended:
        say(f"the recording ended early: {info.ended}", "red")
    for sentence in _reasons.missing(info):
        say(sentence, "red")
    if losses is None:
        return
    for sentence in _reasons.unnamed(losses.names):
        say(sentence, "red")
    for reason, events in losses.dropped.items():
        what = "the ring wrapped, these are the newest" if reason == "ring" else reason
        say(f"{several(events, 'event')} dropped: {what}", "yellow")


def _say_processes(processes: list[Process]) -> None:
    if len(processes) == 1:
        return
    say("")
    say(f"{'process':>10} {'from':>10} {'until':>10}  program", "bold")
    for process in processes[:_MOST_PROCESSES]:
        start, end = duration(process.start), duration(process.end)
        program = process.program or _UNKNOWN
        say(f"{process.pid:>10} {start:>10} {end:>10}  {program}")
    if len(processes) > _MOST_PROCESSES:
        say(f"{'':>10} and {len(processes) - _MOST_PROCESSES:,} more")


def _say_groups(recording: Recording, groups: list[Group], most: int) -> None:
    hot = groups[:most]
    if not hot:
        return
    say("")
    say(f"{'own':>10} {'':>5} {'total':>10} {'calls':>12}  function", "bold")
    everything = sum(group.own for group in groups) or 1
    for group in hot:
        share = f"{100 * group.own / everything:.1f}%"
        own, total = duration(group.own), duration(group.total)
        path = (group.function, *group.callers)
        places = " < ".join(place_of(recording, function) for function in path)
        say(f"{own:>10} {share:>5} {total:>10} {group.calls:>12,}  {places}")


def _say_tree(recording: Recording, tree: CallTree, *, everything: bool) -> None:
    branches = _branches.choose(tree, everything=everything)
    if not branches:
        return
    say("")
    say(f"{'total':>10} {'own':>10} {'calls':>12}  call tree", "bold")
    for branch in branches:
        node = branch.node
        function = node.function
        place = place_of(recording, function) if function else _UNKNOWN
        total, own = duration(node.total), duration(branch.own)
        calls, indent = f"{node.calls:,}", "  " * branch.depth
        style = "" if branch.depth else "bold"
        say(f"{total:>10} {own:>10} {calls:>12}  {indent}{place}", style)


def _say_collections(recording: Recording) -> None:
    durations = [run.duration for run in recording.gc]
    if durations:
        say("")
        times = several(len(durations), "garbage collection")
        longest = duration(max(durations))
        say(f"{times}: {duration(sum(durations))}, the longest {longest}")


def _say_tasks(recording: Recording) -> None:
    functions = _tasks.by_function(recording)
    if not functions:
        return
    say("")
    say(f"{'own':>10} {'tasks':>12}  function of tasks", "bold")
    for each in functions[:_MOST_TASKS]:
        name = each.function or _UNKNOWN
        say(f"{duration(each.own):>10} {each.tasks:>12,}  {name}")


def place_of(recording: Recording, function: Function) -> str:
    """Say which function it is, for people."""
    name = function.name or _UNKNOWN
    if not function.filename:
        return name
    return f"{name} ({recording.shorten(function.filename)}:{function.line})"
