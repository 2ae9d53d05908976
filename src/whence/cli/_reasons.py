"""Why something is missing in a recording that was asked for."""

from __future__ import annotations

from whence.cli._terminal import several

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whence._events import RecordingInfo

_NO_STACKS = "no_stacks"


def missing(info: RecordingInfo) -> list[str]:
    """Say what was not recorded, and why: a sentence for each."""
    found = []
    if info.calls:
        found.append(f"calls were not recorded, or not all: {info.calls}")
    for reason in info.memory.split(", ") if info.memory else ():
        if reason == _NO_STACKS:
            found.append(
                "memory has no stacks: the frames of this Python are read through its "
                "public API, which allocations cannot use (no_stacks)"
            )
        else:
            found.append(f"memory was not recorded, or not all: {reason}")
    if info.handles:
        found.append(
            "tables of handles are missing, as there was no room for all of them: "
            "a larger max_size has more"
        )
    return found


def unnamed(names: int) -> list[str]:
    """Say that so many names and stacks are not there, if any."""
    if not names:
        return []
    what = several(names, "name or stack", "names and stacks")
    return [f"{what} missing: some stacks are cut, some functions have no name"]
