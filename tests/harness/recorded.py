"""A recording of memory and of nothing else, as many tests of memory begin."""

import whence


def recorded(path, **options):
    wanted = {"calls": False, "gc": False, "memory": True, "overwrite": True}
    return whence.record(path, **wanted | options)
