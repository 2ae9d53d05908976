"""Who keeps asking for this? Count the callers of a function, for nanoseconds each.

A cache is asked for keys from several parts of a program. Each look-up keeps the stack
it came from, as 4 bytes of identity. Nothing is named until the report is printed.
"""

from __future__ import annotations

import random
from collections import Counter

import whence


class Cache:
    """A cache that knows who missed."""

    def __init__(self) -> None:
        self.values: dict[int, int] = {}
        self.misses: Counter[whence.Stack] = Counter()

    def get(self, key: int) -> int:
        """Return the square of `key`, computed at most once."""
        if key not in self.values:
            self.misses[whence.capture(skip=1)] += 1
            self.values[key] = key * key
        return self.values[key]


def warm_up(cache: Cache) -> None:
    for key in range(100):
        cache.get(key)


def serve(cache: Cache, requests: int) -> int:
    return sum(handle(cache, random.randrange(1000)) for _ in range(requests))


def handle(cache: Cache, key: int) -> int:
    return cache.get(key) + cache.get(key // 2)


def main() -> None:
    random.seed(7)
    cache = Cache()
    warm_up(cache)
    serve(cache, 2000)
    for stack, count in cache.misses.most_common():
        print(f"{count} misses from")
        print(stack)
    table = whence.statistics()
    print(f"The table has {table.stacks} entries, for {table.codes} functions.")


if __name__ == "__main__":
    main()
