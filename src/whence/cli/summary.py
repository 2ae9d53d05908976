"""``whence summary FILE``: what took the time, at a glance."""

from __future__ import annotations

from whence import _recording
from whence.cli import _branches
from whence.cli._terminal import duration, say, several, size, working

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from whence._events import Function, Losses, RecordingInfo
    from whence._recording import Recording
    from whence._tree import CallTree

_MOST_FUNCTIONS = 15
_UNKNOWN = "?"


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
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Read the recording once and print what it comes to."""
    with _recording.open(given.file) as recording:
        with working(f"reading {given.file}"):
            tree = recording.call_tree()
            losses = recording.losses
        info = recording.info
        say(f"{info.program or _UNKNOWN}: {duration(info.duration)}", "bold")
        about = [
            several(sum(node.calls for node in tree), "call"),
            several(len(tree.functions), "function"),
            several(len(recording.threads), "thread"),
            size(info.size),
        ]
        say(", ".join(about))
        _say_losses(info, losses)
        _say_functions(recording, tree.functions, given.functions)
        _say_tree(recording, tree, everything=given.all)
        _say_collections(recording)
        _say_tasks(recording)
    return 0


def _say_losses(info: RecordingInfo, losses: Losses) -> None:
    if not info.closed:
        say("never closed: its program is still running, or was killed", "yellow")
    if info.ended:
        say(f"the recording ended early: {info.ended}", "red")
    if info.calls:
        say(f"calls were not recorded, or not all: {info.calls}", "red")
    for reason, events in losses.dropped.items():
        what = "the ring wrapped, these are the newest" if reason == "ring" else reason
        say(f"{several(events, 'event')} dropped: {what}", "yellow")


def _say_functions(recording: Recording, functions: list[Function], most: int) -> None:
    hot = sorted(functions, key=lambda function: -function.own)[: max(most, 0)]
    if not hot:
        return
    say("")
    say(f"{'own':>10} {'':>5} {'total':>10} {'calls':>12}  function", "bold")
    everything = sum(function.own for function in functions) or 1
    for function in hot:
        share = f"{100 * function.own / everything:.1f}%"
        own, total = duration(function.own), duration(function.total)
        place = place_of(recording, function)
        say(f"{own:>10} {share:>5} {total:>10} {function.calls:>12,}  {place}")


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
    tasks = recording.tasks
    if tasks:
        functions: dict[str, int] = {}
        for task in tasks:
            name = task.function or _UNKNOWN
            functions[name] = functions.get(name, 0) + 1
        most = sorted(functions, key=lambda name: -functions[name])[:5]
        kinds = ", ".join(f"{name} ({functions[name]:,})" for name in most)
        say(f"{several(len(tasks), 'task')}: {kinds}")


def place_of(recording: Recording, function: Function) -> str:
    """Say which function it is, for people."""
    name = function.name or _UNKNOWN
    if not function.filename:
        return name
    return f"{name} ({recording.shorten(function.filename)}:{function.line})"
