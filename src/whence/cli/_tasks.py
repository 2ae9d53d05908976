"""How long the tasks of event loops ran, by the coroutine functions that they run."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whence._recording import Recording


class TaskTime(NamedTuple):
    """The tasks of one function: how many, and the own time of all calls in them."""

    function: str | None
    tasks: int
    own: int


def by_function(recording: Recording) -> list[TaskTime]:
    """Return the functions whose tasks ran longest first; waiting is not running."""
    tasks = recording.tasks
    if not tasks:
        return []
    own = dict.fromkeys((task.id for task in tasks), 0)
    for batch in recording.calls():
        for number, time in zip(batch.task, batch.own, strict=True):
            if number in own:
                own[number] += time
    found: dict[str | None, TaskTime] = {}
    for task in tasks:
        before = found.get(task.function, TaskTime(task.function, 0, 0))
        found[task.function] = before._replace(
            tasks=before.tasks + 1, own=before.own + own[task.id]
        )
    return sorted(found.values(), key=lambda each: -each.own)
