"""Memory on a timeline: what was in use, and what the system held."""

from __future__ import annotations

from typing import NamedTuple

from whence._recording import has_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whence._recording import Recording

RESIDENT = "resident memory"
IN_USE = "memory in use"


class Series(NamedTuple):
    """Values of a quantity in bytes, each from a time on."""

    name: str
    points: list[tuple[int, int]]


def series_of(recording: Recording) -> list[Series]:
    """Return what was in use, in all and by domain, and what was resident.

    The recording is of one process.
    """
    if not has_memory(recording):
        return []
    usage = recording.memory.usage()
    domains = dict.fromkeys(name for point in usage.points for name in point.domains)
    found = [Series(IN_USE, [(point.time, point.bytes) for point in usage.points])]
    for name in domains:
        levels = ((p.time, p.domains.get(name)) for p in usage.points)
        points = [(time, level.bytes if level else 0) for time, level in levels]
        found.append(Series(f"{IN_USE}: {name}", points))
    found.append(Series(RESIDENT, [(p.time, p.bytes) for p in usage.resident]))
    return [Series(each.name, _changes(each.points)) for each in found if each.points]


def _changes(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Leave out what says the same as the one before."""
    before = [None, *(value for _, value in points)]
    return [p for p, value in zip(points, before, strict=False) if p[1] != value]
