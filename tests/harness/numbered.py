"""Numbered records: who wrote how many, and what a recording has of them.

Writer i writes the counter "w<i>" with the values 1, 2, 3... and after each one puts
the value into a page that others share. So whoever looks at the page knows what must be
in the recording, whatever happened to the writer since.
"""

import mmap
import os
import struct
import threading

import whence

WRITERS = 8


class Page:
    """Counts that outlive the process that wrote them."""

    def __init__(self, path, *, create=False):
        if create:
            path.write_bytes(bytes(mmap.PAGESIZE))
        self._file = os.open(path, os.O_RDWR)
        self.memory = mmap.mmap(self._file, mmap.PAGESIZE)
        self.counts = memoryview(self.memory).cast("Q")

    def published(self, writers=WRITERS):
        return list(struct.unpack_from(f"{writers}Q", self.memory))

    def close(self):
        self.counts.release()
        self.memory.close()
        os.close(self._file)


def write_in_python(page, writers, stop, pause=0):
    """Start threads that write under the GIL, for these numbers."""

    def work(number):
        name, counts, counter = f"w{number}", page.counts, whence.counter
        value = 0
        while not stop.is_set():
            value += 1
            counter(name, value)
            counts[number] = value
            for _ in range(pause):
                pass

    threads = [threading.Thread(target=work, args=[number]) for number in writers]
    for thread in threads:
        thread.daemon = True
        thread.start()
    return threads


def found(recording):
    """Return the values of each counter in the order of the recording."""
    values = {}
    for counter in recording.counters:
        values.setdefault(counter.name, []).append(counter.value)
    return values


def check(path, published, *, ring=False):
    """Everything published is there, in order, with its name, and nothing else."""
    with whence.open(path) as recording:
        values, losses = found(recording), recording.losses
        assert losses.produced == losses.recorded + sum(losses.dropped.values())
        assert losses.recorded == sum(map(len, values.values()))
        assert set(losses.dropped) <= ({"ring"} if ring else set())
    names = {f"w{number}" for number in range(len(published))}
    assert set(values) <= names
    newest = 0
    for number, least in enumerate(published):
        have = values.get(f"w{number}", [])
        if not have:
            assert ring or least == 0, f"w{number}: nothing of {least}"
            continue
        assert have == list(range(have[0], have[-1] + 1)), f"w{number} has a gap"
        assert least <= have[-1] <= least + 1, f"w{number}: {have[-1]} for {least}"
        assert ring or have[0] == 1
        newest += have[-1]
    # Of writers that the ring has nothing of, the last may or may not have counted.
    silent = sum(least for n, least in enumerate(published) if not values.get(f"w{n}"))
    assert newest + silent <= losses.produced <= newest + silent + len(published)
    return losses
