"""Recordings of calls for tests: programs with what a reader must say, and nonsense."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reference.recording import EVENTS, METADATA, Chunk, File, Raw

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

CODES = 6
NAMES = [f"name {number}" for number in range(1, 10)]


def names() -> list[Raw]:
    """Metadata: strings 1 to 9, and codes 1 to 6 named after them."""
    strings = [Raw(0xE0, [n, text.encode()]) for n, text in enumerate(NAMES, 1)]
    table = [Raw(0xE0, [10, bytes([0x80 | 11 << 3, 0, 1] * 8)])]
    return strings + table + [Raw(0xC0, [c, c, c, 9, c, 10]) for c in range(1, 7)]


@dataclass
class Frame:
    what: int
    entered: str
    start: int
    number: int
    native: bool = False
    place: tuple[str | None, str | None, int | None] | None = None  # of work
    generator: int = 0
    instance: int = 0
    task: int = 0
    inside: int = 0


@dataclass
class Thread:
    number: int
    open: list[Frame] = field(default_factory=list)
    paused: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    numbers: int = 0
    chunk: Chunk | None = None


class Story:
    """A program whose threads call, return, raise and yield; one tick is one ns.

    A generator stays in its thread: chunks are read one after the other, so that who
    ran it in which order is not known across threads.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.now = 1_000
        self.on = True
        self.metadata = [*names(), Raw(0x27, [self.now])]
        self.chunks: list[Chunk] = []
        self.threads = [Thread(number) for number in (1, 2, 3)]
        self.stacks: dict[tuple[int, ...], int] = {(): 0}
        self.tasks = self.instances = 0
        self.expected: list[tuple[Any, ...]] = []

    def run(self, steps: int) -> tuple[File, list[tuple[Any, ...]]]:
        for _ in range(steps):
            self.now += self.rng.randint(1, 9)
            if self.rng.random() < 0.01:
                self.switch()
            else:
                self.step(self.rng.choice(self.threads))
        self.now += 1
        for thread in self.threads:
            self.settle(thread)
        self.now += 1
        for thread in self.threads:
            while self.on and thread.open:
                self.close(thread, "cut")
        for chunk in self.chunks:
            chunk.end = (self.now, self.now)
        end = (self.now, self.now)
        metadata = []  # in as many chunks as it takes
        for begin in range(0, len(self.metadata), 150):
            part = self.metadata[begin : begin + 150]
            number = 1 + begin // 150
            metadata.append(Chunk(number, part, METADATA, end=end))
        return File([*metadata, *self.chunks], end=end), self.expected

    def switch(self) -> None:
        """Calls cease to be recorded, or are recorded again."""
        for thread in self.threads:
            self.settle(thread)
        self.on = not self.on
        self.metadata.append(Raw(0x27 if self.on else 0x28, [self.now]))
        for thread in self.threads:
            frames = [frame for frame in thread.open if not frame.native]
            if not self.on:
                while thread.open:
                    self.close(thread, "cut")
                thread.open = frames
                continue
            self.metadata.append(
                Raw(0x6E, [self.now, thread.number, self.stack(frames)])
            )
            thread.open = []
            for level, frame in enumerate(frames, 1):
                more = {}
                if frame.generator:
                    told = [self.now, thread.number, level, frame.generator]
                    self.metadata.append(Raw(0x85, told))
                    more = {"generator": frame.generator, "instance": frame.instance}
                    more["task"] = frame.task
                self.enter(thread, frame.what, "open", **more)

    def settle(self, thread: Thread) -> None:
        """Tell what has to be told while calls are recorded."""

    def stack(self, frames: list[Frame]) -> int:
        path = tuple(frame.what for frame in frames)
        for depth in range(1, len(path) + 1):
            if path[:depth] not in self.stacks:
                number, parent = len(self.stacks), self.stacks[path[: depth - 1]]
                self.stacks[path[:depth]] = number
                self.metadata.append(Raw(0x82, [number, parent, path[depth - 1], 0]))
        return self.stacks[path]

    def write(self, thread: Thread, code: int, *values: Any) -> None:
        if not self.on:
            return
        if thread.chunk is None or len(thread.chunk.records) > self.rng.randint(5, 300):
            thread.chunk = Chunk(1_000 + len(self.chunks), [], EVENTS, thread.number)
            thread.chunk.start = (self.now, self.now)
            self.chunks.append(thread.chunk)
            frames = [frame for frame in thread.open if not frame.native]
            thread.chunk.records.append(Raw(0x48, [self.now, self.stack(frames)]))
            for level, frame in enumerate(frames, 1):
                if frame.generator:
                    told = [self.now, level, frame.generator]
                    thread.chunk.records.append(Raw(0x70, told))
        thread.chunk.records.append(Raw(code, [self.now, *values]))

    # What programs do

    def step(self, thread: Thread) -> None:
        rng = self.rng
        top = thread.open[-1] if thread.open else None
        what = rng.random()
        if top is None or (what < 0.35 and len(thread.open) < 12):
            self.call(thread)
        elif what < 0.45 and thread.paused and not (top and top.native):
            self.resume(thread)
        elif what < 0.55 and self.on:
            code, calls, took = rng.randint(1, 6), rng.randint(1, 9), rng.randint(0, 1)
            took = min(took, self.now - top.start - top.inside)
            self.write(thread, 0x84, code, calls, took)
            self.fold(thread, top, code, calls, took)
        elif top.native:
            code, left = rng.choice([(0x23, "return"), (0x24, "unwind")])
            self.write(thread, code)
            self.close(thread, left)
        else:
            self.leave(thread, top)

    def call(self, thread: Thread) -> None:
        code, what = self.rng.randint(1, CODES), self.rng.random()
        if what < 0.2 and self.on:
            self.write(thread, 0x46, code)
            self.enter(thread, code, "call", native=True)
        elif what < 0.5 and self.on:
            self.begin_generator(thread, code)
        elif what < 0.6:
            self.write(thread, 0x47, code)
            self.enter(thread, code, "open")
        else:
            self.write(thread, 0x40, code)
            self.enter(thread, code, "call")

    def begin_generator(self, thread: Thread, code: int) -> None:
        busy = {frame.generator for frame in thread.open} | set(thread.paused)
        free = [10 * thread.number + n for n in range(9)]
        generator = self.rng.choice([g for g in free if g not in busy] or [999])
        if generator == 999:
            return
        task = 0
        if self.rng.random() < 0.4:
            self.tasks += 1
            task = self.tasks
            self.metadata.append(Raw(0xC3, [self.now, task, 0, 1, code, generator]))
            self.now += 1
        self.write(thread, 0x67, code, generator)
        self.instances += 1
        more = {"generator": generator, "instance": self.instances, "task": task}
        self.enter(thread, code, "call", **more)

    def resume(self, thread: Thread) -> None:
        if not self.on:
            return
        generator = self.rng.choice(list(thread.paused))
        what, instance, task = thread.paused.pop(generator)
        code, entered = self.rng.choice(
            [(0x68, "resume"), (0x69, "throw"), (0x6A, "open")]
        )
        self.write(thread, code, what, generator)
        more = {"generator": generator, "instance": instance, "task": task}
        self.enter(thread, what, entered, **more)

    def leave(self, thread: Thread, top: Frame) -> None:
        ways = [(0x20, "return"), (0x21, "unwind"), (0x26, "unstarted")]
        if top.generator:
            ways += [(0x22, "yield")] * 6
        code, left = self.rng.choice(
            ways if self.rng.random() < 0.95 else [(0x25, "gone")]
        )
        self.write(thread, code)
        if self.on:
            self.close(thread, left)
        else:
            thread.open.pop()
        if left == "yield" and top.generator:
            thread.paused[top.generator] = (top.what, top.instance, top.task)

    # What a reader must say

    def enter(self, thread: Thread, what: int, entered: str, **more: Any) -> None:
        thread.numbers += self.on
        frame = Frame(what, entered, self.now, thread.numbers, **more)
        thread.open.append(frame)

    def close(self, thread: Thread, left: str) -> None:
        frame = thread.open.pop()
        duration = self.now - frame.start
        self.tell(thread, frame, left, self.now, duration - frame.inside, 1)
        if thread.open:
            thread.open[-1].inside += duration

    def fold(
        self, thread: Thread, around: Frame, code: int, calls: int, took: int
    ) -> None:
        thread.numbers += 1
        around.inside += took
        frame = Frame(code, "call", self.now - took, thread.numbers)
        self.tell(thread, frame, "return", self.now, took, calls)

    def tell(
        self, thread: Thread, frame: Frame, left: str, end: int, own: int, count: int
    ) -> None:
        tasks = [f.task for f in (*thread.open, frame) if f.task]
        place = (None, None) if frame.native else ("name 9", frame.what)
        self.expected.append(
            (
                *(frame.place or (NAMES[frame.what - 1], *place)),
                *(frame.start, end - frame.start, own, len(thread.open)),
                *(thread.number, tasks[-1] if tasks else None, frame.entered, left),
                *(frame.instance or None, frame.number),
                *(thread.open[-1].number if thread.open else None, count),
            )
        )


def story(rng: random.Random) -> tuple[File, list[tuple[Any, ...]]]:
    """A program, and its calls in any order, by ``whence.Call``'s fields."""
    return Story(rng).run(rng.choice([10, 100, 1_000]))


_NONSENSE = [
    *(0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x40, 0x43, 0x46, 0x47, 0x48, 0x65),
    *(0x66, 0x67, 0x68, 0x69, 0x6A, 0x6B, 0x6C, 0x6D, 0x70, 0x84),
]


def nonsense(rng: random.Random, more: Sequence[Raw] = ()) -> File:
    """Records about calls in no sensible order, after more metadata."""

    def small(most: int = 6) -> int:
        return rng.randint(0, most)

    now = 1_000
    metadata = [*names(), *more]
    for number in range(1, rng.randint(1, 9)):
        parent = small() if rng.random() < 0.2 else rng.randrange(number)
        metadata.append(Raw(0x82, [number, parent, rng.randint(1, 2), small()]))
    metadata += [Raw(0xA0, [now, thread, 1, 1, 0]) for thread in (1, 2)]
    for _ in range(rng.randint(0, 12)):
        now += rng.randint(0, 60)
        metadata.append(
            rng.choice(
                [
                    Raw(0xC3, [now, small(5), small(), 1, small(), small(3)]),
                    Raw(0xC4, [now, small(5), small(), small(), small(), small(3)]),
                    Raw(0x6F, [now, small(5), small()]),
                    Raw(0x85, [now, rng.randint(1, 4), small(), small(3)]),
                    Raw(0x6E, [now, rng.randint(1, 4), small()]),
                    Raw(rng.choice([0x27, 0x28]), [now]),
                ]
            )
        )
    if rng.random() < 0.3:
        metadata.append(Raw(0x64, [now + small(100), rng.randint(1, 3), 0]))
    chunks = [Chunk(1, metadata, METADATA, 0, 0, (0, 0), (now, now))]
    for number in range(rng.randint(1, 6)):
        thread = rng.randint(1, 3)
        start = rng.choice([1_000, 1_000 + 100 * number])
        chunk = Chunk(2 + number, [], EVENTS, thread, 0, (start, start))
        known = [*_NONSENSE, *([0xC2] * 9 if more else [])]
        kinds = rng.sample(known, rng.randint(1, len(known)))
        now = start
        for _ in range(rng.randint(0, 80)):
            now += rng.choice([0, 1, 5, 40])
            chunk.records.append(_nonsense(rng, rng.choice(kinds), now))
        chunk.end = (now, now)
        chunks.append(chunk)
    return File(chunks, end=(2_000, 2_000), state=rng.choice([1, 2]))


def _nonsense(rng: random.Random, kind: int, now: int) -> Raw:
    if kind == 0xC2:
        ago = [rng.choice([0, 0, 1, 5, 40, 300]) for _ in range(2)]
        if rng.random() < 0.05:
            ago[rng.randrange(2)] = rng.choice([5_000, 2**64 - 1])
        backend, name = rng.randint(0, 14), rng.randint(0, 9)
        return Raw(kind, [now, backend, rng.randint(-1, 9), name, *ago])
    numbers = {1: 0, 2: 1, 3: 2, 4: 3}[kind >> 5]
    values = [rng.randint(0, 4) for _ in range(numbers)]
    if kind == 0x84 and rng.random() < 0.2:
        values[2] = rng.choice([500, 2**64 - 1])
    return Raw(kind, [now, *values])
