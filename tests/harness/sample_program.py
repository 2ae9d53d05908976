"""A program that does much in little time, and the same each time it is run."""

import argparse
import contextlib
import difflib
import json
import threading


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def even(n):
    return True if n == 0 else odd(n - 1)


def odd(n):
    return False if n == 0 else even(n - 1)


def count_down(n):
    while n:
        yield n
        n -= 1


class Tree:
    def __init__(self, depth):
        self.below = [Tree(depth - 1) for _ in range(2)] if depth else []

    @property
    def size(self):
        return 1 + sum(tree.size for tree in self.below)

    def __iter__(self):
        yield self
        for tree in self.below:
            yield from tree


def fail(depth):
    if depth:
        fail(depth - 1)
    raise ValueError


def work():
    fib(10)
    even(20)
    odd(20)
    sum(count_down(20))
    len(list(Tree(4)))
    Tree(3).size
    with contextlib.suppress(ValueError):
        fail(5)
    for each in (
        lambda: fib(3),
        lambda: even(2),
    ):
        each()
    json.dumps(json.loads('{"a": [1, 2.5, {"b": null}], "c": "d"}'), indent=1)
    list(difflib.unified_diff(["one", "two", "three"], ["one", "too", "three"]))
    parser = argparse.ArgumentParser(prog="sample")
    parser.add_argument("--number", type=int)
    parser.parse_args(["--number", "3"])


def work_in_threads():
    threads = [threading.Thread(target=work, name=f"worker-{n}") for n in range(2)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
