"""A C extension that takes memory from the C library, called from Python."""

import takes  # bench/native/takes.cpp; bench/memory.py builds it

WARM, SIZE = 10, 300


def leaf(number):
    return takes.take(5_000 + number % 7)


def run(size):
    return sum(leaf(number) for number in range(size))
