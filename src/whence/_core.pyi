"""The native core. Users find its names in ``whence``; the others are for whence itself and its tests."""

from collections.abc import Callable, Iterator, Sequence
from traceback import StackSummary
from types import CodeType, TracebackType
from typing import Any, Literal, ParamSpec, Self, SupportsIndex, TypeVar, final

from typing_extensions import Buffer

from whence._frame import Frame

_P = ParamSpec("_P")
_R = TypeVar("_R")

_c_api: object  # a capsule, see whence.h
_system: (
    object  # a capsule with the table of system calls, for tests that let them fail
)

@final
class Stack:
    @property
    def frames(self) -> tuple[Frame, ...]: ...
    @property
    def origin(self) -> Stack | None: ...
    @property
    def depth(self) -> int: ...
    def format(self) -> list[str]: ...
    def summary(self) -> StackSummary: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class span:  # noqa: N801
    def __new__(cls, name: str, /, **tags: object) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> Literal[False]: ...
    def __call__(self, function: Callable[_P, _R], /) -> Callable[_P, _R]: ...
    # A new span like this one.
    def _again(self) -> Self: ...

# A recording in a file, by its descriptor, or in memory. unpack(packed, size) gives size bytes, or others if it cannot;
# what it raises ends the call that read. Only header() and close() work if header()["opened"] is not "good".
@final
class Reader:
    def __new__(
        cls, source: int | Buffer, unpack: Callable[[bytes, int], bytes], /
    ) -> Self: ...
    def header(self) -> dict[str, Any]: ...
    def info(self, key: str, /) -> str | None: ...
    # Each: id, os_id, name, start, end.
    def threads(self) -> list[tuple[int, int, str | None, int | None, int | None]]: ...
    # Each: id, name, parent, function, start.
    def tasks(
        self,
    ) -> list[tuple[int, str | None, int | None, str | None, int]]: ...
    # Its name, qualname, filename and first line.
    def code(
        self, number: int, /
    ) -> tuple[str | None, str | None, str | None, int] | None: ...
    # Its parent, code and offset.
    def stack(self, number: int, /) -> tuple[int, int, int] | None: ...
    # The fields of whence.Record, Span, Counter, Collection, Call and ExceptionEvent.
    def records(self) -> Iterator[tuple[str, int, int, dict[str, Any]]]: ...
    def spans(
        self,
    ) -> Iterator[
        tuple[str | None, int, int, int | None, dict[str | None, Any], bool, bool]
    ]: ...
    def counters(self) -> Iterator[tuple[str | None, int, int, int | float]]: ...
    def collections(self) -> Iterator[tuple[int, int, int, int, int, int]]: ...
    # Of a part: from start to end, in nanoseconds, and of these threads; None for all.
    def calls(
        self,
        start: int | None = None,
        end: int | None = None,
        threads: Sequence[int] | None = None,
        /,
    ) -> Iterator[tuple[Any, ...]]: ...
    # Rows, room for so many, the columns behind one another, and the functions so far.
    def batches(
        self,
        start: int | None = None,
        end: int | None = None,
        threads: Sequence[int] | None = None,
        /,
    ) -> Iterator[tuple[int, int, bytes, list[Any]]]: ...
    def arrow_calls(
        self,
        start: int | None = None,
        end: int | None = None,
        threads: Sequence[int] | None = None,
        /,
    ) -> Any: ...  # a capsule
    # Slices of calls, handed to write() in pieces; bounds are (start, end, threads). A thread's track and sequence
    # are the first ones plus its number; start is added to times. What there was no room for.
    def export_perfetto(
        self,
        write: Callable[[bytes], Any],
        bounds: tuple[Any, ...],
        start: int,
        first_track: int,
        first_sequence: int,
        /,
    ) -> int: ...
    # Events of calls, each followed by a comma and a newline.
    def export_chrome(
        self,
        write: Callable[[bytes], Any],
        bounds: tuple[Any, ...],
        start: int,
        process: int,
        /,
    ) -> int: ...
    # Functions with their totals, and the columns of nodes: parent and function of 4 bytes, calls, total and own of 8.
    # The last number counts what there was no room for.
    def tree(
        self,
        start: int | None = None,
        end: int | None = None,
        threads: Sequence[int] | None = None,
        /,
    ) -> tuple[list[tuple[Any, ...]], bytes, bytes, bytes, bytes, bytes, int]: ...
    def exceptions(
        self,
        start: int | None = None,
        end: int | None = None,
        threads: Sequence[int] | None = None,
        /,
    ) -> Iterator[
        tuple[str | None, str, int, int, str | None, str | None, int | None]
    ]: ...
    # Each: a task, and the one that it awaited.
    # The ids of tasks; 0 for one that nobody has told of.
    def awaits(self) -> Iterator[tuple[int, int]]: ...
    # chunks, chunks_damaged, records, unknown, produced, recorded, dropped, names, names_left_out, problems, more_problems
    def totals(self) -> dict[str, Any]: ...
    # Write a closed copy to an empty file, packed with pack(payload) unless that is None. Chunks of events that ended more
    # than keep nanoseconds before the last one are left out, unless keep is 0. Its totals.
    def rewrite(
        self, file: int, pack: Callable[[bytes], bytes] | None, keep: int, /
    ) -> dict[str, Any]: ...
    def close(self) -> None: ...

def capture(
    *,
    skip: SupportsIndex = 0,
    limit: SupportsIndex | None = None,
    origin: Stack | None = None,
) -> Stack: ...
def resolve(stacks: list[Stack], /) -> list[list[Frame]]: ...
def to_json(stacks: list[Stack], /) -> str: ...
def frames_to_json(frames: list[list[Frame]], /) -> str: ...
def restore(frames: tuple[Frame, ...], origin: Stack | None, /) -> Stack: ...
def statistics() -> dict[str, Any]: ...
def mark(name: str, /) -> None: ...
def counter(name: str, value: float, /) -> None: ...

# Begin a recording; keep is in nanoseconds, 0 is no bound. None, or the reason of a failure
# that no other argument would mend; OSError for the others.
def start_recording(
    path: bytes, overwrite: bool, chunk_size: int, max_size: int, keep: int, /
) -> str | None: ...

# A fact about the recording as a whole.
def tell(key: str, value: str, /) -> None: ...

# End the recording. The descriptor of its file, for the caller to close, or -1.
def stop_recording() -> int: ...

# A copy of the recording as it is now, in a new file.
def dump_recording(path: bytes, overwrite: bool, /) -> None: ...

# The same; 0, or the errno of what went wrong.
def try_dump(path: bytes, overwrite: bool, /) -> int: ...

# state, reason, error, recorded, dropped, names_lost, bytes, start (as read_clocks).
def recording_status() -> dict[str, Any]: ...

# Does the system call somebody when that signal arrives?
def has_handler(signal: int, /) -> bool: ...
def name_thread(os_id: int, name: str, /) -> None: ...

# Record calls from now on, in all threads, but not those of code whose file begins with own. The tasks are those
# of asyncio that there are. None, or why not.
def start_calls(
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    own: str,
    c_calls: bool,
    exceptions: bool,
    max_depth: int,
    min_duration: int,
    tasks: list[Any],
    /,
) -> str | None: ...
def pause_calls() -> None: ...
def resume_calls(tasks: list[Any], /) -> str | None: ...

# None, or why calls are missing.
def stop_calls() -> str | None: ...

# In a forked child.
def forget_calls() -> None: ...

# What the recorder's clock is, and how many nanoseconds a reading takes.
def clock() -> tuple[str, int]: ...

# Ticks of the recorder's clock, and nanoseconds of the monotonic one, read together.
def read_clocks() -> tuple[int, int]: ...

# For gc.callbacks.
def gc_event(phase: str, info: dict[str, int], /) -> None: ...

# What to put in the place of Thread._bootstrap, which is `original`.
def make_thread_hook(original: object, /) -> Any: ...

# Call back after spans of at least that length.
def watch_spans(
    nanoseconds: int, callback: Callable[[str, int], object] | None, /
) -> None: ...

# Walk frames "fast" (False if the self-test objects) or by the "public" API.
def use_walk(walk: str, /) -> bool: ...

# Call it with the frames of this thread out of sight: it is the outermost one, for itself and all that it calls.
def call_alone(function: Callable[..., Any], /, *args: Any) -> Any: ...

# The same for code, with these names as its globals and locals.
def execute_alone(code: CodeType, names: dict[str, Any], /) -> Any: ...

# When the interpreter is gone, SIGINT ends this process: what Python does after an interrupt that nobody caught.
def end_by_interrupt() -> None: ...

# For tests: run the self-test on a layout moved by these numbers of bytes; None or what went wrong.
def test_layout(
    executable: int, previous: int, instruction: int, owner: int, /
) -> str | None: ...

# For tests: how many stacks the table may hold from now on.
def set_stacks_cap(cap: int, /) -> None: ...

# For tests: decode a line table; line, end line, column and end column.
def locate(
    line_table: bytes, first_line: int, offset: int, /
) -> tuple[int | None, int | None, int | None, int | None]: ...
