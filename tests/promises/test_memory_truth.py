"""A million steps: what is in use after each is what an independent model says."""

import bisect
import ctypes
import random
import struct
import threading

import whence
from reference import memory as twin
from whence._memory_names import DOMAINS
from whence._recording import parts_of

NEVER = 2**63 - 1


class Arena:
    """Blocks that four threads take, move and give back, one step at a time."""

    def __init__(self, seed, steps):
        self.rng = random.Random(f"{seed}:arena")
        self.left = steps
        self.lock = threading.Lock()
        self.all_began = threading.Barrier(4)
        self.blocks = []
        self.model = [0]  # bytes in use after each step
        self.log = []  # (what, address, size)

    def run(self, library):
        threads = [threading.Thread(target=self.work, args=[library]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def work(self, library):
        self.next_step(library)
        self.all_began.wait()  # or one of them may be done before another begins
        while self.next_step(library):
            pass

    def next_step(self, library):
        with self.lock:  # each step is one, so that there is an order to compare
            if self.left == 0:
                return False
            self.left -= 1
            self.step(library)
            return True

    def step(self, library):
        rng, blocks, log = self.rng, self.blocks, self.log
        # Odd: the interpreter's own blocks, which share the addresses, hardly ever are.
        size = rng.choice((24, 100, 5_000, 300_000)) + rng.randrange(50) | 1
        now = self.model[-1]
        if not blocks or (len(blocks) < 300 and rng.random() < 0.5):
            block = library.malloc(size)
            log.append(("allocated", block, size))
            blocks.append((block, size))
            now += size
        else:
            at = rng.randrange(len(blocks))
            blocks[at], blocks[-1] = blocks[-1], blocks[at]
            old, old_size = blocks.pop()
            log.append(("freed", old, 0))
            now -= old_size
            if rng.random() < 0.5:
                block = library.realloc(old, size)
                log.append(("moved", block, size))
                blocks.append((block, size))
                now += size
            else:
                library.free(old)
        self.model.append(now)


def library():
    """Ask for the functions anew: of the C library itself, as any program may."""
    library = ctypes.CDLL(None)
    for name in ("malloc", "realloc"):
        getattr(library, name).restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    return library


def events_of(recording):
    """Return what happened to blocks, in its order."""
    events = [
        event
        for record in recording
        if (event := twin.event_of(record.kind, record.thread, *when(record)))
        and event.action in ("allocated", "moved", "freed")
    ]
    return sorted(events, key=lambda event: event.time)


def of_arena(events, arena):
    """Return the events of the arena's blocks, and of no others."""
    taken = {(block, size) for what, block, size in arena.log if what != "freed"}
    live, found = set(), []
    for event in events:
        if event.action == "freed":
            if event.address in live:
                live.discard(event.address)
                found.append(event)
        elif event.domain == "malloc" and (event.address, event.size) in taken:
            live.add(event.address)
            found.append(event)
    return found


def when(record):
    return record.time or 0, record.fields


def test_the_c_librarys_blocks(tmp_path, seed, steps):
    path = tmp_path / "a.whence"
    with whence.record(path, calls=False, gc=False, memory="all"):
        arena = Arena(seed, steps)
        arena.run(library())
    with whence.open(path) as recording:
        assert recording.losses.dropped == {}
        everything = events_of(recording)
        events = of_arena(everything, arena)
        assert [(e.action, e.address, e.size) for e in events] == arena.log
        check_each_step(events, arena.model[1:])
        threads = {event.thread for event in events}
        assert len(threads) == 4
        check_each_block(recording, threads, "malloc", events)
        check_usage(recording.slice(threads=threads).memory, everything, threads)
    for block, _ in arena.blocks:
        library().free(block)


def check_each_step(events, model):
    replay, in_use, found = twin.Replay([]), 0, []
    for event in events:
        replay.apply(event)
        change = replay.memory.changes[-1]
        size = change.block.taken.size
        in_use += -size if change.what == "ended" else size
        if event.action == "moved":
            found.pop()  # it is one step with the free before it
        found.append(in_use)
    assert found == model
    assert replay.memory.counts["contradictions"] == 0


def check_each_block(recording, threads, domain, events):
    """The replay that users get: each block begins and ends with the step that did it.

    So what is in use after each step is what the steps say, without a sum for each.
    """
    counts = recording.memory.counts
    assert counts.contradictions == 0
    live, expected = {}, []
    for event in events:
        if event.action == "freed":
            start, size = live.pop(event.address)
            expected.append((start, event.time, event.address, size))
        else:
            assert event.address not in live
            live[event.address] = event.time, event.size
    expected += [(start, NEVER, place, size) for place, (start, size) in live.items()]
    wanted, found = {(row[2], row[3]) for row in expected}, []
    for thread in threads:  # one by one, since there are many blocks of others
        part = recording.slice(threads=[thread])
        reader, bounds = parts_of(part)[0].reader, tuple(part._bounds)
        rows, left_out, _ = reader.memory_largest(bounds, False, counts.allocated)[0]
        assert left_out == 0
        for *row, number, _, who in struct.iter_unpack("=qqQQQQQ", rows):
            assert who == thread
            if number == DOMAINS.index(domain) and tuple(row[2:]) in wanted:
                found.append(tuple(row))
    assert sorted(found) == sorted(expected)


def check_usage(memory, events, threads):
    """The sums that users get, at the times that they get them for.

    The interpreter takes blocks in these threads, too, and a sanitizer does.
    """
    times, levels, live = [], [0], {}
    for event in events:
        before, size = live.pop(event.address, 0), 0
        if event.domain == "malloc" and event.thread in threads:
            size = live[event.address] = event.size
        times.append(event.time)
        levels.append(levels[-1] + size - before)
    points = memory.usage().points
    assert len(points) > 50
    for point in points:
        # Of several steps at one time it has the one with most, of all domains.
        first = bisect.bisect_left(times, point.time)
        last = bisect.bisect_right(times, point.time)
        level = point.domains["malloc"].bytes if "malloc" in point.domains else 0
        assert level in levels[first : last + 1]


def test_threads_that_python_does_not_know(tmp_path, greedy, seed, steps):
    """Nothing but an exchange settles whose a block is; at the end all agree."""
    path = tmp_path / "a.whence"
    number = random.Random(f"{seed}:shared").getrandbits(32)
    with whence.record(path, calls=False, memory="all"):
        left = greedy.share(number, steps, 500, 4)
    with whence.open(path) as recording:
        assert recording.losses.dropped == {}
        leaks = recording.memory.leaks()
        others = [total for id_, total in leaks.by_thread().items() if id_ != 1]
        assert sum(total.bytes for total in others) == sum(size for _, size in left)
        assert sum(total.count for total in others) == len(left)
        assert recording.memory.counts.contradictions == 0
    for address, _ in left:
        greedy.give(address)


def test_pythons_blocks(tmp_path, seed, steps):
    """Objects whose blocks are known by their address and size."""
    rng, kept, log, model = random.Random(f"{seed}:objects"), [], [], []
    path = tmp_path / "a.whence"
    header, in_use = bytes.__basicsize__, 0
    with whence.record(path, calls=False, gc=False, memory=True):
        for _ in range(steps):
            if not kept or (len(kept) < 300 and rng.random() < 0.5):
                kept.append(bytes(10_000 + rng.randrange(90_000)))
                log.append(("allocated", id(kept[-1]), len(kept[-1]) + header))
                in_use += len(kept[-1]) + header
            else:
                at = rng.randrange(len(kept))
                kept[at], kept[-1] = kept[-1], kept[at]
                log.append(("freed", id(kept[-1]), 0))
                in_use -= len(kept[-1]) + header
                del kept[-1]
            model.append(in_use)
    with whence.open(path) as recording:
        assert recording.losses.dropped == {}
        taken = {(address, size) for what, address, size in log if what != "freed"}
        found, live = [], set()
        for record in recording:
            event = twin.event_of(record.kind, record.thread, *when(record))
            if event is None:
                continue
            if event.action == "freed" and event.address in live:
                live.discard(event.address)
            elif event.domain == "obj" and (event.address, event.size) in taken:
                live.add(event.address)
            else:
                continue
            found.append(event)
        assert [(e.action, e.address, e.size) for e in found] == log
        check_each_step(found, model)
        check_each_block(recording, {e.thread for e in found}, "obj", found)
