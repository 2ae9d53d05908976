"""Random programs for the tracer of calls: all that programs.py has, and more.

Exceptions that pass through many frames, recursion, generators that are left half-way,
thrown into, closed or dropped, event loops, and threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reference import programs

if TYPE_CHECKING:
    import random

PRELUDE = (
    programs.PRELUDE
    + """\
import asyncio
import threading

class Passing(Exception): pass

def raising(action):
    action()
    raise Passing

def guarded(action, levels=3):
    if levels:
        try:
            return guarded(action, levels - 1)
        except Passing:
            if levels == 2:
                raise
            return None
        finally:
            probe()
    return raising(action)

def recursing(depth, action):
    return action() if depth == 0 else recursing(depth - 1, action)

def delegate(action):
    try:
        yield from halfway(action)
    except Passing:
        yield action()

def halfway(action):
    try:
        yield 1
        yield action()
        yield 3
    except KeyError:
        action()
        yield 4
    finally:
        probe()

def leave_early(action, way):
    generator = delegate(action)
    next(generator)
    try:
        if way == 0:
            generator.close()
        elif way == 1:
            generator.throw(KeyError)
            next(generator)
        elif way == 2:
            generator.throw(Passing)
        elif way == 3:
            generator.throw(ValueError)
        elif way == 4:
            del generator
        elif way == 5:
            delegate(action).throw(ValueError)
        else:
            delegate(action).close()
    except (ValueError, StopIteration):
        probe()

async def waiter(action):
    await asyncio.sleep(0)
    try:
        async for _ in ticker(action):
            break
    finally:
        action()

async def ticker(action):
    try:
        yield 1
        action()
        yield 2
    finally:
        await asyncio.sleep(0)

async def tree(action):
    one = asyncio.ensure_future(waiter(action))
    two = asyncio.create_task(waiter(probe))
    await asyncio.gather(one, two)
    doomed = asyncio.create_task(asyncio.sleep(10))
    await asyncio.sleep(0)
    doomed.cancel()
    try:
        await doomed
    except asyncio.CancelledError:
        probe()

def in_loop(action):
    asyncio.run(tree(action))

def in_thread(action):
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()
"""
)

WRAPS = [
    "guarded(lambda: {})",
    "recursing(5, lambda: {})",
    *(f"leave_early(lambda: {{}}, {way})" for way in range(7)),
]


class Writer(programs.Writer):
    """Writes one program; a loop or a thread now and then, since they take long."""

    prelude = PRELUDE

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.slow_left = 2 if rng.random() < 0.2 else 0

    def expression(self, i: int) -> str:
        expression = super().expression(i)
        if self.slow_left and self.rng.random() < 0.1:
            self.slow_left -= 1
            wrap = self.rng.choice(["in_loop(lambda: {})", "in_thread(lambda: {})"])
            # A loop does not run inside another.
            return f"in_thread(lambda: {wrap.format(expression)})"
        if self.rng.random() < 0.4:
            return self.rng.choice(WRAPS).format(expression)
        return expression


def random_program(rng: random.Random) -> str:
    """Return the source of a program that calls ``probe()``."""
    return Writer(rng).program()
