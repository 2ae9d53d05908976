"""What a recording holds, as named tuples. Their types are in ``_events.pyi``.

Times are nanoseconds since the recording began; a thread is the number that
``Recording.threads`` has.
"""

from collections import namedtuple

RecordingInfo = namedtuple(  # noqa: PYI024
    "RecordingInfo",
    [
        *("path", "version", "file_id", "pid", "program", "python", "whence"),
        *("start", "duration", "clock", "chunk_size", "size", "packed"),
        *("closed", "ended", "error", "calls", "memory", "handles"),
    ],
    module="whence",
)
RecordingInfo.__doc__ = """\
What a recording says about itself.

``program``, ``python`` and ``whence`` are texts that the recorder wrote, or None.
``closed`` is False for a recording that was never stopped: its program is still
running, or was killed. ``ended`` is the reason for which a recording ended early, or
None, and ``error`` the number of the system's error behind it, or None.
``calls`` says why calls were not recorded, if they should have been, and ``memory`` the
same of memory: "no_stacks" if only stacks are missing, several reasons with commas.
``handles`` is "limit" if tables of handles were installed for which there was no room.
"""

Process = namedtuple(  # noqa: PYI024
    "Process",
    ["id", "pid", "program", "python", "start", "end", "info"],
    module="whence",
)
Process.__doc__ = """\
A process that a recording is of.

``start`` and ``end`` are those of its own recording, on the clock that all share, and
``info`` is the ``RecordingInfo`` of it alone.
"""

Thread = namedtuple(  # noqa: PYI024
    "Thread", ["id", "os_id", "name", "start", "end", "process"], module="whence"
)
Thread.__doc__ = """\
A thread of the program, in the process with the id ``process``.

``start`` is None if it ran before it was first seen, and ``end`` if it was still
running at the end.
"""

Span = namedtuple(  # noqa: PYI024
    "Span",
    ["name", "thread", "start", "duration", "tags", "error", "open"],
    module="whence",
)
Span.__doc__ = """\
A stretch of time with a name.

``error`` is True if it was left by an exception. ``open`` is True for one that had not
ended when the recording did; its ``duration`` is None.
"""

Counter = namedtuple(  # noqa: PYI024
    "Counter", ["name", "thread", "time", "value"], module="whence"
)
Counter.__doc__ = "The value of a counter, from this time on."

Collection = namedtuple(  # noqa: PYI024
    "Collection",
    ["thread", "start", "duration", "generation", "collected", "uncollectable"],
    module="whence",
)
Collection.__doc__ = "A run of the garbage collector."

HandleEvent = namedtuple(  # noqa: PYI024
    "HandleEvent",
    ["namespace", "handle", "name", "backend", "thread", "start", "duration"],
    module="whence",
)
HandleEvent.__doc__ = """\
Work of a lowered program, by ``whence.handles.event()``.

``namespace`` is None unless it was told with the handle; ``thread`` is the one that
told of it.
"""

Call = namedtuple(  # noqa: PYI024
    "Call",
    [
        *("function", "filename", "line", "start", "duration", "own", "depth"),
        *("thread", "task", "entered", "left", "generator", "number", "parent"),
        "count",
    ],
    module="whence",
)
Call.__doc__ = """\
A call of a function: from where its frame is entered to where it is left.

A generator or coroutine is entered and left many times; ``generator`` is the same
number each time. ``own`` is ``duration`` without the calls directly inside. ``number``
counts the calls of a thread as they begin, and ``parent`` is the number of the call
around it, or None. A function written in C has no ``filename`` and no ``line``.
``entered`` is "call", "resume", "throw" or "open" (nobody saw how), ``left`` "return",
"unwind" (by an exception), "yield", "gone" (nobody saw how), "unstarted" (by an
exception before it ran) or "cut" (it was open when recording calls ended). ``count`` is
more than 1 for short calls of one function that were recorded as one.
"""

Function = namedtuple(  # noqa: PYI024
    "Function",
    ["name", "filename", "line", "calls", "total", "own"],
    module="whence",
)
Function.__doc__ = """\
All calls of a function. Times are nanoseconds.

``total`` is how long it was running or waiting for what it called: recursion counts
once. ``own`` is without the calls inside. A generator or coroutine is called anew each
time it is resumed. A function written in C has no ``filename`` and no ``line``.
"""

Group = namedtuple(  # noqa: PYI024
    "Group", ["function", "callers", "calls", "total", "own"], module="whence"
)
Group.__doc__ = """\
The calls of a function that came by the same callers. Times are nanoseconds.

``callers`` are functions, the nearest first: as many as were asked for, fewer where
there are no more. ``total`` counts once where a group is inside itself.
"""

ExceptionEvent = namedtuple(  # noqa: PYI024
    "ExceptionEvent",
    ["type", "kind", "time", "thread", "function", "filename", "line"],
    module="whence",
)
ExceptionEvent.__doc__ = """\
An exception was raised or handled, as ``kind`` says, in that function, at that line.
"""

Task = namedtuple(  # noqa: PYI024
    "Task",
    ["id", "name", "parent", "function", "start", "awaits", "awaited_by"],
    module="whence",
)
Task.__doc__ = """\
A task of an event loop, and the coroutine function that it runs.

``start`` is when it was made, or first seen. ``awaits`` and ``awaited_by`` are tuples
of the ids of tasks, in the order in which that was first seen.
"""

Losses = namedtuple(  # noqa: PYI024
    "Losses", ["produced", "recorded", "dropped", "names"], module="whence"
)
Losses.__doc__ = """\
What became of every event: ``produced`` is ``recorded`` plus all of ``dropped``.

``dropped`` has the number of events by reason, and only reasons that occurred.
``names`` counts names that found no room; what they name has None for a name.
"""

Record = namedtuple(  # noqa: PYI024
    "Record", ["kind", "thread", "time", "fields"], module="whence"
)
Record.__doc__ = """\
One record, as it was written; the reference of the format lists kinds and fields.

Names are resolved, durations are nanoseconds; code and stacks are numbers. In a merged
recording, threads and times are those that it has everywhere, also in ``fields``; all
other numbers are those of their process.
"""
