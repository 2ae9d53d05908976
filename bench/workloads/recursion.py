"""A recursion 500 deep that takes memory at every level."""

SIZE, WARM = 300, 3


def dive(depth):
    if depth == 0:
        return [object()]
    around = [depth, depth + 0.5]
    inner = dive(depth - 1)
    return [(around, inner)]


def run(size):
    for _ in range(size):
        dive(500)
    return size
