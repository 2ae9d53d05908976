"""Native frames, by name: of live stacks, and of the recording that is being made.

Threads: any. A symbolizer is for one at a time, so whoever needs one takes one that is
idle, or a new one. Nobody waits: not for another thread, not in a signal handler for
what it has interrupted, and not in a forked child for a thread that is not there.
"""

from __future__ import annotations

from whence import _core
from whence._symbols import Module, Symbolizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from whence._frame import Frame

MOST_IDLE = 4  # of each mode; each may hold some files open
# By mode; what they found out stays. Taking one out and putting one in are each one
# step, which no other thread can divide.
_idle: dict[str, list[Symbolizer]] = {}


def namer(mode: str) -> Callable[[str, str, int], list[Frame]]:
    """Return a function that names what is at (path, build id, address)."""

    def name(path: str, build_id: str, address: int) -> list[Frame]:
        return _name(mode, [(Module(path, build_id), address)])[0]

    return name


def keep_symbols(mode: str = "symbols") -> None:
    """Put the names of the native frames of the recording that is on into it."""
    frames = _core.recorded_native_frames()
    wanted = [
        (Module(path, build_id), address) for _, path, build_id, address in frames
    ]
    for (module, _, _, address), names in zip(frames, _name(mode, wanted), strict=True):
        for frame in names:
            _core.keep_symbol(
                module, address, frame.name, frame.filename, frame.line or 0
            )


def _name(mode: str, wanted: list[tuple[Module, int]]) -> list[list[Frame]]:
    idle = _idle.setdefault(mode, [])
    try:
        symbolizer = idle.pop()
    except IndexError:
        symbolizer = Symbolizer(mode)
    names = symbolizer.name(wanted)
    # One that an exception came out of, an interrupt say, is not used again.
    if len(idle) < MOST_IDLE:
        idle.append(symbolizer)
    return names
