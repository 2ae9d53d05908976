"""When recordings began, on one clock."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_SECOND = 1_000_000_000


class Moment(NamedTuple):
    """When a recording began, in nanoseconds; ``boot`` tells monotonic clocks apart."""

    wall: int
    monotonic: int
    boot: str | None


def align(moments: Sequence[Moment]) -> tuple[list[int], bool]:
    """Return the moments on one clock, and whether the monotonic one was enough.

    Recordings of one boot of a machine share the monotonic clock, which nobody sets.
    Those of others are put beside them by the wall clock, as it was when the first of
    each boot began.
    """
    boots: list[list[Moment]] = []
    boot_of = []
    for moment in moments:
        same = (n for n, boot in enumerate(boots) if _same_boot(boot[0], moment))
        number = next(same, len(boots))
        if number == len(boots):
            boots.append([])
        boots[number].append(moment)
        boot_of.append(number)
    firsts = [min(boot, key=lambda moment: moment.monotonic) for boot in boots]
    times = [
        firsts[number].wall + moment.monotonic - firsts[number].monotonic
        for number, moment in zip(boot_of, moments, strict=True)
    ]
    return times, len(boots) == 1


def _same_boot(one: Moment, other: Moment) -> bool:
    if one.boot is not None and other.boot is not None:
        return one.boot == other.boot
    apart = (one.wall - one.monotonic) - (other.wall - other.monotonic)
    return abs(apart) < _SECOND
