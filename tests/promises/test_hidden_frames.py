"""Frames that a traceback leaves out, met at the moments they are there."""

import contextlib
import gc
import os
import sys
import threading

import whence
from reference import capture as twin


def test_a_generator_thrown_into_before_it_began_is_shown():
    seen = []

    def numbers():
        yield

    def trace(frame, event, arg):
        if frame.f_code is numbers.__code__:
            seen.append((whence.capture(skip=1), twin.frames(skip=1)))

    before, generator = sys.gettrace(), numbers()
    sys.settrace(trace)
    try:
        with contextlib.suppress(KeyError):
            generator.throw(KeyError())
    finally:
        sys.settrace(before)
    assert seen
    for stack, expected in seen:
        assert stack.frames[0].name == "numbers"
        assert list(stack.frames) == expected


def test_frames_that_have_not_begun_are_left_out():
    """On 3.11 garbage is collected while a frame makes its cells or its generator."""
    seen, begun, kept = [], [], []

    def numbers():
        yield

    def cells(x, y, z):
        begun.append(whence.capture())  # the same frame, which has begun now
        return lambda: (x, y, z)

    def look(phase, info):
        for skip in (3, 2, 1):
            for limit in (3, 2, 1, None):
                stack = whence.capture(skip=skip, limit=limit)
                seen.append((stack, twin.frames(skip, limit)))

    def run():
        gc.callbacks.append(look)
        gc.set_threshold(1, 10**6, 10**6)
        kept.extend(numbers() for _ in range(10))
        kept.extend(cells(1, 2, 3) for _ in range(10))

    threshold = gc.get_threshold()
    try:
        thread = threading.Thread(target=run)  # with few frames below
        thread.start()
        thread.join()
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(look)
    assert seen
    assert whence.symbolize([stack for stack, _ in seen]) == [e for _, e in seen]
    assert {stack.frames[0].name for stack in begun} == {"cells"}


def test_where_a_hidden_frame_was_an_ordinary_one_may_be_next():
    seen = []

    class Made:
        def __init__(self):
            seen.append(whence.capture())

    def plain():
        seen.append(whence.capture())

    for call in [Made] * 50 + [plain]:  # one call site for both
        call()
    names = [stack.frames[0].name for stack in seen]
    assert names == ["__init__"] * 50 + ["plain"]


def test_code_at_the_address_of_dead_code_has_its_own_name():
    namespace = {"capture": whence.capture}
    addresses = set()
    for number in range(2000):
        name = f"function_{number:04}"
        exec(f"def {name}(): return capture()", namespace)
        addresses.add(id(namespace[name].__code__))
        assert namespace.pop(name)().frames[0].name == name
    if "WHENCE_SANITIZED" not in os.environ:  # a sanitizer keeps freed memory back
        assert len(addresses) < 2000
