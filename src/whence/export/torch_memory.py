"""PyTorch's memory snapshots, as JSON: what is in use, and how it came to that.

``segments`` are stretches of addresses with the blocks in them, ``device_traces`` what
happened, one list for each device. A device is what has addresses of its own: the
process is 0, and each pool one more. The allocator that handed out a block is its
stream: 0 raw, 1 mem, 2 obj, 3 malloc, 4 mmap.
"""

from __future__ import annotations

import json
import struct
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
_NAMES = {0: ("alloc",), 2: ("free_requested", "free_completed")}
_MOST_KEPT = 4_096  # texts of stacks


class _Block(NamedTuple):
    device: int
    address: int
    size: int
    domain: int
    stack: int


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
        events, _, _ = part.reader.memory_newest(bounds, limit)
        self._events, self._events_left_out = events
        if until is not None:
            warn(partly(until))
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
        """Yield runs of blocks of one allocator that lie side by side."""
        run: list[_Block] = []
        for block in self._sorted():
            if run and not _is_next(run[-1], block):
                yield self._segment(run)
                run = []
            run.append(block)
        if run:
            yield self._segment(run)

    def _sorted(self) -> list[_Block]:
        return sorted(
            _Block(self._device(domain), address, size, domain, stack)
            for _, _, address, size, domain, stack, _ in _BLOCK.iter_unpack(
                self._blocks
            )
        )

    def _segment(self, run: list[_Block]) -> str:
        first, last = run[0], run[-1]
        used = sum(block.size for block in run)
        total = last.address + last.size - first.address
        about = {
            "device": first.device,
            "address": first.address,
            "total_size": total,
            "allocated_size": used,
            "active_size": used,
            "requested_size": used,
            "stream": _stream(first.domain),
            "segment_type": "large" if total > _LARGE else "small",
            "segment_pool_id": [0, 0],
            "is_expandable": False,
            "frames": [],
        }
        blocks = ",".join(self._listed(run))
        return f'{_json(about)[:-1]},"blocks":[{blocks}]}}'

    def _listed(self, run: list[_Block]) -> Iterator[str]:
        """Yield the blocks, and what lies between them."""
        at = run[0].address
        for block in run:
            if block.address > at:
                gap = {"address": at, "size": block.address - at}
                gap["requested_size"] = 0
                yield f'{_json(gap)[:-1]},"state":"inactive","frames":[]}}'
            at = block.address + block.size
            shown = {"address": block.address, "size": block.size}
            shown["requested_size"] = block.size
            frames = self._frames_of(block.stack)
            state = "active_allocated"
            yield f'{_json(shown)[:-1]},"state":"{state}","frames":{frames}}}'

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


def _is_next(before: _Block, block: _Block) -> bool:
    same = (before.device, before.domain) == (block.device, block.domain)
    gap = block.address - (before.address + before.size)
    return same and 0 <= gap <= _PAGE


def _stream(domain: int) -> int:
    return 0 if domain & POOL else domain


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
