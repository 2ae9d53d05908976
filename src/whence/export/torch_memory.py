"""PyTorch's memory snapshots, as JSON: what is in use, and how it came to that.

``segments`` are stretches of addresses with the blocks in them: those that a pool has
told of, or else blocks that lie side by side. ``device_traces`` are what happened, one
list for each device. A device is what has addresses of its own: the
process is 0, and each pool one more. The allocator that handed out a block is its
stream: 0 raw, 1 mem, 2 obj, 3 malloc, 4 mmap.
"""

from __future__ import annotations

import json
import struct
from bisect import bisect_right
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from whence._bounds import partly
from whence._memory import MemoryCounts
from whence._memory_names import POOL, MemoryNames
from whence._recording import parts_of
from whence.export._memory import warn_of_gaps
from whence.export._metrics import expect_memory
from whence.export._stacks import Stacks
from whence.export._warn import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from whence._recording import Recording

_MOST_FRAMES = 64  # of a stack, the innermost
_PAGE = 4096  # what lies further apart is in two segments
_LARGE = 1 << 20  # PyTorch's own bound between its pools
_BLOCK = struct.Struct("=qqQQQQQ")
_EVENT = struct.Struct("=QqQQQQQ")
# By the actions of the native reader. Nothing waits between asking and freeing here.
_NAMES = {
    0: ("alloc",),
    2: ("free_requested", "free_completed"),
    4: ("segment_alloc",),
    5: ("segment_free",),
}
_MOST_KEPT = 4_096  # texts of stacks


class _Block(NamedTuple):
    device: int
    address: int
    size: int
    domain: int
    stack: int

    @property
    def end(self) -> int:
        return self.address + self.size


def write(recording: Recording, file: BinaryIO, limit: int) -> None:
    """Write the largest blocks that are in use at the end, and the newest events."""
    expect_memory(recording)
    _Snapshot(recording, limit).write(file)


class _Snapshot:
    def __init__(self, recording: Recording, limit: int) -> None:
        (part,) = parts_of(recording)
        bounds = tuple(recording._bounds)  # noqa: SLF001
        blocks, counts, until = part.reader.memory_largest(bounds, True, limit)  # noqa: FBT003
        warn_of_gaps(recording, MemoryCounts(*counts))
        self._blocks, self._blocks_left_out, self._bytes_left_out = blocks
        self._held, _, _ = part.reader.memory_segments(bounds, limit)
        events, _, _ = part.reader.memory_newest(bounds, limit)
        self._events, self._events_left_out = events
        if until is not None:
            warn(partly(until))
        if self._held and self._blocks_left_out:
            warn(
                f"blocks left out: {self._blocks_left_out:,}, the smallest, where "
                "segments look free: --limit sets how many are shown"
            )
        self._stacks = Stacks(part.reader)
        self._names = MemoryNames(part.reader)
        self._frames: dict[int, str] = {}
        self._devices: dict[int, int] = {0: 0}  # by domain, if that is a pool
        self._about = recording.info
        epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017
        self._start = (recording.info.start - epoch) // timedelta(microseconds=1)

    def write(self, file: BinaryIO) -> None:
        """Write a piece at a time: frames are repeated for each block and event."""
        file.write(b'{"segments":[')
        self._write_listed(file, self._segments())
        for _, _, _, domain, *_ in _EVENT.iter_unpack(self._events):
            self._device(domain)
        file.write(b'],"device_traces":[')
        for device in self._devices.values():
            file.write(b",[" if device else b"[")
            self._write_listed(file, self._entries(device))
            file.write(b"]")
        about = {
            "program": self._about.program,
            "python": self._about.python,
            "whence": self._about.whence,
            "devices": [
                "process",
                *(self._names.domain(d) for d in self._devices if d),
            ],
            "blocks_left_out": self._blocks_left_out,
            "bytes_left_out": self._bytes_left_out,
            "events_left_out": self._events_left_out,
        }
        rest = {"allocator_settings": {}, "external_annotations": [], "whence": about}
        file.write(f"],{_json(rest)[1:]}\n".encode())

    @staticmethod
    def _write_listed(file: BinaryIO, items: Iterator[str]) -> None:
        separator = "\n"
        for item in items:
            file.write(f"{separator}{item}".encode())
            separator = ",\n"

    def _segments(self) -> Iterator[str]:
        """Yield what is held with its blocks, and runs of others, side by side."""
        blocks, held = self._sorted(self._blocks), self._sorted(self._held)
        inside: list[list[_Block]] = [[] for _ in held]
        places = [(segment.device, segment.address) for segment in held]
        run: list[_Block] = []
        for block in blocks:
            place = bisect_right(places, (block.device, block.address)) - 1
            if place >= 0 and _is_in(block, held[place]):
                inside[place].append(block)
                continue
            if run and not _is_next(run[-1], block):
                yield self._segment(_spanning(run), run)
                run = []
            run.append(block)
        if run:
            yield self._segment(_spanning(run), run)
        for segment, own in zip(held, inside, strict=True):
            yield self._segment(segment, own)

    def _sorted(self, rows: bytes) -> list[_Block]:
        return sorted(
            _Block(self._device(domain), address, size, domain, stack)
            for _, _, address, size, domain, stack, _ in _BLOCK.iter_unpack(rows)
        )

    def _segment(self, segment: _Block, run: list[_Block]) -> str:
        used = sum(block.size for block in run)
        total = segment.size
        about = {
            "device": segment.device,
            "address": segment.address,
            "total_size": total,
            "allocated_size": used,
            "active_size": used,
            "requested_size": used,
            "stream": _stream(segment.domain),
            "segment_type": "large" if total > _LARGE else "small",
            "segment_pool_id": [0, 0],
            "is_expandable": False,
        }
        blocks = ",".join(self._listed(segment, run))
        frames = self._frames_of(segment.stack)
        return f'{_json(about)[:-1]},"frames":{frames},"blocks":[{blocks}]}}'

    def _listed(self, segment: _Block, run: list[_Block]) -> Iterator[str]:
        """Yield the blocks, and what lies between them."""
        at = segment.address
        for block in run:
            if block.address > at:
                yield _gap(at, block.address)
            at = max(at, block.end)
            shown = {"address": block.address, "size": block.size}
            shown["requested_size"] = block.size
            frames = self._frames_of(block.stack)
            state = "active_allocated"
            yield f'{_json(shown)[:-1]},"state":"{state}","frames":{frames}}}'
        if at < segment.end:
            yield _gap(at, segment.end)

    def _entries(self, device: int) -> Iterator[str]:
        for event in _EVENT.iter_unpack(self._events):
            action, time, _, domain, address, size, stack = event
            if self._device(domain) != device:
                continue
            # What is free is what nobody knows here, and readers ask for.
            where = {"device_free": 0} if action not in _NAMES else {"addr": address}
            entry = {**where, "size": size, "stream": _stream(domain)}
            entry["time_us"] = self._start + time // 1000
            rest = f'{_json(entry)[1:-1]},"frames":{self._frames_of(stack)}}}'
            for name in _NAMES.get(action, ("oom",)):
                yield f'{{"action":"{name}",{rest}'

    def _device(self, domain: int) -> int:
        if not domain & POOL:
            return 0
        return self._devices.setdefault(domain, len(self._devices))

    def _frames_of(self, stack: int) -> str:
        number = self._stacks.number(stack)
        if number not in self._frames:
            if len(self._frames) == _MOST_KEPT:
                self._frames.clear()
            self._frames[number] = _json(
                [
                    {"name": name, "filename": filename or "", "line": line}
                    for name, filename, line in self._stacks.innermost(
                        number, _MOST_FRAMES
                    )
                ]
            )
        return self._frames[number]


def _spanning(run: list[_Block]) -> _Block:
    """Return what there is from the first block to the last, which nobody has told."""
    first, end = run[0], max(block.end for block in run)
    return first._replace(size=end - first.address, stack=0)


def _is_in(block: _Block, segment: _Block) -> bool:
    same = (block.device, block.domain) == (segment.device, segment.domain)
    return same and segment.address <= block.address and block.end <= segment.end


def _gap(start: int, end: int) -> str:
    gap = {"address": start, "size": end - start, "requested_size": 0}
    return f'{_json(gap)[:-1]},"state":"inactive","frames":[]}}'


def _is_next(before: _Block, block: _Block) -> bool:
    same = (before.device, before.domain) == (block.device, block.domain)
    gap = block.address - before.end
    return same and 0 <= gap <= _PAGE


def _stream(domain: int) -> int:
    return 0 if domain & POOL else domain


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
