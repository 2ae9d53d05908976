"""Questions about memory while it is recorded."""

from __future__ import annotations

from whence import _core, _process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from whence._core import Stack
    from whence._memory import Memory, MemoryEvent
    from whence._memory_groups import MemoryGroups
    from whence._record import record

_HAS_GC, _HAS_MORE = 1 << 14, 1 << 3 | 1 << 4  # flags of a type: what is before objects
_WORDS = 16  # two of them
_MAPPING = -1  # the one that an address may be in


class _Answer:
    """A thread that answers a question: what it takes for that is not recorded."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        _process.detach_if_forked()
        _process.lock.acquire()
        self._before = _core.set_answering(True)

    def __exit__(self, *_: object) -> None:
        _core.set_answering(self._before)
        _process.lock.release()


def snapshot() -> MemoryGroups:
    """Return the blocks that are in use now, by the stack that asked for them.

    Those that were taken since the recording began, largest first. Raises
    ``RuntimeError`` if memory is not recorded, or if no history is kept and the ring
    is too small for what is in use.
    """
    with _Answer():
        return _memory_of(_recorder()).leaks()


def stack_of(thing: object) -> Stack | None:
    """Return the stack that asked for a block that is in use.

    An ``int`` is an address, anything else the object that it is about. None if there
    is no such block, or it was taken before, or memory is not recorded.
    """
    is_address = isinstance(thing, int) and not isinstance(thing, bool)
    if is_address and not 0 <= thing < 1 << 64:  # type: ignore[operator]
        message = f"an address is from 0 to 2**64 - 1, not {thing}"
        raise ValueError(message)
    with _Answer():
        recorder = _recorder_of_memory()
        if recorder is None:
            return None
        if recorder.memory_detail == "state":
            number = _core.stack_in_use(thing if is_address else _block_of(thing))  # type: ignore[arg-type]
        else:
            # The address of an object is somewhere in its block.
            history = _memory_of(recorder).history(thing if is_address else id(thing))  # type: ignore[arg-type]
            number = _stack_in(history)
    return None if number is None else _core.stack_numbered(number)


def export_history(path: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Write the history so far to a recording of its own; this one goes on.

    Raises ``RuntimeError`` if memory is not recorded, or if no history is kept and the
    ring is too small for what is in use.
    """
    with _Answer():
        _recorder().dump(path, overwrite=overwrite)


def _recorder_of_memory() -> record | None:
    recorder = _process.current
    if recorder is None or recorder.state not in ("on", "paused"):
        return None
    return recorder if recorder.memory else None


def _recorder() -> record:
    recorder = _recorder_of_memory()
    if recorder is None:
        message = "memory is not recorded: start whence.record(memory=True) first"
        raise RuntimeError(message)
    return recorder


def _memory_of(recorder: record) -> Memory:
    """Read what the recording has until now, also if its file was moved."""
    from whence import _recording, _session  # noqa: PLC0415

    _session.tell_memory_state()
    path = str(recorder.path)
    descriptor: int = _core.recording_status()["descriptor"]
    if descriptor >= 0:
        return _recording.open_descriptor(path, descriptor).memory
    return _recording.open(path).memory


def _stack_in(history: list[MemoryEvent]) -> int | None:
    """Find the innermost block that is in use at the end of it.

    A part of a mapping may be given back, and the address is in that part then: so any
    such event ends the mapping, whatever address it begins at.
    """
    in_use: dict[int, tuple[int, int]] = {}  # by address, or mapping: address, stack
    given: tuple[int, tuple[int, int]] | None = None
    for event in history:
        place = _MAPPING if event.domain == "mmap" else event.address
        if event.action == "freed":
            given = (place, in_use.pop(place)) if place in in_use else None
        elif event.action != "not_freed":
            in_use[place] = event.address, event._stack  # noqa: SLF001
        elif given is not None:
            in_use[given[0]] = given[1]
    return max(in_use.values())[1] if in_use else None


def _block_of(thing: object) -> int:
    """Return where the block of an object begins: its head is before its address."""
    flags = type(thing).__flags__
    heads = bool(flags & _HAS_GC) + bool(flags & _HAS_MORE)
    return id(thing) - heads * _WORDS
