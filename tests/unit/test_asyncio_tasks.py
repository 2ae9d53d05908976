"""Tasks of asyncio: every call has its task, with its name, parent and awaiters."""

import asyncio
import contextlib
import itertools
import sys
import threading

import pytest

import whence
from harness import traced

EAGER = sys.version_info >= (3, 12)


def python_task(loop, coroutine, **options):
    """A factory of tasks that are written in Python."""
    return asyncio.tasks._PyTask(coroutine, loop=loop, **options)


FACTORIES = {"c": None, "python": python_task}
if EAGER:
    FACTORIES["eager"] = asyncio.eager_task_factory


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.whence"


@pytest.fixture(params=FACTORIES)
def run(request, monkeypatch):
    """Run a coroutine function with tasks of each kind."""
    if request.param == "python" and sys.version_info >= (3, 14):
        # From there, what is written in C does not know of those written in Python.
        current_task = asyncio.tasks._py_current_task
        monkeypatch.setattr(asyncio.tasks, "current_task", current_task)
        monkeypatch.setattr(asyncio, "current_task", current_task)

    def run_with(main):
        async def outermost():
            asyncio.get_running_loop().set_task_factory(FACTORIES[request.param])
            # The first task was made without the factory: what counts is below it.
            await asyncio.get_running_loop().create_task(main(), name="main")

        return lambda: asyncio.run(outermost())

    run_with.kind = request.param
    return run_with


def leaf():
    pass


async def pause(times=1):
    for _ in range(times):
        await asyncio.sleep(0)


async def work(times=2):
    leaf()
    await pause(times)
    leaf()


def by_name(found):
    return {task.name: task for task in found.tasks}


def names_of(found, function):
    """Return the name of the task of each call of a function."""
    names = {task.id: task.name for task in found.tasks}
    return [names.get(call.task) for call in found.of(function)]


def test_every_call_has_its_task_with_its_name_and_parent(path, run):
    async def main():
        leaf()
        tasks = [asyncio.create_task(work(), name=f"child {n}") for n in range(3)]
        for task in tasks:
            await task
        leaf()

    found = traced.record(path, run(main))
    tasks = by_name(found)
    assert {"main", "child 0", "child 1", "child 2"} <= set(tasks)
    names = names_of(found, "leaf")
    assert {name: names.count(name) for name in names} == {
        "main": 2,
        "child 0": 2,
        "child 1": 2,
        "child 2": 2,
    }
    for number in range(3):
        child = tasks[f"child {number}"]
        assert child.parent == tasks["main"].id
        assert traced.last(child.function) == "work"
        assert child.start >= tasks["main"].start
        mine = [c for c in found.calls if c.task == child.id]
        assert {traced.last(c.function) for c in mine} >= {"work", "leaf", "pause"}


def test_a_task_says_who_awaits_it(path, run):
    async def main():
        first = asyncio.create_task(work(5), name="first")
        await pause()

        async def second():
            await first

        await asyncio.create_task(second(), name="second")

    tasks = by_name(traced.record(path, run(main)))
    assert tasks["first"].awaited_by == (tasks["second"].id,)
    assert tasks["second"].awaits == (tasks["first"].id,)
    assert tasks["second"].awaited_by == (tasks["main"].id,)


def test_gather(path, run):
    async def main():
        one, two = (asyncio.create_task(work(), name=name) for name in ("one", "two"))
        await asyncio.gather(one, two, work())

    found = traced.record(path, run(main))
    tasks = by_name(found)
    main = tasks["main"]
    assert tasks["one"].awaited_by == tasks["two"].awaited_by == (main.id,)
    assert {tasks["one"].id, tasks["two"].id} <= set(main.awaits)
    assert len([t for t in found.tasks if t.parent == main.id]) == 3
    assert None not in names_of(found, "leaf")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there is no TaskGroup")
def test_task_groups(path, run):
    async def main():
        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(work(), name=f"member {number}")

    found = traced.record(path, run(main))
    tasks = by_name(found)
    for number in range(3):
        assert tasks[f"member {number}"].parent == tasks["main"].id
    assert set(names_of(found, "leaf")) == {f"member {n}" for n in range(3)}


def test_tasks_of_tasks(path, run):
    async def nested(depth):
        leaf()
        if depth:
            await asyncio.create_task(nested(depth - 1), name=f"depth {depth - 1}")
        leaf()

    found = traced.record(path, run(lambda: nested(4)))
    tasks = by_name(found)
    parents = ["main", "depth 3", "depth 2", "depth 1", "depth 0"]
    for parent, child in itertools.pairwise(parents):
        assert tasks[child].parent == tasks[parent].id
    assert sorted(names_of(found, "leaf")) == sorted(parents * 2)


def test_tasks_that_are_cancelled_and_that_fail(path, run):
    async def forever():
        try:
            await asyncio.sleep(1000)
        finally:
            leaf()

    async def fails():
        await pause()
        leaf()
        raise KeyError

    async def main():
        stopped = asyncio.create_task(forever(), name="stopped")
        failed = asyncio.create_task(fails(), name="failed")
        await pause(3)
        stopped.cancel()
        for task in (stopped, failed):
            with contextlib.suppress(asyncio.CancelledError, KeyError):
                await task

    found = traced.record(path, run(main))
    assert sorted(names_of(found, "leaf")) == ["failed", "stopped"]
    names = {task.id: task.name for task in found.tasks}
    thrown = [c for c in found.of("forever") if c.entered == "throw"]
    assert [names[c.task] for c in thrown] == ["stopped"]
    assert {c.left for c in thrown} == {"unwind"}


def test_tasks_that_are_cancelled_before_they_ran(path, run):
    async def main():
        for number in range(5):
            task = asyncio.create_task(pause(9), name=f"cancelled {number}")
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            del task  # so that the next one may lie where it was
            await asyncio.create_task(work(), name=f"runs {number}")

    found = traced.record(path, run(main))
    assert sorted(names_of(found, "leaf")) == sorted(
        f"runs {n // 2}" for n in range(10)
    )
    names = [t.name for t in found.tasks]
    assert [n for n in names if n.startswith("cancelled")] == [
        f"cancelled {number}" for number in range(5)
    ]


def test_names_that_are_given_late_and_names_of_their_own(path, run):
    names = []

    async def main():
        task = asyncio.create_task(work())
        if run.kind != "eager":  # else it has begun: from then on a name is as it is
            task.set_name("late")
        names.append(task.get_name())
        await task
        task = asyncio.create_task(work())
        names.append(task.get_name())
        await task

    found = traced.record(path, run(main))
    assert sorted(names_of(found, "leaf")) == sorted(names * 2)


@pytest.mark.skipif(not EAGER, reason="there are no eager tasks")
def test_eager_tasks_that_are_done_at_once(path):
    async def done():
        leaf()

    async def main():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        for number in range(5):
            await asyncio.create_task(done(), name=f"eager {number}")

    found = traced.record(path, lambda: asyncio.run(main()))
    assert names_of(found, "leaf") == [f"eager {number}" for number in range(5)]


def run_with_tasks_from_before(path, run):
    async def main():
        gate = asyncio.Event()

        async def early():
            leaf()
            await gate.wait()
            leaf()

        begun = asyncio.create_task(early(), name="begun")
        await pause(2)
        unbegun = asyncio.create_task(early(), name="not begun")
        with whence.record(path, pack=False, gc=False):
            leaf()
            gate.set()
            await begun
            leaf()
            await unbegun
            await asyncio.create_task(work(), name="new")

    run(main)()
    return traced.read(path)


def test_tasks_that_were_there_before(path, run):
    found = run_with_tasks_from_before(path, run)
    tasks = by_name(found)
    # The one that was not begun was, if it is eager.
    times = {"begun": 1, "not begun": 1 if run.kind == "eager" else 2, "new": 2}
    names = names_of(found, "leaf")[1:]  # the first is of the task that runs
    assert {n: names.count(n) for n in names} == {"main": 1, **times}
    assert tasks["new"].parent == tasks["main"].id
    assert tasks["new"].awaited_by == (tasks["main"].id,)


def test_the_task_that_runs_when_the_recording_begins(path, run):
    found = run_with_tasks_from_before(path, run)
    assert names_of(found, "leaf")[0] == "main"


def test_tasks_that_begin_while_calls_are_paused(path, run):
    async def main(recorder):
        before = asyncio.create_task(work(6), name="before")
        await pause(2)
        recorder.pause()
        leaf()
        meanwhile = asyncio.create_task(work(4), name="meanwhile")
        await pause(2)
        recorder.resume()
        leaf()
        await asyncio.gather(before, meanwhile)

    found = traced.record(path, lambda recorder: run(lambda: main(recorder))())
    names = names_of(found, "leaf")
    assert sorted(names) == ["before", "before", "main", "meanwhile"]
    known = [task.name for task in found.tasks]
    assert known.count("before") == known.count("main") == known.count("meanwhile") == 1


def test_a_ring_still_knows_whose_frames_are_open(path, run):
    async def busy():
        for _ in range(40_000):
            leaf()

    async def main():
        await asyncio.create_task(busy(), name="busy")

    size = {"max_size": "160 KB", "chunk_size": "16 KB"}
    with whence.record(path, pack=False, gc=False, **size) as recorder:
        run(main)()
    assert recorder.dropped["ring"] > 0
    with whence.open(path) as recording:
        names = {task.id: task.name for task in recording.tasks}
        tasks = {names[call.task] for call in recording.calls().read() if call.task}
        leaves = [c.task for c in recording.calls().read() if c.function == "leaf"]
    assert tasks >= {"busy"}
    assert leaves
    assert None not in leaves


def test_a_generator_that_is_open_at_the_beginning_stays_the_same(path):
    def numbers():
        recorder.start()
        yield 1
        yield 2

    recorder = whence.record(path, pack=False, gc=False)
    assert list(numbers()) == [1, 2]
    recorder.stop()
    calls = traced.read(path).of("numbers")
    assert [call.entered for call in calls] == ["open", "resume", "resume"]
    assert len({call.generator for call in calls}) == 1
    assert calls[0].generator is not None


def test_two_loops_on_two_threads(path):
    gate = threading.Barrier(2)

    def loop(name):
        async def main():
            gate.wait(10)
            for number in range(20):
                await asyncio.create_task(work(), name=f"{name} {number}")

        asyncio.run(main())

    def run():
        threads = [threading.Thread(target=loop, args=[n], name=n) for n in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    found = traced.record(path, run)
    threads = {thread.id: thread.name for thread in found.threads}
    names = {task.id: task.name for task in found.tasks}
    seen = [(names[c.task], threads[c.thread]) for c in found.of("leaf")]
    assert sorted(seen) == sorted(
        [(f"{name} {n}", name) for name in ("a", "b") for n in range(20)] * 2
    )


def test_async_generators_and_nested_awaits_belong_to_their_task(path, run):
    async def numbers():
        for number in range(3):
            leaf()
            await pause()
            yield number

    async def deeper(depth):
        if depth:
            await deeper(depth - 1)
        else:
            async for _ in numbers():
                pass

    async def main():
        await asyncio.gather(
            asyncio.create_task(deeper(5), name="x"),
            asyncio.create_task(deeper(50), name="y"),
        )

    found = traced.record(path, run(main))
    assert sorted(names_of(found, "leaf")) == ["x"] * 3 + ["y"] * 3


def test_callbacks_of_a_loop_belong_to_no_task(path):
    async def main():
        asyncio.get_running_loop().call_soon(leaf)
        await pause(2)

    found = traced.record(path, lambda: asyncio.run(main()))
    assert names_of(found, "leaf") == [None]


def test_generators_that_no_loop_runs_have_no_task(path):
    async def alone():
        leaf()

    def run():
        coroutine = alone()
        with contextlib.suppress(StopIteration):
            coroutine.send(None)

    found = traced.record(path, run)
    assert names_of(found, "leaf") == [None]
    assert found.tasks == []
