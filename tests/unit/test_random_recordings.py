"""Random programs, recorded natively and read by the slow twin of the reader."""

import random
import threading

import pytest

import whence
from reference import recording_reader
from whence import _zstd

pytestmark = pytest.mark.store

NAMES = ["a", "load", "Zoë", "x" * 300, "", "日本", "\udcff"]
VALUES = [0, 1, -1, 63, -64, 64, 2**31, -(2**63), 2**63 - 1, 0.5, -1e300]
TAGS = [None, True, False, 7, -(2**40), 0.25, "text", "é" * 40]


class Program:
    """What a thread will do, and what its recording must therefore hold."""

    def __init__(self, rng, steps):
        self.rng = rng
        self.steps = steps
        self.expected = []
        self.spans = 0

    def run(self):
        self.block(self.steps)

    def block(self, steps):
        rng = self.rng
        while steps > 0:
            what = rng.random()
            name = rng.choice(NAMES)
            if what < 0.4:
                value = rng.choice(VALUES)
                whence.counter(name, value)
                self.expected.append(("counter", {"name": name, "value": value}))
            elif what < 0.6:
                whence.mark(name)
                self.expected.append(("mark", {"name": name}))
            else:
                inner = rng.randrange(steps)
                self.span(name, inner)
                steps -= inner
            steps -= 1

    def span(self, name, steps):
        rng = self.rng
        tags = {f"t{n}": rng.choice(TAGS) for n in range(rng.choice([0, 0, 1, 3]))}
        error = rng.random() < 0.2
        self.spans += 1
        number = self.spans
        try:
            with whence.span(name, **tags):
                self.expected.append(("span_begin", {"span": number, "name": name}))
                if tags:
                    self.expected.append(("span_tags", {"span": number, "tags": tags}))
                self.block(steps)
                if error:
                    raise LookupError
        except LookupError:
            pass
        kind = "span_error" if error else "span_end"
        self.expected.append((kind, {"span": number, "name": name}))


def without_repeats(records):
    """Leave out what a recording may say twice or is not an event."""
    told = set()
    for kind, fields in records:
        if kind == "span_tags":
            if fields["span"] in told:
                continue  # said again because its chunk is another one
            told.add(fields["span"])
        if kind not in ("owner", "lost"):
            yield kind, fields


def check(path, programs, names):
    data = path.read_bytes()
    found = recording_reader.read(data, _zstd.unpack)
    assert (found.problems, found.damaged_chunks, found.dropped) == (0, 0, {})
    thread_names = {thread[0]: thread[2] for thread in found.threads}
    events, last, starts = {}, {}, {}
    for kind, thread, time, fields in found.records:
        if not thread:
            continue
        assert time >= last.get(thread, 0)
        last[thread] = time
        fields = dict(fields)  # noqa: PLW2901
        duration = fields.pop("duration", None)
        if kind == "span_begin":
            starts[thread, fields["span"]] = time
        elif duration is not None:
            start = starts[thread, fields["span"]]
            assert abs(time - start - duration) <= 2  # rounded three times
        events.setdefault(thread_names[thread], []).append((kind, fields))
    for program, name in zip(programs, names, strict=True):
        got = list(without_repeats(events.get(name, [])))
        assert list(map(repr, got)) == list(map(repr, program.expected))


@pytest.mark.parametrize("number", range(60))
def test_random_programs_are_recorded_as_they_ran(tmp_path, seed, number):
    rng = random.Random(f"{seed}:recorded:{number}")
    path = tmp_path / "random.whence"
    count = rng.randrange(1, 5)
    programs = [
        Program(random.Random(rng.random()), rng.choice([5, 200, 1000]))
        for _ in range(count)
    ]
    names = [f"thread {n}" for n in range(count)]
    threads = [
        threading.Thread(target=program.run, name=name)
        for program, name in zip(programs, names, strict=True)
    ]
    options = {"chunk_size": rng.choice([4096, 8192, 262144]), "gc": False}
    with whence.record(path, pack=rng.random() < 0.5, **options, calls=False):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    check(path, programs, names)
