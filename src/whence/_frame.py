"""One frame of a stack, named."""

from typing import NamedTuple


class Frame(NamedTuple):
    """Where one frame was: function, file and place in the source.

    Lines count from 1 and columns from 0, in UTF-8 bytes, as ``code.co_positions()``
    has them; what is not known is None. ``kind`` is ``"python"``, ``"generated"`` for
    what generated code came from, or ``"truncated"`` where inner frames were lost.
    """

    name: str
    filename: str
    line: int | None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    kind: str = "python"


Frame.__module__ = "whence"  # where users find it, and where pickles look for it
