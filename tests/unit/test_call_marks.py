"""Stacks that are known by marks in frames (cpython/call_marks.h): never an old one.

A mark must not outlive its call, however that ends and whatever comes after it at the
same place of the same frame. So all kinds of calls are left in all ways, many times, so
that the interpreter has specialised them, and each capture is compared with the twin.
"""

import os
import sys
import threading

import greenlet
import pytest

import whence
from reference import capture


@pytest.fixture(params=["plain", "calls"], autouse=True)
def _recorded(request, tmp_path):
    """While calls are recorded, too: on 3.11 they all go by way of C then."""
    if request.param == "plain":
        yield
    else:
        with whence.record(tmp_path / "a.whence", memory=True):
            yield


class Different(AssertionError):
    pass


def look():
    stack = whence.capture(skip=1)
    expected = capture.frames(skip=1)
    if list(stack.frames) != expected:
        raise Different(stack.frames[:4], expected[:4])
    mixed = whence.capture(native=True, skip=1).frames
    if [frame for frame in mixed if frame.kind == "python"] != expected:
        raise Different(mixed[:4], expected[:4])


def fail():
    look()
    raise KeyError


def deep(levels, then):
    return deep(levels - 1, then) if levels else then()


class Thing:
    def __init__(self, then=look):
        then()

    @property
    def made(self):
        look()
        return self.method

    @property
    def failing(self):
        return fail()

    def method(self, *_, **__):
        look()
        return 0

    def __getitem__(self, then):
        return then()

    def __getattr__(self, name):
        look()
        raise AttributeError(name)

    def __iter__(self):
        look()
        yield look()
        yield look()

    def __add__(self, other):
        return look()

    def __enter__(self):
        look()
        return self

    def __exit__(self, *_):
        look()
        return True


class Plain:
    @property
    def made(self):
        look()
        return look

    @property
    def failing(self):
        return fail()


def numbers(then):
    for number in range(3):
        then()
        yield number


def delegating(then):
    yield from numbers(then)


def catching(then):
    while True:
        try:
            yield then()
        except ValueError:
            then()


def throw(generator):
    """Into one that has begun, from here and by way of another that delegates to it."""

    def around():
        yield from generator

    next(generator)
    generator.throw(ValueError)
    outer = around()
    next(outer)
    outer.throw(ValueError)
    outer.close()


def by_c(function, times):
    max(range(times), key=lambda _: function() or 0)


class Awaitable:
    """Its throw() is C's business, which calls Python while its generator waits."""

    def __iter__(self):
        return self

    def __next__(self):
        look()

    def throw(self, *_):
        look()
        return deep(1, look)


def waiting():
    while True:
        yield from Awaitable()


def throw_over_and_over():
    generator = waiting()
    next(generator)
    for _ in range(3):
        generator.throw(ValueError)
        deep(1, lambda: generator.throw(ValueError))


STATEMENTS = """
plain.made()
(1, plain.made())
exhaust(last_words())
x = 1, f()
x = 1, fail()
thing.made()
(1, thing.made())
thing.failing()
(1, 2, thing.failing())
thing[f]
(1, thing[fail])
Thing(f)
Thing(fail)
for x in numbers(f): f()
for x in numbers(fail): f()
for x in g: f()
for x in delegating(f): f()
(1, *delegating(fail))
[deep(2, f) for _ in range(2)]
deep(40, fail)
thing + thing
thing.method(f(), k=f())
thing.method(*[f()], **{'k': f()})
getattr(thing, 'missing', f())
thing.missing
sorted([3, 1, 2], key=lambda _: f())
max(1, 2, key=lambda n: fail())
list(map(lambda _: deep(2, f), range(3)))
list(map(lambda _: sorted([2, 1], key=lambda _: f()), range(2)))
throw(catching(f))
throw_over_and_over()
with thing: fail()
f(), thing.method(1, f()), f()
""".strip().splitlines()


def make(rng, count):
    lines = ["def program(thing, plain, f, fail):", "    for turn in range(3):"]
    for _ in range(count):
        chosen = rng.choice(STATEMENTS)
        lines += [
            "        g = numbers(f)",
            "        try:",
            f"            {chosen}",
            "        except (KeyError, AttributeError, TypeError):",
            f"            {rng.choice(['pass', 'f()', 'deep(3, f)'])}",
        ]
    return "\n".join(lines)


def test_captures_after_calls_of_every_kind(rng):
    for _ in range(60):
        source = make(rng, 12)
        names = dict(globals())
        exec(compile(source, "<program>", "exec"), names)
        program = names["program"]
        for depth in (0, 1, 30):
            deep(depth, lambda: program(object.__new__(Thing), Plain(), look, fail))


def exhaust(generator):
    for _ in generator:
        pass


def last_words():
    look()  # and then it is over: nothing is put where the mark was
    yield fail()


# What handles exceptions here calls nothing and puts little on the stack: either might
# take the place of a mark. So would contextlib.suppress.
# ruff: noqa: SIM105


def test_a_generator_that_fails_leaves_no_mark_that_counts():
    for _ in range(100):
        try:
            exhaust(last_words())
        except KeyError:
            pass
        try:
            (1, exhaust(last_words()))
        except KeyError:
            pass


def test_a_call_that_failed_leaves_no_mark_for_a_property():
    """At the same height of the stack, and 3.12 puts nothing there for a property."""
    plain = Plain()
    for _ in range(100):
        try:
            (plain, plain, plain, plain, fail())
        except KeyError:
            pass
        (plain, plain, plain, plain.made())


def use(plain):
    (plain, plain, plain.failing())


def test_a_property_that_fails_leaves_no_mark_that_counts():
    plain = Plain()
    for _ in range(100):
        try:
            use(plain)
        except KeyError:
            pass
        try:
            (1, use(plain))
        except KeyError:
            pass


def test_marks_in_other_threads_of_other_times():
    """A new thread's frames may lie where those of one that ended had their marks."""
    for depth in (5, 50, 5, 100):
        thread = threading.Thread(target=deep, args=[depth, look])
        thread.start()
        thread.join()


def test_a_call_from_c_at_the_same_place_with_other_callers():
    """All frames lie where those of the call before lay, at the same instructions."""

    def inner():
        look()
        look()

    def middle():
        by_c(inner, 2)

    def one():
        middle()
        middle()

    def other():
        look()
        middle()

    for _ in range(10):
        for outer in (one, other, one, one, other):
            by_c(outer, 1)


@pytest.mark.skipif(
    bool(os.environ.get("WHENCE_SANITIZED")),
    reason="AddressSanitizer does not know that greenlets copy the C stack",
)
def test_greenlets_in_turns(rng):
    """Each has marks of its own, with numbers that mean other frames in others."""
    main = greenlet.getcurrent()

    def work(depth):
        if depth:
            look()
            if depth % 3:
                by_c(lambda: work(depth - 1), 1)
            else:
                work(depth - 1)
            look()
            return
        for _ in range(5):
            look()
            main.switch()

    running = []
    for turn in range(300):
        if turn < 30:
            running.append(greenlet.greenlet(work))
            deep(turn % 3, lambda: running[-1].switch(rng.randrange(12)))
        elif running:
            one = rng.choice(running)
            deep(turn % 3, one.switch)
        look()
        running = [one for one in running if not one.dead]
    while running:
        running[0].switch()
        running = [one for one in running if not one.dead]


@pytest.mark.parametrize("depth", [10, 400])
def test_a_frame_object_does_not_show_them(depth):
    """Locals and frame objects are as they would be without."""

    def check():
        look()
        look()
        frame = sys._getframe(1)
        while frame is not None:
            dict(frame.f_locals)
            frame = frame.f_back

    deep(depth, check)
