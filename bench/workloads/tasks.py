"""An asyncio tree: tasks that await tasks, coroutines, a queue and an event."""

import asyncio

SIZE, WARM = 14, 3


async def leaf(number):
    await asyncio.sleep(0)
    return number % 5


async def through(number):
    return await leaf(number)


async def branch(depth, number):
    if depth == 0:
        return await through(number)
    left = asyncio.create_task(branch(depth - 1, 2 * number))
    right = await branch(depth - 1, 2 * number + 1)
    return await left + right


async def produce(queue, count):
    for number in range(count):
        await queue.put(number)
    await queue.put(None)


async def consume(queue, done):
    total = 0
    while (number := await queue.get()) is not None:
        total += number
    done.set()
    return total


async def main(depth):
    queue, done = asyncio.Queue(maxsize=4), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(produce(queue, 1 << (depth - 1)))
        total = group.create_task(consume(queue, done))
        tree = group.create_task(branch(depth, 1))
        await done.wait()
    return total.result() + tree.result()


def run(size):
    return asyncio.run(main(size))
