"""Generators: a recursive walk with `yield from`, a pipeline, and one that is sent to.

Every resumption is an event of its own for a tracer.
"""

SIZE, WARM = 700, 2


def grow(low, high):
    if low == high:
        return None
    middle = (low + high) // 2
    return grow(low, middle), middle, grow(middle + 1, high)


def walk(tree):
    if tree is not None:
        left, value, right = tree
        yield from walk(left)
        yield value
        yield from walk(right)


def pairs(values):
    before = None
    for value in values:
        if before is not None:
            yield before, value
        before = value


def products(values):
    for left, right in values:
        yield left * right


def remainders(values, divisor):
    return (value % divisor for value in values)


def running_total():
    total = 0
    while True:
        total += yield total


def run(size):
    tree = grow(0, 500)
    total = running_total()
    next(total)
    for number in range(size):
        for value in remainders(products(pairs(walk(tree))), 7 + number):
            last = total.send(value)
    total.close()
    return last
