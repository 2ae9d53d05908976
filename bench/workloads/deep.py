"""A recursion 16,000 deep that takes memory at every level."""

DEEP, SIZE, WARM = 16_000, 3, 1


def dive(depth):
    around = [depth] * 10
    return dive(depth - 1) if depth else around


def run(size):
    for _ in range(size):
        dive(DEEP)
    return size
