"""How large the native tables are, and what they lost. Typed in ``_statistics.pyi``."""

from collections import namedtuple

from whence import _core

Statistics = namedtuple(  # noqa: PYI024
    "Statistics",
    [
        "stacks",
        "stacks_cap",
        "stacks_truncated",
        "stacks_bytes",
        "codes",
        "codes_dead",
        "codes_lost",
        "codes_bytes",
        "walk",
        "walk_reason",
        "native_hits",
        "native_misses",
        "native_truncated",
        "native_unsupported",
        "modules",
    ],
    module="whence",
)
Statistics.__doc__ = """\
Counts over the life of the process; bytes are those mapped.

``stacks``, of at most ``stacks_cap``, are the entries of the stack table: one for each
distinct stack and its outer parts. ``stacks_truncated`` counts the captures that lost
their inner frames to the cap or for lack of memory. ``codes`` are the distinct pieces
of code seen in captures, ``codes_dead`` code objects that have died since, and
``codes_lost`` counts the times that code could not be named for lack of memory.
``walk`` is ``"fast"``, or ``"public"`` where frames are walked by CPython's public API,
for the reason given in ``walk_reason``.

Of native frames, ``native_hits`` counts those that were walked, ``native_misses`` the
times that it had to be found out first how to leave one, ``native_unsupported`` those
of which that could not be found out, and ``native_truncated`` the captures that did not
come to the outermost frame. ``modules`` are the libraries seen in captures.
"""


def statistics() -> Statistics:
    """Return the size and the losses of the native tables."""
    return Statistics(**_core.statistics(), **_core.native_statistics())
