"""Recordings of lowered and generated code: what a reader must say, and nonsense."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from reference import call_stories, handles
from reference.recording import File, Raw
from reference.work import LINE_MAP, Place

if TYPE_CHECKING:
    import random

NAMESPACES = [bytes([number] * 16) for number in (1, 2)]
# Strings 11 to 14: backends, behind the names and the line table of call_stories.
BACKENDS = [f"{NAMESPACES[0].hex()}:jit", f"{NAMESPACES[1].hex()}:jit", ":jit", "jit"]


def table() -> bytes:
    """Handles 0 to 3 of the first namespace: plain, inlined, in modules, and fused.

    Two tables, one after the other: the second has what is new since the first.
    """
    texts = ["a.ex", "b.ex", "add", "mul", "helper", "net.Layer", "layer", "net.Model"]
    part = handles.Part(NAMESPACES[0], texts, top=7)
    part.ranges = [
        handles.Range(0, 3, 4, 3, 9),
        handles.Range(1, 8, None, None, None),
        handles.Range(0, 5, 0, 6, 2),
    ]
    part.calls = [handles.Call(4, 0, None, None, None), handles.Call(4, 2, 5, 6, 0)]
    part.records = [
        handles.Record(0, 0, 2, None),
        handles.Record(1, 1, 3, 0),
    ]
    first = handles.write([part])
    part.records = [
        handles.Record(2, 1, 2, 1),
        handles.Record(3, None, 3, None),
    ]
    part.edges = [handles.Edge(1, 0, [0, 1])]
    return first + handles.write([part])


# What a reader makes of them: the calls of the work, outermost first.
_LABEL = "name 4 (jit)"
PATHS: list[list[Place]] = [
    [(f"{_LABEL} in top(Model).add", "a.ex", 3)],
    [
        ("net.Model", "a.ex", 3),
        (f"{_LABEL} in top(Model).<unknown>(<unknown>)::helper.mul", "b.ex", 8),
    ],
    [
        ("net.Model", "a.ex", 5),
        ("helper", "a.ex", 3),
        (
            f"{_LABEL} in top(Model).layer(Layer)::helper"
            ".<unknown>(<unknown>)::helper.add",
            "b.ex",
            8,
        ),
    ],
    [
        (
            f"{_LABEL} in top(Model), from add at line 3, mul at b.ex:8",
            "a.ex",
            3,
        )
    ],
    [(_LABEL, None, None)],  # of a handle that nobody knows
]


def metadata() -> list[Raw]:
    strings = [Raw(0xE0, [n, text.encode()]) for n, text in enumerate(BACKENDS, 11)]
    data = table()
    parts = [Raw(0xE4, [7, data[i : i + 100]]) for i in range(0, len(data), 100)]
    return [*strings, *parts, Raw(0x2A, [1_000])]


class Under(NamedTuple):
    """Work under way: the innermost of its calls, and which it is."""

    frame: call_stories.Frame
    handle: int
    start: int


class WorkStory(call_stories.Story):
    """The same programs, with work that is told of when it has ended, or later."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.metadata += metadata()
        self.under: dict[int, list[Under]] = {1: [], 2: [], 3: []}
        self.untold: dict[int, list[tuple[int, int, int]]] = {1: [], 2: [], 3: []}

    def step(self, thread: call_stories.Thread) -> None:
        rng = self.rng
        is_working = bool(thread.open) and thread.open[-1].place is not None
        if not self.on:
            super().step(thread)
        elif rng.random() < 0.1 and len(thread.open) < 12:
            self.begin_work(thread)
        elif rng.random() < 0.1:
            self.tell_work(thread)
        elif not is_working:
            super().step(thread)
        elif rng.random() < 0.4 and len(thread.open) < 12:
            self.call(thread)
        else:
            self.end_work(thread)

    def begin_work(self, thread: call_stories.Thread) -> None:
        handle = self.rng.randrange(5)
        for place in PATHS[handle]:
            self.enter(thread, 0, "call", native=True, place=place)
        under = Under(thread.open[-1], handle, self.now)
        self.under[thread.number].append(under)

    def end_work(self, thread: call_stories.Thread) -> None:
        under = self.under[thread.number].pop()
        for _ in PATHS[under.handle]:
            self.close(thread, "return")
        told = (under.handle, under.start, self.now)
        self.untold[thread.number].append(told)
        if self.rng.random() < 0.7:
            self.tell_work(thread)

    def tell_work(self, thread: call_stories.Thread) -> None:
        for handle, start, end in self.untold[thread.number]:
            backend = self.rng.choice([11, 13, 14])
            values = (backend, handle, 4, self.now - end, end - start)
            self.write(thread, 0xC2, *values)
        self.untold[thread.number].clear()

    def settle(self, thread: call_stories.Thread) -> None:
        if not self.on:
            return
        waiting = self.under[thread.number]
        while waiting and waiting[-1].frame is thread.open[-1]:
            self.end_work(thread)
        # The others have calls inside them that are open, and are cut with those.
        for under in waiting:
            told = (under.handle, under.start, self.now)
            self.untold[thread.number].append(told)
        waiting.clear()
        self.tell_work(thread)


def story(rng: random.Random) -> tuple[File, list[tuple[Any, ...]]]:
    """A program with work, and its calls in any order, by ``whence.Call``'s fields."""
    return WorkStory(rng).run(rng.choice([10, 100, 1_000]))


def nonsense(rng: random.Random) -> File:
    """Work, calls and line maps in no sensible order."""
    tables = metadata()
    if rng.random() < 0.2:
        del tables[rng.randrange(len(tables))]
    for _ in range(rng.randint(0, 4)):
        tables.append(Raw(LINE_MAP, [rng.choice([0, 8, 9]), _line_map(rng)]))
    return call_stories.nonsense(rng, tables)


def _line_map(rng: random.Random) -> bytes:
    out = handles.varint(rng.randint(0, 3))
    line = 0
    for _ in range(rng.randint(0, 4)):
        line += rng.randint(0, 3)
        places = rng.randint(0, 2)
        out += handles.varint(line) + handles.varint(places)
        for _ in range(6 * places):
            out += handles.varint(rng.choice([0, 1, 2, 9, 11, 2**31, 2**32]))
    return out[: rng.randint(0, 2 * len(out))]
