"""What the numbers of an export are: time and calls, or memory."""

from __future__ import annotations

from whence._memory_names import history_of
from whence._recording import has_memory, parts_of
from whence.export._output import ExportError
from whence.export._paths import tree_of
from whence.export._warn import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whence._recording import Recording
    from whence._tree import CallTree

_OF_MEMORY = ("peak", "leaks", "allocated")


def resolve(recording: Recording, metric: str | None) -> tuple[str, CallTree | None]:
    """Return the metric, and the call tree if it is one of calls.

    Without one that was chosen it is own time, or memory if there is nothing else.
    """
    if metric in _OF_MEMORY:
        expect_memory(recording)
        _expect_history(recording, metric)
        return metric, None
    tree = tree_of(recording)
    if metric is not None or len(tree) or not has_memory(recording):
        return metric or "own", tree
    expect_memory(recording)
    found, when = "peak", "the peak"
    if not has_history(recording):
        found, when = "leaks", "the end"
    warn(
        "there are no calls in it: the numbers are bytes of memory that were in use at "
        f"{when} (metric '{found}')"
    )
    _expect_history(recording, found)
    return found, None


def tree_for(recording: Recording, name: str) -> CallTree:
    """Read the tree for a format that holds calls and nothing else."""
    tree = tree_of(recording)
    if not len(tree) and has_memory(recording):
        message = f"there are no calls in it, and {name} holds nothing else: for memory"
        message += " use collapsed, pprof, speedscope, perfetto, parquet or"
        message += " torch-memory"
        raise ExportError(message)
    return tree


def has_history(recording: Recording) -> bool:
    """Say whether it is known what happened to the memory of its one process."""
    (part,) = parts_of(recording)
    return history_of(part.reader) != "none"


def _expect_history(recording: Recording, metric: str) -> None:
    """Refuse what only a history tells, where none was kept."""
    if metric == "leaks":
        return
    (part,) = parts_of(recording)
    history = history_of(part.reader)
    if history == "ring":
        warn("the ring wrapped: memory that was taken before what it has is left out")
    if history == "partly":
        warn("for a part of the time no history of memory was kept: that is left out")
    if history == "none":
        missing = {"peak": "there is no peak", "allocated": "it has not all blocks"}
        message = "no history of memory was kept (memory_detail='state'), so "
        message += f"{missing[metric]}: use --metric leaks, what was in use at the end"
        raise ExportError(message)


def expect_memory(recording: Recording) -> None:
    """Refuse what has no memory to export, or that of several processes."""
    if not has_memory(recording):
        why = recording.info.memory
        message = f"there is no memory in it{f': {why}' if why else ''}; "
        message += "whence run --memory and record(memory=True) record it"
        raise ExportError(message)
    if len(recording.processes) != 1:
        message = "memory is that of one process: choose one, by --process or by "
        message += "slice(processes=[...])"
        raise ExportError(message)
