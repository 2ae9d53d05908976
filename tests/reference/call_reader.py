"""The slow twin of the reader of calls: FORMAT.md, "Calls", with everything at hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reference.recording import Raw
    from reference.work import Work

CALL, OPEN, C_CALL, FOLDED, FRAMES, OWNER = 0x40, 0x47, 0x46, 0x84, 0x48, 0x65
GENERATOR = {0x67: "call", 0x68: "resume", 0x69: "throw", 0x6A: "open"}
LEFT = {0x20: "return", 0x21: "unwind", 0x22: "yield", 0x25: "gone", 0x26: "unstarted"}
C_LEFT = {0x23: "return", 0x24: "unwind"}
SEEN = {0x6B: "raised", 0x6C: "handled"}
CALLS_OFF, THREAD_END, THREAD_FRAMES, STACK, THREAD = 0x28, 0x64, 0x6E, 0x82, 0xA0
NATIVE_STACK, PYTHON_RUN = 0x87, 0x74
FRAME_GENERATOR, THREAD_GENERATOR = 0x70, 0x85
TASKS = {0xC3, 0xC4}
LONGEST = 2**63 - 1


def first_at(at: Callable[[int], int], time: int) -> int:
    """Return the first ticks that are not before this time."""
    first, beyond = 0, 2**64 - 1
    while first < beyond:
        middle = (first + beyond) // 2
        first, beyond = (middle + 1, beyond) if at(middle) < time else (first, middle)
    return first


@dataclass
class Frame:
    """A call that is open, of a Python function or of one written in C; or work."""

    start: int
    what: Any  # a code, a name, or a place
    number: int
    entered: str
    native: bool = False
    work: bool = False
    generator: int | None = None
    instance: int = 0
    task: int = 0
    inside: int = 0


@dataclass
class Thread:
    id: int
    open: list[Frame] = field(default_factory=list)
    now: int = 0
    numbers: int = 0
    begun: bool = False
    over: bool = False
    # what metadata say: (time, 0 for an end of recording calls, else 1, stack; or a
    # generator, with a level)
    facts: list[tuple[int, int, int, int]] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)  # that has not begun
    # when it ends, how many calls are open around it, and the innermost of its own
    working: list[tuple[int, int, Frame]] = field(default_factory=list)

    @property
    def frames(self) -> list[Frame]:
        return [frame for frame in self.open if not frame.native]


@dataclass
class Slice:
    """What part is asked for: [start, end), and these threads; None for all."""

    start: int = -(2**63)
    end: int = 2**63 - 1
    threads: list[int] | None = None


@dataclass
class Generator:
    """All that ran under one number: when each instance was last seen."""

    seen: list[tuple[int, int]] = field(default_factory=list)


class Calls:
    """Feed it the metadata, then every event, then ``finish()``."""

    def __init__(
        self,
        metadata: Iterable[Raw],
        end: int | None,
        at: Callable[[int], int],  # nanoseconds
        lasted: Callable[[int, int], int],
        slice_: Slice | None = None,
        work: dict[int, list[Work]] | None = None,  # by thread
    ) -> None:
        metadata = list(metadata)
        self.work = work or {}
        self.end = end
        self.at = at
        self.lasted = lasted
        self.slice = slice_ or Slice()
        self.calls: list[dict[str, Any]] = []
        self.exceptions: list[dict[str, Any]] = []
        self.unmatched = 0
        self.instances = 0
        self.threads: dict[int, Thread] = {}
        self.generators: dict[int, Generator] = {}
        self.stacks = {}  # parent and code; native frames, and runs, are of no code
        for record in metadata:
            if record.code in (STACK, NATIVE_STACK, PYTHON_RUN):
                code = record.values[2] if record.code == STACK else 0
                self.stacks[record.values[0]] = record.values[1], code
        self.offs = sorted(r.values[0] for r in metadata if r.code == CALLS_OFF)
        tasks = [r.values for r in metadata if r.code in TASKS]
        # of each: time, generator, task
        self.runs = [(v[0], v[5], number) for number, v in enumerate(tasks, 1)]
        self.thread_ends: dict[int, int | None] = {}
        self.frames: list[tuple[int, int, int, int]] = []
        for raw in metadata:
            if raw.code == THREAD_FRAMES:
                time, number, stack = raw.values
                self.frames.append((number & 0xFFFFFFFF, time, stack, 0))
            elif raw.code == THREAD_GENERATOR and raw.values[2]:
                time, number, level, generator = raw.values
                self.frames.append((number & 0xFFFFFFFF, time, generator, level))
            elif raw.code == THREAD:
                self.thread_ends.setdefault(raw.values[1], None)
            elif raw.code == THREAD_END and raw.values[1] in self.thread_ends:
                self.thread_ends[raw.values[1]] = raw.values[0]
        for number, *_ in self.frames:
            if self.slice.threads is None or number in self.slice.threads:
                self.thread(number)

    def thread(self, number: int) -> Thread:
        if number not in self.threads:
            thread = Thread(number)
            thread.facts = [(time, 0, 0, 0) for time in self.offs]
            thread.facts += [(t, 1, s, k) for n, t, s, k in self.frames if n == number]
            thread.facts.sort(key=lambda fact: fact[:2])
            thread.work = list(self.work.get(number, []))
            self.threads[number] = thread
        return self.threads[number]

    # Slices

    def cross(self, thread: Thread, time: int, exit_at: int | None = None) -> None:
        """Begin or end the slice before what happens at this time."""
        if not thread.begun and self.at(time) >= self.slice.start:
            self.advance_before(thread, self.slice.start, exit_at)
            thread.begun = True
            for frame in thread.open:
                frame.start = max(frame.start, self.slice.start)
                frame.inside = 0
        if not thread.over and self.at(time) >= self.slice.end:
            self.advance_before(thread, self.slice.end, exit_at)
            thread.now = max(thread.now, self.first_at(self.slice.end))
            self.close(thread, 0, "cut")
            thread.over = True

    def advance_before(self, thread: Thread, time: int, exit_at: int | None) -> None:
        edge = self.first_at(time)
        if edge:
            self.advance(thread, edge - 1, exit_at)

    def first_at(self, time: int) -> int:
        return first_at(self.at, time)

    # Facts

    def advance(self, thread: Thread, until: int, exit_at: int | None = None) -> None:
        """Do what metadata and work say before an event at this time.

        ``exit_at`` is when the next call ends, if that is the event.
        """
        while self.advance_by_one(thread, until, exit_at):
            pass

    def advance_by_one(self, thread: Thread, until: int, exit_at: int | None) -> bool:
        frames = next((fact for fact in thread.facts if fact[1]), None)
        if frames and frames[0] > until:
            frames = None
        # an end that comes before frames which count already counts too
        off = next((fact for fact in thread.facts if not fact[1]), None)
        if off and not (off[0] <= frames[0] if frames else off[0] < until):
            off = None
        due = [fact[0] for fact in (off, frames) if fact]
        if self.advance_work(thread, min([until, *due]), exit_at):
            return True
        fact = off or frames
        if fact is None:
            return False
        thread.facts.remove(fact)
        time, kind, stack, level = fact
        thread.now = max(thread.now, time)
        if level:
            self.name_generator(thread, level, stack)
        elif kind:
            self.reconcile(thread, stack)
        else:
            self.close(thread, 0, "cut")
        return True

    def advance_work(self, thread: Thread, until: int, exit_at: int | None) -> bool:
        """End work, or begin it, unless calls would not nest then."""
        working = thread.working
        while working and not any(working[-1][2] is frame for frame in thread.open):
            working.pop()
        work = thread.work[0] if thread.work else None
        if working and working[-1][0] <= until and working[-1][2] is thread.open[-1]:
            end, around, _ = working[-1]
            if not work or not (work.start < end >= work.end):  # that is inside
                working.pop()
                thread.now = max(thread.now, end)
                self.close(thread, around, "return")
                return True
        if work is None:
            return False
        if work.start > until or (working and working[-1][0] < work.end):
            return False
        if exit_at is not None and work.end > exit_at:
            return False
        del thread.work[0]
        thread.now = max(thread.now, work.start)
        around = len(thread.open)
        for place in work.path:
            self.enter(thread, place, "call", native=True, work=True)
        working.append((work.end, around, thread.open[-1]))
        return True

    def path(self, stack: int) -> list[int] | None:
        """Give the codes of a stack, outermost first; None if there is no such."""
        if stack and stack not in self.stacks:
            return None
        codes: list[int] = []
        seen = set()
        while stack in self.stacks and stack:
            if stack in seen:
                return None
            seen.add(stack)
            parent, code = self.stacks[stack]
            codes.insert(0, code)
            stack = parent
        return codes

    def reconcile(self, thread: Thread, stack: int) -> None:
        codes = self.path(stack)
        if codes is None:
            return
        frames = thread.frames
        if [frame.what for frame in frames] == codes:
            return
        common = 0
        while (
            common < min(len(frames), len(codes))
            and frames[common].what == codes[common]
        ):
            common += 1
        keep = thread.open.index(frames[common - 1]) + 1 if common else 0
        self.close(thread, keep, "gone")
        for code in codes[common:]:
            self.enter(thread, code, "open")

    # Calls

    def enter(self, thread: Thread, what: Any, entered: str, **more: Any) -> None:
        thread.numbers += 1
        start = self.at(thread.now)
        frame = Frame(start, what, thread.numbers, entered, **more)
        if not frame.task and thread.open:
            frame.task = thread.open[-1].task
        thread.open.append(frame)

    def close(self, thread: Thread, keep: int, left: str) -> None:
        while len(thread.open) > keep:
            self.leave(thread, left)

    def leave(self, thread: Thread, left: str) -> None:
        frame = thread.open.pop()
        if frame.generator is not None:
            seen = self.generators[frame.generator].seen
            if seen[-1][0] == frame.instance:
                seen[-1] = (frame.instance, max(seen[-1][1], thread.now))
        now = min(self.at(thread.now), self.slice.end)
        duration = min(max(now - frame.start, 0), LONGEST)
        own = max(duration - frame.inside, 0)
        self.tell(thread, frame, left=left, own=own, duration=duration, count=1)
        if thread.open:
            thread.open[-1].inside += duration

    def tell(self, thread: Thread, frame: Frame, **more: Any) -> None:
        around = thread.open[-1] if thread.open else None
        if not thread.begun:
            return
        self.calls.append(
            {
                "thread": thread.id,
                "code": None if frame.native else frame.what,
                "name": frame.what if frame.native and not frame.work else None,
                "place": frame.what if frame.work else None,
                "start": frame.start,
                "depth": len(thread.open),
                "entered": frame.entered,
                "generator": frame.instance,
                "task": frame.task,
                "number": frame.number,
                "parent": around.number if around else 0,
                **more,
            }
        )

    def fold(self, thread: Thread, code: int, calls: int, duration: int) -> None:
        if calls == 0:
            return
        around = thread.open[-1] if thread.open else None
        now, duration = self.at(thread.now), self.lasted(thread.now, duration)
        duration = min(duration, max(now - self.slice.start, 0))
        if around:
            so_far = min(max(now - around.start, 0), LONGEST)
            duration = min(duration, max(so_far - around.inside, 0))
        thread.numbers += 1
        frame = Frame(now - duration, code, thread.numbers, "call")
        if around:
            frame.task = around.task
            around.inside += duration
        more = {"own": duration, "duration": duration, "count": calls}
        self.tell(thread, frame, left="return", **more)

    # Generators

    def enter_generator(
        self, thread: Thread, code: int, generator: int, entered: str, *, begins: bool
    ) -> None:
        instance, task = self.activation(generator, thread.now, begins=begins)
        more = {"generator": generator, "instance": instance, "task": task}
        self.enter(thread, code, entered, **more)

    def activation(self, generator: int, now: int, *, begins: bool) -> tuple[int, int]:
        seen = self.generators.setdefault(generator, Generator()).seen
        if begins or not seen:
            self.instances += 1
            seen.append((self.instances, now))
        seen[-1] = (seen[-1][0], max(seen[-1][1], now))
        runs = [run for run in self.runs if run[1] == generator and run[0] <= now]
        runs.sort(key=lambda run: run[0])
        # Another thread's, which was read before, may have happened later.
        if runs and len(seen) > 1 and runs[-1][0] <= seen[-2][1] <= now:
            runs = []
        return seen[-1][0], runs[-1][2] if runs else 0

    def name_generator(self, thread: Thread, level: int, generator: int) -> None:
        frames = thread.frames
        if not 0 < level <= len(frames) or frames[level - 1].instance:
            return
        frame = frames[level - 1]
        instance, task = self.activation(generator, thread.now, begins=False)
        frame.generator, frame.instance = generator, instance
        if task:
            for inner in thread.open[thread.open.index(frame) :]:
                inner.task = task

    # Events

    def take(self, raw: Raw, number: int, time: int) -> None:
        if raw.code == OWNER:
            return
        if self.slice.threads is not None and number not in self.slice.threads:
            return
        thread = self.thread(number)
        time = max(time, thread.now)
        exit_at = time if raw.code in LEFT or raw.code in C_LEFT else None
        self.cross(thread, time, exit_at)
        if thread.over:
            return
        self.advance(thread, time, exit_at)
        thread.now = time
        self.do(thread, raw)

    def do(self, thread: Thread, raw: Raw) -> None:
        values = raw.values
        if raw.code in {CALL, OPEN}:
            self.enter(thread, values[1], "call" if raw.code == CALL else "open")
        elif raw.code == C_CALL:
            self.enter(thread, values[1], "call", native=True)
        elif raw.code in GENERATOR:
            entered, begins = GENERATOR[raw.code], raw.code == 0x67
            self.enter_generator(thread, values[1], values[2], entered, begins=begins)
        elif raw.code in LEFT:
            self.end_inside(thread)
            self.leave_or_count(thread, LEFT[raw.code], native=False)
        elif raw.code in C_LEFT:
            self.end_work_inside(thread)
            self.leave_or_count(thread, C_LEFT[raw.code], native=True)
        elif raw.code == FOLDED:
            self.fold(thread, *values[1:])
        elif raw.code == FRAMES:
            self.reconcile(thread, values[1])
        elif raw.code == FRAME_GENERATOR:
            self.name_generator(thread, *values[1:])
        elif raw.code in SEEN:
            self.see(thread, SEEN[raw.code], *values[1:])

    def end_inside(self, thread: Thread) -> None:
        """End what is no frame and innermost."""
        while thread.open and thread.open[-1].native:
            while thread.open and thread.open[-1].native:
                self.leave(thread, "gone")
            self.advance(thread, thread.now, thread.now)

    def end_work_inside(self, thread: Thread) -> None:
        """End work that is innermost in a function written in C."""
        while self.is_work_in_c(thread):
            while thread.open[-1].work:
                self.leave(thread, "gone")
            self.advance(thread, thread.now, thread.now)

    def is_work_in_c(self, thread: Thread) -> bool:
        """Is work innermost, in a function written in C?"""
        others = [frame for frame in thread.open if not frame.work]
        return bool(others) and others[-1].native and thread.open[-1].work

    def leave_or_count(self, thread: Thread, left: str, *, native: bool) -> None:
        top = thread.open[-1] if thread.open else None
        if top and top.native == native and not top.work:
            self.leave(thread, left)
        else:
            self.unmatched += 1

    def see(self, thread: Thread, kind: str, type_: int, offset: int) -> None:
        code = thread.frames[-1].what if thread.frames else 0
        event = {"type": type_, "kind": kind, "time": thread.now, "thread": thread.id}
        if thread.begun:
            self.exceptions.append({**event, "code": code, "offset": offset})

    def finish(self) -> None:
        for number in sorted(self.threads):
            thread = self.threads[number]
            last = max((t for t, kind, *_ in thread.facts if kind), default=None)
            if last is not None:
                self.cross(thread, last)
                if not thread.over:
                    self.advance(thread, last)
            ends = [time for time, *_ in thread.facts]
            thread_end = self.thread_ends.get(number)
            ends += [] if thread_end is None else [thread_end]
            end = min(ends) if ends else self.end
            if thread.open or thread.work:
                last = thread.now if end is None else max(thread.now, end)
                self.cross(thread, last)
                if not thread.over:
                    self.advance(thread, last)
                    thread.now = last
            self.close(thread, 0, "cut")
