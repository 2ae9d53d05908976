"""A flight recorder for Python programs.

Where did this time, this memory, this error come from?
"""

from whence import _calls, _environment, generated, tracers
from whence._core import Stack, capture, counter, mark, span
from whence._frame import Frame
from whence._include import get_include
from whence._record import record
from whence._recording import Recording, RecordingError, open  # noqa: A004
from whence._schedule import schedule
from whence._statistics import statistics
from whence._symbolize import symbolize, to_json

__all__ = [
    "Frame",
    "Recording",
    "RecordingError",
    "Stack",
    "__version__",
    "capture",
    "counter",
    "generated",
    "get_include",
    "mark",
    "open",
    "record",
    "schedule",
    "span",
    "statistics",
    "symbolize",
    "to_json",
    "tracers",
]

__version__ = "0.1.0"

_environment.apply()
del _calls
