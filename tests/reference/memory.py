"""The slow twin of the replay of memory: what must be found about it in a recording.

Everything is kept: blocks in a dictionary, and a list of all that happened to them. A
question is a loop over that list.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from reference.recording import U64

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reference.recording_reader import Decoded

DOMAINS = ["raw", "mem", "obj", "malloc", "mmap"]
LATE = 1_000_000  # nanoseconds
TAKES = ("allocated", "moved", "in_use")


@dataclass(frozen=True)
class Event:
    """An event as a recording has it."""

    action: str
    time: int
    thread: int
    domain: str | None = None  # of what is freed: None but for pools and mappings
    address: int = 0
    size: int = 0
    stack: int = 0
    tags: int = 0
    available: int = 0  # and one more; 0: not known
    age: int = 0  # of what a state tells

    @property
    def space(self) -> str | None:
        own = self.domain is not None and self.domain.startswith(("pool", "mmap"))
        return self.domain if own else None

    @property
    def last(self) -> int:
        """Return the last of its addresses, of which there is at least one."""
        return min(self.address + max(self.size, 1) - 1, U64)


@dataclass(frozen=True)
class Block:
    taken: Event
    number: int  # how many blocks its thread had taken then

    def covers(self, address: int) -> bool:
        first, size = self.taken.address, self.taken.size
        return address == first or (address - first) & U64 < size


@dataclass(frozen=True)
class Change:
    """What an event does to a block: "taken", "ended", "returned" or nothing."""

    what: str | None
    event: Event
    block: Block | None = None
    further: int = 0
    of_segment: bool = False  # and not of a block
    is_rest: bool = False  # of a mapping of which the rest has gone
    freed: Event | None = None  # of one that is back: what did not happen after all


Slice = tuple[int | None, int | None, tuple[int, ...] | None]
ALL: Slice = (None, None, None)
# By stack, domain, thread and tags.
Groups = dict[tuple[int, str, int, int], tuple[int, int]]
# Time, (bytes in use, bytes reserved), [bytes, count] by domain, reserved by pool
Point = tuple[int, tuple[int, int], dict[str, list[int]], dict[str, int]]


@dataclass
class Memory:
    """The answers. A slice is a beginning, an end and threads, each None for all."""

    changes: list[Change] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    pools: dict[str, str] = field(default_factory=dict)  # the names that they have
    texts: dict[int, str] = field(default_factory=dict)

    def name(self, domain: str) -> str:
        return self.pools.get(domain, domain)

    def tags(self, number: int) -> dict[str, Any]:
        text = self.texts.get(number, "") if number else ""
        tags: dict[str, Any] = json.loads(text) if text.startswith("{") else {}
        return tags

    def until(self, end: int | None) -> list[Change]:
        return [c for c in self.changes if end is None or c.event.time < end]

    def live(
        self,
        slice_: Slice = ALL,
        start: int | None = None,
        end: int | None = None,
        at: int | None = None,
    ) -> Groups:
        changes = [c for c in self.until(slice_[1]) if at is None or c.event.time <= at]
        return group(
            block
            for block in live_after(changes)
            if (start is None or block.taken.time >= start)
            and (end is None or block.taken.time < end)
            and wanted(block, slice_)
        )

    def peak(self, slice_: Slice = ALL) -> tuple[int, int, Groups]:
        best = (0, 0, 0)  # bytes, time, changes
        for (time, (size, _), *_), place in self.levels(slice_):
            if size > best[0]:
                best = size, time, place
        blocks = live_after(self.changes[: best[2]])
        return best[0], best[1], group(b for b in blocks if wanted(b, slice_))

    def levels(self, slice_: Slice) -> list[tuple[Point, int]]:
        """What is in use after each change, and how many changes those are."""
        start = slice_[0]
        levels = {name: [0, 0] for name in DOMAINS}
        reserved: dict[str, int] = {}
        found = []
        begun = start is None

        def tell(time: int, place: int) -> None:
            size = sum(level[0] for level in levels.values()) & U64
            copy = {name: [b & U64, n] for name, (b, n) in levels.items()}
            held = sum(reserved.values()) & U64
            by_pool = {name: size & U64 for name, size in reserved.items()}
            found.append(((time, (size, held), copy, by_pool), place))

        changes = self.until(slice_[1])
        for place, change in enumerate(changes):
            if not begun and change.event.time >= (start or 0):
                begun = True
                tell(start or 0, place)
            is_state = change.event.action == "state"  # which is told as a whole
            if is_state and begun and change.block is None:
                tell(change.event.time, place + 1)
            if change.block is None or not wanted(change.block, slice_):
                continue
            taken = change.block.taken
            name = str(taken.domain)
            sign = -1 if change.what == "ended" else 1
            if change.of_segment:
                reserved[name] = reserved.get(name, 0) + sign * taken.size
                assert reserved[name] >= 0
            else:
                level = levels.setdefault(name, [0, 0])
                level[0] += sign * taken.size
                level[1] += sign
                assert min(level) >= 0
            if begun and not is_state:
                tell(change.event.time, place + 1)
        if not begun:
            tell(start or 0, len(changes))
        return found

    def usage(
        self, slice_: Slice, duration: int, intervals: int
    ) -> tuple[list[Any], list[tuple[int, int]]]:
        first = max(slice_[0] or 0, 0)
        last = duration if slice_[1] is None else min(slice_[1], duration)
        width = max(last - first, 0) // intervals + 1

        def interval(time: int) -> int:
            return min(max(time - first, 0) // width, intervals - 1)

        levels = [point for point, _ in self.levels(slice_)]
        points = thin(levels, interval)
        if levels and shown(points[-1]) != shown(levels[-1]):
            points.append(levels[-1])
        samples = [
            (c.event.time, c.event.size)
            for c in self.until(slice_[1])
            if c.event.action == "resident"
            and (slice_[0] is None or c.event.time >= slice_[0])
        ]
        return points, thin(samples, interval)

    def churn(self, slice_: Slice = ALL, within: int = 1) -> Groups:
        sums: dict[Any, list[int]] = {}
        for change in self.until(slice_[1]):
            block, event = change.block, change.event
            if block is None or event.action in TAKES or change.further >= within:
                continue
            if change.of_segment:
                continue
            # What is back counts where it went: else it was never added.
            counted = change.freed or event
            if slice_[0] is not None and counted.time < slice_[0]:
                continue
            if wanted(block, slice_):
                sign = 1 if change.what == "ended" else -1
                entry = sums.setdefault(origin(block), [0, 0])
                entry[0] += sign * block.taken.size
                entry[1] += 0 if change.is_rest else sign  # which has one part less
                assert min(entry) >= 0
        return {key: (b & U64, n) for key, (b, n) in sums.items() if n}

    def history(
        self, slice_: Slice, address: int, pool: int | None = None
    ) -> list[Event]:
        found = []
        for change in self.until(slice_[1]):
            event, block = change.event, change.block
            if event.action in ("out_of_memory", "resident", "state"):
                continue
            if (
                event.action in (*TAKES, "segment_allocated")
                and block
                and (change.what != "taken" or block.taken.address != event.address)
            ):
                continue
            if slice_[0] is not None and event.time < slice_[0]:
                continue
            space = None if event.space == "mmap" else event.space
            if space != (None if pool is None else f"pool {pool}"):
                continue
            if event.action == "freed" and event.space and block and pool is None:
                if change.what != "ended":  # what is left of a mapping
                    continue
                first = max(event.address, block.taken.address)
                size = min(event.last, block.taken.last) - first + 1
                event = replace(event, address=first, size=size)
                taken = replace(block.taken, address=first, size=size)
                block = replace(block, taken=taken)
            shown = block or Block(event, 0)
            thread = shown.taken.thread
            if shown.covers(address) and (slice_[2] is None or thread in slice_[2]):
                taken = shown.taken
                found.append(replace(event, domain=taken.domain, size=taken.size))
        return found

    def failures(self, slice_: Slice) -> list[Event]:
        events = (change.event for change in self.until(slice_[1]))
        return [
            event
            for event in events
            if event.action == "out_of_memory"
            and (slice_[0] is None or event.time >= slice_[0])
            and (slice_[2] is None or event.thread in slice_[2])
        ]


def thin(points: list[Any], interval: Any) -> list[Any]:
    """Keep the first of the largest in each interval. Times are first, sizes second."""
    kept: list[Any] = []
    for point in points:
        if not kept or interval(kept[-1][0]) != interval(point[0]):
            kept.append(point)
        elif point[1] > kept[-1][1]:
            kept[-1] = point
    return kept


def shown(point: Point) -> tuple[Any, ...]:
    """What there is to see of it: a pool that has nothing is as one never met."""
    time, sizes, levels, reserved = point
    there = {name: level for name, level in levels.items() if any(level)}
    return time, sizes, there, {name: size for name, size in reserved.items() if size}


def origin(block: Block) -> tuple[int, str, int, int]:
    taken = block.taken
    return taken.stack, str(taken.domain), taken.thread, taken.tags


def wanted(block: Block, slice_: Slice) -> bool:
    return slice_[2] is None or block.taken.thread in slice_[2]


def live_after(changes: Iterable[Change]) -> list[Block]:
    live = {}
    for change in changes:
        if change.block is not None and not change.of_segment:
            taken = change.block.taken
            live[taken.space, taken.address] = change.what != "ended" and change.block
    return [block for block in live.values() if block]


def group(blocks: Iterable[Block]) -> Groups:
    sums: Groups = {}
    for block in blocks:
        size, count = sums.get(origin(block), (0, 0))
        sums[origin(block)] = (size + block.taken.size) & U64, count + 1
    return sums


# From records to changes


def event_of(  # noqa: C901, PLR0911
    kind: str, thread: int, time: int, fields: dict[str, Any]
) -> Event | None:
    address, size = fields.get("address", 0), fields.get("size", 0)
    stack = fields.get("stack", 0)
    domain, _, action = kind.partition("_")
    if domain == "segment":
        return Event(kind, time, thread, _pool(fields["pool"]), address, size, stack)
    if kind == "memory_state":
        return Event("state", time, thread)
    if action == "in_use":
        owner, age = fields["owner"] & (2**32 - 1), fields["age"]
        return Event(action, time, owner, domain, address, size, stack, age=age)
    if action in TAKES:
        if domain == "pool":
            domain = _pool(fields["pool"])
        return Event(action, time, thread, domain, address, size, stack)
    if kind == "freed":
        return Event("freed", time, thread, None, address, 0, stack)
    if kind == "unmapped":
        return Event("freed", time, thread, "mmap", address, size, stack)
    if kind == "pool_freed":
        pool = _pool(fields["pool"])
        return Event("freed", time, thread, pool, address, 0, stack)
    if kind == "not_freed":
        return Event("not_freed", time, thread, None, address)
    if kind == "out_of_memory":
        number, available = fields["domain"], fields["available"]
        domain = DOMAINS[number] if number < len(DOMAINS) else _pool(number)
        values = (0, size, stack, 0, available)
        return Event("out_of_memory", time, thread, domain, *values)
    if kind == "resident":
        return Event("resident", time, thread, size=fields["bytes"])
    return None


def _pool(number: int) -> str:
    return f"pool {number & ~(1 << 63)}"


class Replay:
    """Applies events one by one."""

    def __init__(self, starts: list[int]) -> None:
        self.starts = starts  # when memory began to be recorded, each time
        self.live: dict[Any, Block] = {}
        self.segments: dict[Any, Block] = {}
        self.late: dict[Any, Event] = {}
        self.taken: dict[int, int] = {}
        self.last: dict[int, Change] = {}  # by thread: its free before
        self.memory = Memory()
        names = ("allocated", "freed", "before", "contradictions", "out_of_memory")
        self.memory.counts = dict.fromkeys(names, 0)

    def tell(self, what: str | None, event: Event, *about: Any) -> Change:
        change = Change(what, event, *about)
        self.memory.changes.append(change)
        return change

    def apply(self, event: Event) -> None:
        if event.action in TAKES:
            self.take(event)
        elif event.action == "freed" and event.space == "mmap":
            self.memory.counts["freed"] += 1
            self.last.pop(event.thread, None)
            if not self.unmap(event):
                self.memory.counts["before"] += 1
                self.tell(None, event)
        elif event.action == "freed":
            self.free(event)
        elif event.action == "not_freed":
            self.bring_back(event)
        elif event.action in ("segment_allocated", "segment_freed"):
            self.change_segment(event)
        elif event.action == "state":
            self.clear(event)
        else:
            self.memory.counts["out_of_memory"] += event.action == "out_of_memory"
            self.tell(None, event)

    def clear(self, event: Event) -> None:
        """End what an earlier state has told."""
        own = [key for key in self.live if key[0] in (None, "mmap")]
        for key in sorted(own, key=lambda key: (key[0] is not None, key[1])):
            self.tell("ended", event, self.live.pop(key), U64)
        self.tell(None, event)

    def take(self, event: Event) -> None:
        key = event.space, event.address
        if event.space == "mmap":
            self.unmap(event)
        old = self.live.pop(key, None)
        if old is not None:
            if not any(old.taken.time < t <= event.time for t in self.starts):
                self.memory.counts["contradictions"] += 1
                self.late[key] = event
            self.tell("ended", event, old)
        self.memory.counts["allocated"] += event.action != "in_use"
        number = self.taken[event.thread] = self.taken.get(event.thread, 0) + 1
        taken = replace(event, time=event.time - event.age)
        self.live[key] = Block(taken, number)
        self.tell("taken", event, self.live[key])

    def unmap(self, event: Event) -> bool:
        mappings = [
            block
            for (space, _), block in self.live.items()
            if space == "mmap"
            and block.taken.address <= event.last
            and block.taken.last >= event.address
        ]
        for block in sorted(mappings, key=lambda block: block.taken.address):
            old = block.taken
            paused = any(old.time < t <= event.time for t in self.starts)
            if event.action in TAKES and not paused:
                self.memory.counts["contradictions"] += 1
            del self.live["mmap", old.address]
            further = self.taken[old.thread] - block.number
            self.tell("ended", event, block, further)
            left = [
                replace(old, address=first, size=last - first + 1)
                for first, last in (
                    (old.address, event.address - 1),
                    (event.last + 1, old.last),
                )
                if first <= last
            ]
            for what, taken in zip(("returned", "taken"), left, strict=False):
                rest = self.live["mmap", taken.address] = replace(block, taken=taken)
                self.tell(what, event, rest, further, False, True)
        return bool(mappings)

    def free(self, event: Event) -> None:
        self.memory.counts["freed"] += 1
        self.last.pop(event.thread, None)
        key = event.space, event.address
        late = self.late.get(key)
        if late is not None and late.thread != event.thread:
            del self.late[key]
            if event.time - late.time <= LATE:
                self.tell(None, event)
                return
        block = self.live.pop(key, None)
        if block is None:
            self.memory.counts["before"] += 1
            self.last[event.thread] = self.tell(None, event)
            return
        further = self.taken[block.taken.thread] - block.number
        self.last[event.thread] = self.tell("ended", event, block, further)

    def change_segment(self, event: Event) -> None:
        key = event.space, event.address
        old = self.segments.pop(key, None)
        if old is not None or event.action == "segment_freed":
            self.tell("ended" if old else None, event, old, 0, old is not None)
        if event.action == "segment_allocated":
            self.segments[key] = Block(event, 0)
            self.tell("taken", event, self.segments[key], 0, True)

    def bring_back(self, event: Event) -> None:
        last = self.last.pop(event.thread, None)
        key = None, event.address
        if last and (last.event.space, last.event.address) == key:
            if last.block is None:
                self.memory.counts["before"] -= 1
            elif key not in self.live:
                self.live[key] = last.block
                about = last.block, last.further, False, False, last.event
                self.tell("returned", event, *about)
                return
        self.tell(None, event)


def replay(decoded: Decoded) -> Memory:
    """Replay a recording, as recording_reader has read it."""
    replay = Replay(decoded.memory_starts)
    for kind, thread, time, fields, tags in decoded.by_time:
        event = event_of(kind, thread, time, fields)
        if event is not None:
            of_teller = event.action == "in_use"  # and not of the owner
            replay.apply(replace(event, tags=0 if of_teller else tags))
    found = replay.memory
    found.texts = decoded.texts
    found.pools = {_pool(n): name for n, name in decoded.pools.items() if name}
    return found
