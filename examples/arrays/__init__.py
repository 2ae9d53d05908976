"""A small language of arrays, whose errors and times name the source.

    text -> parser -> inliner -> fusion -> generated Python, or C

A program has inputs, which are arrays of floats; functions of one expression each,
which may not call themselves; names for values; and one result. Operators go element by
element, `sum` makes a number of an array. What nobody uses is not computed. `model.arr`
is one, and `python -m examples.arrays demo` shows what becomes of it.

Each operation gets a handle where functions are inlined, which is the last place that
knows what somebody wrote. From there on the passes carry integers.
"""

from .c_backend import CBackend
from .program import Program, compile_text
from .python_backend import PythonBackend

__all__ = ["CBackend", "Program", "PythonBackend", "compile_text"]
