"""Random Python programs that call ``probe()`` from every kind of frame there is.

A program is a row of functions, each of some kind (plain, generator, coroutine, class,
...), whose bodies call only functions further down the row, so that every program ends.
What varies is who calls whom, through what, and in the middle of what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

PRELUDE = """\
import contextlib
import functools
import weakref

def drive(coroutine):
    try:
        while True:
            coroutine.send(None)
    except StopIteration as stop:
        return stop.value

async def collect(source):
    return [item async for item in source]

class Pause:
    def __await__(self):
        yield

@contextlib.contextmanager
def around():
    probe()
    try:
        yield
    finally:
        probe()

def passing(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper

class Dropped:
    def __init__(self, action):
        self.action = action
    def __del__(self):
        self.action()

def throw_into(generator):
    try:
        next(generator)
        generator.throw(KeyError("thrown"))
    except (KeyError, StopIteration):
        probe()
    generator.close()

def referred(action):
    class Target: pass
    target = Target()
    keep = weakref.ref(target, lambda _: action())
    del target
    return keep
"""

KINDS = [
    *["plain", "plain", "closure", "generator", "delegating", "coroutine"],
    *["async_generator", "class", "method", "property", "item", "lambda", "decorated"],
]


class Writer:
    """Writes one program."""

    prelude = PRELUDE

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.kinds = [rng.choice(KINDS) for _ in range(rng.randint(3, 9))]

    def program(self) -> str:
        parts = [self.prelude]
        parts += [self.function(i) for i in reversed(range(len(self.kinds)))]
        repeats = self.rng.choice([1, 1, 2, 20])  # 20 lets the interpreter specialise
        parts.append(f"for turn in range({repeats}):\n    {self.call(0)}\n")
        return "\n".join(parts)

    def function(self, i: int) -> str:
        kind = self.kinds[i]
        body = self.body(i, kind)
        name = f"f{i}"
        if kind == "lambda":
            return f"{name} = lambda x: ({self.expression(i)}, {self.expression(i)})\n"
        if kind == "closure":
            return (
                f"def {name}(x):\n    y = x\n    def inner():\n        nonlocal x, y\n"
                f"        y += 1\n{indent(body, 2)}        return y\n"
                "    return inner()\n"
            )
        if kind in ("class", "method", "property", "item"):
            head = {
                "class": "def __init__(self, x)",
                "method": "def run(self, x)",
                "property": "@property\n    def value(self, x=1)",
                "item": "def __getitem__(self, x)",
            }[kind]
            return f"class {name}:\n    {head}:\n{indent(body, 2)}"
        head = "async def" if kind in ("coroutine", "async_generator") else "def"
        decorator = "@passing\n" if kind == "decorated" else ""
        return f"{decorator}{head} {name}(x):\n{indent(body, 1)}"

    def call(self, i: int) -> str:
        """Write an expression that runs function i from code that is not async."""
        kind = self.kinds[i]
        rng = self.rng
        if kind in ("generator", "delegating"):
            ways = [f"list(f{i}(1))", f"throw_into(f{i}(1))", f"next(f{i}(1), None)"]
            return rng.choice([*ways, f"[probe() for _ in f{i}(1)]"])
        return {
            "coroutine": f"drive(f{i}(1))",
            "async_generator": f"drive(collect(f{i}(1)))",
            "method": f"f{i}().run(1)",
            "property": f"f{i}().value",
            "item": f"f{i}()[1]",
        }.get(kind, f"f{i}(1)")

    def expression(self, i: int) -> str:
        """Write an expression for function i: a probe or a call further down."""
        rng = self.rng
        if i + 1 >= len(self.kinds) or rng.random() < 0.3:
            return "probe()"
        call = self.call(rng.randint(i + 1, min(i + 3, len(self.kinds) - 1)))
        wrap = rng.choice(
            [
                *["{}", "{}", "{}", "list(map(lambda v: {}, [1]))"],
                *["sorted([2, 1], key=lambda v: ({}, v)[1])", "(lambda: {})()"],
                *["functools.reduce(lambda a, b: {}, [1, 2])", "eval({!r})"],
                *["[{} for _ in range(2)]", "Dropped(lambda: {})"],
                *["referred(lambda: {})", "functools.partial(lambda: {})()"],
                *["max(iter(lambda: ({}, 1)[1], 1), default=0)"],
            ]
        )
        return wrap.format(call)

    def body(self, i: int, kind: str) -> str:
        lines = [self.statement(i, kind) for _ in range(self.rng.randint(1, 2))]
        if kind == "generator":
            lines.insert(self.rng.randint(0, len(lines)), "yield x\n")
        elif kind == "delegating":
            below = [
                j for j in range(i + 1, len(self.kinds)) if self.kinds[j] == "generator"
            ]
            source = f"f{self.rng.choice(below)}(x)" if below else "(probe(), 2)"
            lines.insert(self.rng.randint(0, len(lines)), f"yield from {source}\n")
        elif kind == "async_generator":
            lines.insert(self.rng.randint(0, len(lines)), "yield x\n")
        return "".join(lines)

    def statement(self, i: int, kind: str) -> str:
        rng = self.rng
        expression = self.expression(i)
        if kind in ("coroutine", "async_generator"):
            waiting = self.awaiting(i)
            if waiting is not None and rng.random() < 0.7:
                return waiting
        return rng.choice(
            [
                f"{expression}\n",
                f"{expression}\n",
                f"for _ in range(2):\n    {expression}\n",
                "try:\n    raise KeyError(x)\n"
                f"except KeyError:\n    {expression}\nfinally:\n    probe()\n",
                f"with around():\n    {expression}\n",
                f"exec({expression!r})\n",
                f"exec(compile('\\n' * {rng.randint(0, 400)} + {expression!r}, "
                f"'<made {rng.randint(0, 9)}>', 'exec'))\n",
                f"x = (x,\n     {expression},\n     x)[0]\n",
            ]
        )

    def awaiting(self, i: int) -> str | None:
        """Write a statement that only async code may have."""
        rng = self.rng
        below = range(i + 1, len(self.kinds))
        choices = ["await Pause()\nprobe()\n"]
        choices += [f"await f{j}(x)\n" for j in below if self.kinds[j] == "coroutine"]
        choices += [
            f"async for _ in f{j}(x):\n    probe()\n"
            for j in below
            if self.kinds[j] == "async_generator"
        ]
        return rng.choice(choices)


def indent(text: str, levels: int) -> str:
    """Indent each line by that many levels."""
    pad = "    " * levels
    return "".join(pad + line for line in text.splitlines(keepends=True))


def random_program(rng: random.Random) -> str:
    """Return the source of a program that calls ``probe()``."""
    return Writer(rng).program()
