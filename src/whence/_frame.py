"""One frame of a stack, named. Its types are in ``_frame.pyi``."""

from collections import namedtuple

# Not typing.NamedTuple: importing typing takes longer than importing all of whence.
Frame = namedtuple(  # noqa: PYI024
    "Frame",
    ["name", "filename", "line", "column", "end_line", "end_column", "kind"],
    defaults=[None, None, None, "python"],
    module="whence",  # where users find it, and where pickles look for it
)
Frame.__doc__ = """\
Where one frame was: function, file and place in the source.

Lines count from 1 and columns from 0, in UTF-8 bytes, as ``code.co_positions()`` has
them; what is not known is None. ``kind`` is ``"python"``, ``"generated"`` for what
generated code came from, ``"handle"`` for what a debug handle stands for, ``"native"``
for native code, ``"truncated"`` where frames were lost, or ``"unmerged"`` between
Python frames and native ones whose order is not known.
"""
