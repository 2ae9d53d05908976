"""The native core. Users find its names in ``whence``; the others are for whence itself and its tests."""

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from traceback import StackSummary
from types import CodeType, TracebackType
from typing import (
    Any,
    Literal,
    ParamSpec,
    Self,
    SupportsIndex,
    TypeAlias,
    TypeVar,
    final,
)

from typing_extensions import Buffer

from whence._frame import Frame

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Group: TypeAlias = tuple[int, int, int, int, int, int]

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
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: object, /) -> Self: ...
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

@final
class Domain:
    def __new__(cls, name: str) -> Self: ...
    @property
    def name(self) -> str: ...
    def allocated(self, address: int, size: int, /) -> None: ...
    def freed(self, address: int, /) -> None: ...
    def segment_allocated(self, address: int, size: int, /) -> None: ...
    def segment_freed(self, address: int, /) -> None: ...
    def out_of_memory(self, size: int, available: int | None = None) -> None: ...

# An ELF file of 64 bits, little-endian, for x86-64 or aarch64. It stays open as long as the object lives.
# OSError if it cannot be opened or read, ValueError if it is no such file.
@final
class ElfFile:
    def __new__(cls, path: str | bytes | PathLike[str] | PathLike[bytes]) -> Self: ...
    @property
    def path(self) -> str | bytes | PathLike[str] | PathLike[bytes]: ...
    # In hexadecimal digits.
    @property
    def build_id(self) -> str | None: ...
    @property
    def has_debug_info(self) -> bool: ...
    # All of them, not only the exported ones.
    @property
    def has_symbols(self) -> bool: ...
    # The bytes of all sections for debuggers once they are unpacked, by what they say themselves.
    @property
    def debug_size(self) -> int: ...
    # The lowest address that is loaded, as the file has it.
    @property
    def load_address(self) -> int: ...
    # The name in .gnu_debuglink.
    @property
    def debug_link(self) -> str | None: ...
    # The function of each address, as the file has them: its name, demangled, and where it starts. Errors as above.
    def find(self, addresses: list[int], /) -> list[tuple[str, int] | None]: ...

@final
class SourceRange:
    def __new__(
        cls,
        filename: str,
        line: int,
        column: int | None = None,
        end_line: int | None = None,
        end_column: int | None = None,
    ) -> Self: ...
    @property
    def filename(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int | None: ...
    @property
    def end_line(self) -> int | None: ...
    @property
    def end_column(self) -> int | None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class InlinedCall:
    def __new__(
        cls,
        function: str,
        range: SourceRange | None,
        type: str | None = None,
        instance: str | None = None,
        callee: InlinedCall | None = None,
    ) -> Self: ...
    @property
    def function(self) -> str: ...
    @property
    def range(self) -> SourceRange | None: ...
    @property
    def type(self) -> str | None: ...
    @property
    def instance(self) -> str | None: ...
    @property
    def callee(self) -> InlinedCall | None: ...
    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

# A kind, 0 to 3, and parents.
_HandleEdge: TypeAlias = tuple[int, tuple[int, ...]]
_HandleRecord: TypeAlias = tuple[
    SourceRange | None, str, InlinedCall | None, _HandleEdge | None
]
_HandleRow: TypeAlias = tuple[
    int, SourceRange | None, str, InlinedCall | None, _HandleEdge | None
]

class HandleRecorder:
    def __new__(cls, *args: object, **kwargs: object) -> Self: ...
    def __len__(self) -> int: ...
    def issue(
        self, range: SourceRange | None, kind: str, stack: InlinedCall | None = None
    ) -> int: ...
    def _derive(
        self,
        edge: _HandleEdge,
        range: SourceRange | None,
        kind: str,
        stack: InlinedCall | None,
        /,
    ) -> int: ...
    def _snapshot(self) -> HandleSnapshot: ...

# The rows that a recorder had at one time, and those of a file. Places are in the order of handles.
@final
class HandleSnapshot:
    def __len__(self) -> int: ...
    def find(self, handle: int, /) -> int | None: ...
    def handle_at(self, place: int, /) -> int: ...
    def record(self, place: int, /) -> _HandleRecord: ...

@final
class HandleColumns:
    def __len__(self) -> int: ...
    def find(self, handle: int, /) -> int | None: ...
    def handle_at(self, place: int, /) -> int: ...
    def record(self, place: int, /) -> _HandleRecord: ...

# The bytes of a file. Parts are rows, the 16 bytes of a namespace, and the top type; a
# snapshot may begin with a later row.
def encode_handles(
    parts: list[
        tuple[HandleSnapshot | HandleColumns, bytes, str | None]
        | tuple[HandleSnapshot, bytes, str | None, int]
    ],
    /,
) -> bytes: ...

# "none", or what is wrong; a number that goes with that; the parts.
def decode_handles(
    data: bytes, /
) -> tuple[str, int, list[tuple[HandleColumns, bytes, str | None]]]: ...

# Columns of rows whose handles go up.
def collect_handles(rows: list[_HandleRow], top: str | None, /) -> HandleColumns: ...

# For tests: which handle comes next, if that is none from before.
def skip_handles(to: int, /) -> None: ...

# A recording in a file, by its descriptor, or in memory. unpack(packed, size) gives size bytes, or others if it cannot;
# unpack(packed, size, True), of a frame that is cut, what there is of them; what it raises ends the call that read. Only header() and close() work if header()["opened"] is not "good".
# In a file, it may lie at an offset. The others are added to what it says: nanoseconds to times, the rest to the ids of
# threads and tasks, and to the numbers of generators.
@final
class Reader:
    def __new__(
        cls,
        source: int | Buffer,
        unpack: Callable[..., bytes],
        offset: int = 0,
        size: int = ...,
        time_shift: int = 0,
        thread_base: int = 0,
        task_base: int = 0,
        generator_base: int = 0,
        /,
    ) -> Self: ...
    def header(self) -> dict[str, Any]: ...
    def info(self, key: str, /) -> str | None: ...
    # Each: id, os_id, name, start, end.
    def threads(self) -> list[tuple[int, int, str | None, int | None, int | None]]: ...
    # Each: id, name, parent, function, start.
    def tasks(
        self,
    ) -> list[tuple[int, str | None, int | None, str | None, int]]: ...
    # The largest id of a thread, and of a task.
    def last_ids(self) -> tuple[int, int]: ...
    # Its name, qualname, filename and first line.
    def code(
        self, number: int, /
    ) -> tuple[str | None, str | None, str | None, int] | None: ...
    # Its parent, code and offset.
    # Parent, code, offset. Of a native frame -1 less the number of its module (0: a remark) stands for the code, and
    # the address for the offset. Of a run of Python frames there is no code, and a stack of those.
    def stack(self, number: int, /) -> tuple[int, int | None, int] | None: ...
    # Number, path, build id.
    def modules(self) -> list[tuple[int, str | None, str | None]]: ...
    # What is at an address of a module, innermost first: name, file, line (0: not known).
    def symbols(
        self, module: int, address: int, /
    ) -> list[tuple[str | None, str | None, int]]: ...
    # The fields of whence.Record, Span, Counter, Collection, Call and ExceptionEvent.
    def records(self) -> Iterator[tuple[str, int, int, dict[str, Any]]]: ...
    # All that are given a deadline, in nanoseconds of the monotonic clock, end there with a UserWarning.
    def spans(
        self,
        start: int | None = None,
        end: int | None = None,
        threads: Sequence[int] | None = None,
        deadline: int | None = None,
        /,
    ) -> Iterator[
        tuple[str | None, int, int, int | None, dict[str | None, Any], bool, bool]
    ]: ...
    def counters(
        self,
        start: int | None = None,
        end: int | None = None,
        threads: Sequence[int] | None = None,
        deadline: int | None = None,
        /,
    ) -> Iterator[tuple[str | None, int, int, int | float]]: ...
    # Namespace, handle, name, backend, thread, start and duration.
    def handle_events(
        self,
        start: int | None = None,
        end: int | None = None,
        threads: Sequence[int] | None = None,
        deadline: int | None = None,
        /,
    ) -> Iterator[tuple[str | None, int, str | None, str | None, int, int, int]]: ...
    def handle_tables(self) -> list[bytes]: ...
    def collections(
        self,
        start: int | None = None,
        end: int | None = None,
        threads: Sequence[int] | None = None,
        deadline: int | None = None,
        /,
    ) -> Iterator[tuple[int, int, int, int, int, int]]: ...
    # Of a part: from start to end, in nanoseconds, and of these threads; None for all.
    # Rows, room for so many, the columns behind one another, and the functions so far.
    def batches(
        self,
        start: int | None = None,
        end: int | None = None,
        threads: Sequence[int] | None = None,
        deadline: int | None = None,
        /,
    ) -> Iterator[tuple[int, int, bytes, list[Any]]]: ...
    # Slices of calls, handed to write() in pieces; bounds are (start, end, threads, deadline). A thread's track and sequence
    # are the first ones plus its number; start is added to times. What there was no room for, and
    # the time up to which was read if the deadline came before the end.
    def export_perfetto(
        self,
        write: Callable[[bytes], Any],
        bounds: tuple[Any, ...],
        start: int,
        first_track: int,
        first_sequence: int,
        /,
    ) -> tuple[int, int | None]: ...
    # Events of calls, each followed by a comma and a newline.
    def export_chrome(
        self,
        write: Callable[[bytes], Any],
        bounds: tuple[Any, ...],
        start: int,
        process: int,
        /,
    ) -> tuple[int, int | None]: ...
    # Functions with their totals, and the columns of nodes: parent and function of 4 bytes, calls, total and own of 8.
    # Then how much there was no room for, and the time up to which was read if the deadline came before the end.
    def tree(
        self,
        start: int | None = None,
        end: int | None = None,
        threads: Sequence[int] | None = None,
        deadline: int | None = None,
        /,
    ) -> tuple[
        list[tuple[Any, ...]], bytes, bytes, bytes, bytes, bytes, int, int | None
    ]: ...
    def exceptions(
        self,
        start: int | None = None,
        end: int | None = None,
        threads: Sequence[int] | None = None,
        deadline: int | None = None,
        /,
    ) -> Iterator[
        tuple[str | None, str, int, int, str | None, str | None, int | None]
    ]: ...
    # Each: a task, and the one that it awaited.
    # The ids of tasks; 0 for one that nobody has told of.
    def awaits(
        self,
        start: int | None = None,
        end: int | None = None,
        threads: Sequence[int] | None = None,
        deadline: int | None = None,
        /,
    ) -> Iterator[tuple[int, int]]: ...
    # Where an instruction is: line, column, end_line, end_column; offsets are in bytes.
    def place(
        self, code: int, offset: int, /
    ) -> tuple[int | None, int | None, int | None, int | None]: ...
    # What a line of that code came from, innermost first: name, file, line, column, end line and end column.
    def sources(
        self, code: int, line: int, /
    ) -> list[
        tuple[str | None, str | None, int | None, int | None, int | None, int | None]
    ]: ...
    # Each with the counts of whence._memory.MemoryCounts, and the time up to which was read if the deadline came before the
    # end; bounds are (start, end, threads, deadline). Groups are (stack, domain, thread, tags, bytes, count); tags
    # are a string.
    # The most that was in use, when that was, and the groups then.
    def memory_peak(
        self, bounds: tuple[Any, ...], /
    ) -> tuple[tuple[int, int, list[_Group]], tuple[int, ...], int | None]: ...
    # Groups that were in use at a time, taken from start on and before end; None for no such bound.
    def memory_live(
        self,
        bounds: tuple[Any, ...],
        start: int | None,
        end: int | None,
        at: int | None,
        /,
    ) -> tuple[list[_Group], tuple[int, ...], int | None]: ...
    # Groups of blocks that were freed before their thread had taken so many more.
    def memory_churn(
        self, bounds: tuple[Any, ...], within: int, /
    ) -> tuple[list[_Group], tuple[int, ...], int | None]: ...
    # Points: time, bytes, count, and the last two by domain; then for each pool its domain, bytes, count and what it has
    # reserved. Then what was resident: time, bytes.
    def memory_usage(
        self, bounds: tuple[Any, ...], intervals: int, /
    ) -> tuple[
        tuple[
            list[
                tuple[
                    int,
                    int,
                    int,
                    list[tuple[int, int]],
                    list[tuple[int, int, int, int]],
                ]
            ],
            list[tuple[int, int]],
        ],
        tuple[int, ...],
        int | None,
    ]: ...
    # Who got no memory: time, thread, domain, size, what there was and one more (0: not known), stack, tags.
    def memory_failures(
        self, bounds: tuple[Any, ...], /
    ) -> tuple[
        list[tuple[int, int, int, int, int, int, int]], tuple[int, ...], int | None
    ]: ...
    # The numbers of pools, and their names.
    def pools(self) -> list[tuple[int, str | None]]: ...
    # The text with this number.
    def string(self, number: int, /) -> str | None: ...
    # Events: action (0 allocated, 1 moved, 2 freed, 3 not_freed, 4 segment_allocated, 5 segment_freed), time, thread, domain,
    # address, size, stack, tags.
    def memory_history(
        self, bounds: tuple[Any, ...], address: int, pool: int | None, /
    ) -> tuple[
        list[tuple[int, int, int, int, int, int, int, int]], tuple[int, ...], int | None
    ]: ...
    # When memory began to be recorded, and when it was again after each pause. Reads metadata only.
    def memory_starts(self) -> list[int]: ...
    # Groups of all blocks that were taken, given back or not.
    def memory_taken(
        self, bounds: tuple[Any, ...], /
    ) -> tuple[list[_Group], tuple[int, ...], int | None]: ...
    # The largest blocks, of those that were taken or of those in use at the end, by when they were taken; how many others
    # there are, and their bytes. A block is seven numbers of 64 bits: start, end (2**63 - 1: it is in use at the end),
    # address, size, domain, stack, thread; the first two are signed.
    def memory_largest(
        self, bounds: tuple[Any, ...], in_use: bool, most: int, /
    ) -> tuple[tuple[bytes, int, int], tuple[int, ...], int | None]: ...
    # The last events, and how many were before. Seven numbers of 64 bits: action (0 taken, 2 freed, 4 a segment taken,
    # 5 freed, 7 out of memory), time, which is signed, thread, domain, address, size, stack.
    def memory_newest(
        self, bounds: tuple[Any, ...], most: int, /
    ) -> tuple[tuple[bytes, int], tuple[int, ...], int | None]: ...
    # The largest segments that pools hold at the end, by pool and address, as blocks.
    def memory_segments(
        self, bounds: tuple[Any, ...], most: int, /
    ) -> tuple[bytes, tuple[int, ...], int | None]: ...
    # chunks, chunks_damaged, records, unknown, produced, recorded, dropped, names, names_left_out, problems, more_problems
    def totals(self) -> dict[str, Any]: ...
    # Write a copy to an empty file, closed if close is true or it was, packed with pack(payload) unless that is None. Chunks of events that ended more
    # than keep nanoseconds before the last one are left out, unless keep is 0. Symbols (module, address, name, file, line)
    # take the place of those that there are. Its totals.
    def rewrite(
        self,
        file: int,
        pack: Callable[[bytes], bytes] | None,
        keep: int,
        symbols: list[tuple[int, int, bytes, bytes, int]] = [],
        close: bool = True,
        /,
    ) -> dict[str, Any]: ...
    # Module and address of each native frame.
    def native_frames(self) -> list[tuple[int, int]]: ...
    def close(self) -> None: ...

# A stream of the calls of readers, one after the other, as the Arrow PyCapsule interface has it; bounds are
# (start, end, threads).
def arrow_calls(readers: Iterator[Reader], bounds: tuple[Any, ...], /) -> Any: ...

# The same of blocks of memory: start, end (null: in use at the end), address, size, domain, thread, stack (null: not known).
def arrow_blocks(readers: Iterator[Reader], bounds: tuple[Any, ...], /) -> Any: ...
def capture(
    *,
    native: object = False,
    skip: SupportsIndex = 0,
    limit: SupportsIndex | None = None,
    origin: Stack | None = None,
) -> Stack: ...
def resolve(
    stacks: list[Stack],
    name_native: Callable[[str, str, int], list[Frame]] | None = None,
    /,
) -> list[list[Frame]]: ...
def to_json(stacks: list[Stack], /) -> str: ...
def frames_to_json(frames: list[list[Frame]], /) -> str: ...
def restore(frames: tuple[Frame, ...], origin: Stack | None, /) -> Stack: ...
def statistics() -> dict[str, Any]: ...
def native_statistics() -> dict[str, int]: ...

# Module, path, build id, address of each native frame in the stacks of the recording that is on.
def recorded_native_frames() -> list[tuple[int, str, str, int]]: ...

# What is at an address of a module, innermost first, into the recording that is on; a line of 0 is not known.
def keep_symbol(
    module: int, address: int, name: str, filename: str, line: int, /
) -> bool: ...
def mark(name: str, /) -> None: ...
def counter(name: str, value: float, /) -> None: ...
def handle_event(
    handle: int | tuple[str, int], start: int, end: int, name: str, backend: str
) -> None: ...

# Puts the bytes of a file of handles of that namespace into the recording. False if it
# has no room, or there is none.
def keep_handles(namespace: str, table: bytes, /) -> bool: ...

# The same for what lines of generated code came from: lines in their order, each with what holds from there on.
def keep_line_map(
    filename: str, entries: list[tuple[int, tuple[Frame, ...]]], /
) -> bool: ...

# The lines of the code that the recording knows, by file.
def recorded_lines() -> dict[str, set[int]]: ...

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

# state, reason, error, recorded, dropped, names_lost, bytes, descriptor (-1: there is none), start (as read_clocks).
def is_recording() -> bool: ...
def recording_status() -> dict[str, Any]: ...

# Does the system call somebody when that signal arrives?
def has_handler(signal: int, /) -> bool: ...
def name_thread(os_id: int, name: str, /) -> None: ...

# Record memory from now on, in this detail (1 state, 2 alloc, 3 full); events has a bit for each kind: 1 taken, 2 moved, 4 given
# back, 8 out of memory, 16 segments. everywhere: what C libraries take, too. None, or why not; "no_stacks": it is
# recorded, but without stacks.
def start_memory(
    detail: int, events: int, everywhere: bool, native: bool, /
) -> str | None: ...
def pause_memory() -> None: ...
def resume_memory() -> str | None: ...

# None, or why events are missing.
def stop_memory() -> str | None: ...

# Whether this thread answers a question of the program's from now on: what it takes meanwhile is not recorded. What it
# was before.
def set_answering(answering: bool, /) -> bool: ...

# Of a recording that keeps no history: write what is in use now into it, False if that is more than its ring holds; the number of the stack of the block that
# begins at an address, or of the mapping that it is in.
def tell_memory_state() -> bool: ...
def stack_in_use(address: int, /) -> int | None: ...
def stack_numbered(number: int, /) -> Stack: ...

# In a forked child.
def forget_memory() -> None: ...

# What this thread says about all that it does, a JSON object with its keys sorted; empty: nothing.
def set_tags(text: str, /) -> None: ...

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
def calls_have_company() -> bool: ...

# The name of a C++ or Rust function as people write it; any other as it is. What is longer than 16 KB is cut.
def demangle(name: str, /) -> str: ...

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

# Before sys.monitoring begins: code of frames that are on no thread's chain, which CPython 3.15 wants to have seen.
def see_code(codes: Sequence[CodeType], /) -> None: ...

# When the interpreter is gone, SIGINT ends this process: what Python does after an interrupt that nobody caught.
def end_by_interrupt() -> None: ...

# For tests: run the self-test on a layout moved by these numbers of bytes; None or what went wrong.
def test_layout(
    executable: int,
    previous: int,
    instruction: int,
    owner: int,
    stack_top: int,
    places: int,
    /,
) -> str | None: ...

# For tests: is the thread's state read where CPython keeps it?
def state_slot_is_known() -> bool: ...

# For tests: how many stacks the table may hold from now on.
def set_stacks_cap(cap: int, /) -> None: ...

# For tests: decode a line table; line, end line, column and end column.
def locate(
    line_table: bytes, first_line: int, offset: int, /
) -> tuple[int | None, int | None, int | None, int | None]: ...
