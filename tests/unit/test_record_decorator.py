"""``whence.record`` as a decorator of functions that go on after they have returned."""

import asyncio
import inspect
import types

import pytest

import whence

pytestmark = pytest.mark.store


@pytest.fixture
def marks(tmp_path, monkeypatch):
    """Return the marks of each recording, in the order of their names."""
    monkeypatch.chdir(tmp_path)

    def marks():
        found = []
        for path in sorted(tmp_path.glob("*.whence"), key=lambda p: len(p.name)):
            with whence.open(path) as recording:
                found.append([r.fields["name"] for r in recording if r.kind == "mark"])
        return found

    return marks


def test_a_coroutine_is_recorded_until_its_result(marks):
    @whence.record(calls=False)
    async def work(depth):
        whence.mark(f"{depth} begins")
        await asyncio.sleep(0)
        if depth:
            await work(depth - 1)
        whence.mark(f"{depth} ends")
        return depth

    assert inspect.iscoroutinefunction(work)
    waiting = work(0)
    whence.mark("not yet")
    assert asyncio.run(waiting) == 0
    whence.mark("between")
    assert asyncio.run(work(1)) == 1
    one = ["0 begins", "0 ends"]
    assert marks() == [one, ["1 begins", *one, "1 ends"]]


def test_a_coroutine_that_fails_or_is_cancelled(marks):
    @whence.record(calls=False)
    async def work(fails):
        whence.mark("begins")
        if fails:
            raise KeyError
        await asyncio.sleep(60)

    with pytest.raises(KeyError):
        asyncio.run(work(fails=True))
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(work(fails=False), 0.01))
    assert marks() == [["begins"], ["begins"]]


def test_a_generator_is_recorded_from_its_first_item_to_its_end(marks):
    @whence.record(calls=False)
    def count():
        whence.mark("begins")
        try:
            got = yield 1
            whence.mark(f"got {got}")
            yield 2
        finally:
            whence.mark("ends")
        return 3

    items = count()
    whence.mark("not yet")
    assert next(items) == 1
    whence.mark("between its items")
    assert items.send("it") == 2
    items.close()
    whence.mark("after it")
    assert list(count()) == [1, 2]
    first = ["begins", "between its items", "got it", "ends"]
    assert marks() == [first, ["begins", "got None", "ends"]]


def test_an_async_generator_gets_what_it_is_sent_and_is_closed(marks):
    @whence.record(calls=False)
    async def count():
        try:
            got = yield 1
            whence.mark(f"got {got}")
            try:
                yield 2
            except KeyError:
                whence.mark("caught")
                yield 3
        finally:
            await asyncio.sleep(0)
            whence.mark("ends")

    async def use():
        items = count()
        assert await items.asend(None) == 1
        assert await items.asend("it") == 2
        assert await items.athrow(KeyError()) == 3
        await items.aclose()
        whence.mark("after it")
        assert [item async for item in count()] == [1, 2]

    assert inspect.isasyncgenfunction(count)
    asyncio.run(use())
    assert marks() == [["got it", "caught", "ends"], ["got None", "ends"]]


def test_a_generator_that_can_be_awaited_still_can(marks):
    @whence.record(calls=False)
    @types.coroutine
    def work():
        whence.mark("begins")
        yield
        return "done"

    async def use():
        return await work()

    assert asyncio.run(use()) == "done"
    assert marks() == [["begins"]]
