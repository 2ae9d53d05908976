"""What threads say about all that they do: whence.memory.tag."""

import asyncio
import random
import threading

import pytest

import whence
from harness.recorded import recorded
from whence import memory

POOL = memory.domain("tagged")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.whence"


class Marks:
    """Events with addresses of their own, and the tags that they must have."""

    def __init__(self):
        self.expected = []

    def mark(self, **tags):
        POOL.allocated(len(self.expected) * 16, 16)
        self.expected.append(tags)

    def check(self, path):
        with whence.open(path) as recording:
            for number, tags in enumerate(self.expected):
                (event,) = recording.memory.history(16 * number, pool="tagged")
                assert event.tags == tags, number


def test_tags_nest_add_and_replace(path):
    marks = Marks()
    with recorded(path):
        marks.mark()
        with memory.tag(step=1, name="a"):
            marks.mark(step=1, name="a")
            with memory.tag(step=2, deep=True):
                marks.mark(step=2, name="a", deep=True)
            marks.mark(step=1, name="a")
            with memory.tag():
                marks.mark(step=1, name="a")
        marks.mark()
    marks.check(path)


def test_tags_go_with_an_exception(path):
    marks = Marks()

    def fail():
        with memory.tag(inner=1):
            marks.mark(outer=1, inner=1)
            raise LookupError

    with recorded(path):
        with memory.tag(outer=1):
            with pytest.raises(LookupError):
                fail()
            marks.mark(outer=1)
        marks.mark()
    marks.check(path)


def test_tags_from_before_the_recording_count_from_the_first_event(path):
    marks = Marks()

    def late():
        with memory.tag(thread="late"):
            ready.set()
            started.wait()
            marks.mark(thread="late")

    ready, started = threading.Event(), threading.Event()
    thread = threading.Thread(target=late)
    thread.start()
    ready.wait()
    with memory.tag(main=1):
        for _ in range(2):
            marks.expected.clear()
            with recorded(path):
                marks.mark(main=1)
                if not started.is_set():
                    started.set()
                    thread.join()
            marks.check(path)


def test_tags_that_ended_before_the_recording_are_gone(path):
    marks = Marks()
    with memory.tag(main=1):
        pass
    with recorded(path):
        marks.mark()
    marks.check(path)


def test_ends_that_come_in_the_wrong_order(path):
    marks = Marks()
    first, second = memory.tag(a=1), memory.tag(b=2)
    with recorded(path):
        first.__enter__()
        second.__enter__()
        first.__exit__()
        marks.mark(b=2)
        first.__exit__()  # which is not set
        marks.mark(b=2)
        second.__exit__()
        marks.mark()
    marks.check(path)


def test_one_tag_may_be_set_twice_and_by_several_threads(path):
    marks = Marks()
    once = memory.tag(depth=1)
    with recorded(path), once:
        with once:
            thread = threading.Thread(target=marks.mark)
            thread.start()
            thread.join()
            marks.mark(depth=1)
        marks.mark(depth=1)
    marks.check(path)


def test_as_a_decorator(path):
    marks = Marks()

    @memory.tag(level=0)
    def recursive(depth):
        """Said."""
        marks.mark(level=0)
        return recursive(depth - 1) if depth else "done"

    with recorded(path):
        assert recursive(3) == "done"
        marks.mark()
    assert recursive.__doc__ == "Said."
    marks.check(path)


def test_functions_that_go_on_after_they_return_are_refused():
    async def coroutine():
        pass

    def generator():
        yield

    async def both():
        yield

    for function in (coroutine, generator, both):
        with pytest.raises(TypeError, match="tags are of a thread, and others run"):
            memory.tag(a=1)(function)


def test_in_an_event_loop_they_are_of_the_thread(path):
    """As the documentation says."""
    marks = Marks()

    async def tagged():
        with memory.tag(who="tagged"):
            await asyncio.sleep(0)
            marks.mark(who="tagged")

    async def other():
        marks.mark(who="tagged")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        marks.mark()

    async def both():
        await asyncio.gather(tagged(), other())

    with recorded(path):
        asyncio.run(both())
    marks.check(path)


ODD = {
    "\ud800 lone": "\udcff",
    'quo"te\\': "\x00\n",
    "largest": 2**63 - 1,
    "smallest": -(2**63),
    "real": 0.1,
    "endless": float("inf"),
    "no": False,
    "snake": "\N{SNAKE}",
    "empty": "",
}


def test_values_of_all_kinds_come_back(path):
    marks = Marks()
    with recorded(path), memory.tag(**ODD):
        marks.mark(**ODD)
    marks.check(path)
    with whence.open(path) as recording:
        leaks = recording.memory.leaks()
        assert leaks.tagged(**ODD).by_domain()["tagged"] == (16, 1)
        assert leaks.tagged(real=0.2) == []
        (event,) = recording.memory.history(0, pool="tagged")
        assert type(event.tags["no"]) is bool


def test_long_texts_are_cut():
    assert repr(memory.tag(a="x" * 300)) == f"whence.memory.tag(a={'x' * 256!r})"


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([1], TypeError, "a tag is a text, a number or a bool, and bad is a list"),
        (None, TypeError, "a tag is a text, a number or a bool, and bad is a NoneType"),
        (b"x", TypeError, "a tag is a text, a number or a bool, and bad is a bytes"),
        (2**63, ValueError, "a tag has up to 64 bits, and bad has more"),
    ],
)
def test_values_that_are_none(value, error, message):
    with pytest.raises(error, match=message):
        memory.tag(good=1, bad=value)


def test_every_chunk_says_what_is_set(path, rng):
    """Tags change thousands of times, at every place of small chunks, in a ring."""

    def work(number):
        mine = random.Random(number)
        address = number << 40
        for _ in range(3_000):
            step = mine.randrange(1, 6)
            with memory.tag(step=step, who=number):
                for _ in range(mine.randrange(4)):
                    POOL.allocated(address := address + 4096, step)
            for _ in range(mine.randrange(4)):
                POOL.allocated(address := address + 4096, 1_000)

    with recorded(path, chunk_size=4096, max_size="1MB", pack=rng.random() < 0.5):
        threads = [threading.Thread(target=work, args=[n]) for n in (1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with whence.open(path) as recording:
        assert recording.losses.dropped["ring"]
        (rest, *_) = (
            [row for row in recording.memory.leaks()._rows if row[1] >= 1 << 63],
        )
        names = recording.memory._names
        seen = set()
        for _, _, thread, tags, size, count in rest:
            said = names.tags(tags)
            assert size == count * said.get("step", 1_000)
            seen.add((thread, said.get("who")))
        workers = {who for _, who in seen} - {None}
        assert workers
        assert len({thread for thread, who in seen if who}) == len(workers)


def test_a_chunk_that_another_thread_goes_on_with_has_none_of_its_tags(path):
    marks = Marks()

    def tagged():
        memory.tag(gone=1).__enter__()  # and the thread ends
        marks.mark(gone=1)

    with recorded(path):
        for target in (tagged, marks.mark, tagged, marks.mark):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
    marks.check(path)


def test_tags_cost_no_names_while_nothing_is_recorded():
    def names():
        return whence.statistics().codes_bytes

    before = names()
    for number in range(50_000):
        with memory.tag(request=f"{number:050}"):
            pass
    assert names() == before
