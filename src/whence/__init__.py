"""A flight recorder for Python programs.

Where did this time, this memory, this error come from?
"""

from whence import _calls, _core, _environment, generated, tracers
from whence._core import Stack, capture, counter, mark, span
from whence._frame import Frame
from whence._include import get_include
from whence._part import RecordingError
from whence._record import record
from whence._recording import Recording, open  # noqa: A004
from whence._schedule import schedule
from whence._statistics import statistics
from whence._symbolize import symbolize, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from whence import handles, memory

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
    "handles",
    "mark",
    "memory",
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

# The types of what is read, which say that they are from here: nobody need name them.
_TYPES = dict.fromkeys(
    [
        *("Call", "Collection", "Counter", "ExceptionEvent", "Function", "Group"),
        *("HandleEvent", "Losses", "Process", "Record", "RecordingInfo", "Span"),
        *("Task", "Thread"),
    ],
    "_events",
)
_TYPES["Statistics"] = "_statistics"

_environment.apply()
del _calls, TYPE_CHECKING


def __getattr__(name: str) -> "ModuleType | type":
    """Import what few programs need when they do; types, when pickles ask for them."""
    is_type = name in _TYPES
    if not is_type and name not in ("handles", "memory"):
        message = f"module 'whence' has no attribute {name!r}"
        raise AttributeError(message)
    # What that takes is no business of the program's, whose memory may be recorded.
    before = _core.set_answering(True)
    try:
        from importlib import import_module  # noqa: PLC0415

        found = import_module(f"whence.{_TYPES.get(name, name)}")
    finally:
        _core.set_answering(before)
    return vars(found)[name] if is_type else found
