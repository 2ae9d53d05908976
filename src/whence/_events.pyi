from datetime import datetime
from typing import Any, NamedTuple

class RecordingInfo(NamedTuple):
    path: str
    version: str
    file_id: str
    pid: int
    program: str | None
    python: str | None
    whence: str | None
    start: datetime
    duration: int
    clock: str
    chunk_size: int
    size: int
    packed: bool
    closed: bool
    ended: str | None
    error: int | None
    calls: str | None
    memory: str | None
    handles: str | None

class Process(NamedTuple):
    id: int
    pid: int
    program: str | None
    python: str | None
    start: int
    end: int
    info: RecordingInfo

class Thread(NamedTuple):
    id: int
    os_id: int
    name: str | None
    start: int | None
    end: int | None
    process: int

class Span(NamedTuple):
    name: str | None
    thread: int
    start: int
    duration: int | None
    tags: dict[str | None, str | int | float | bool | None]
    error: bool
    open: bool

class Counter(NamedTuple):
    name: str | None
    thread: int
    time: int
    value: int | float

class Collection(NamedTuple):
    thread: int
    start: int
    duration: int
    generation: int
    collected: int
    uncollectable: int

class HandleEvent(NamedTuple):
    namespace: str | None
    handle: int
    name: str | None
    backend: str | None
    thread: int
    start: int
    duration: int

class Call(NamedTuple):
    function: str | None
    filename: str | None
    line: int | None
    start: int
    duration: int
    own: int
    depth: int
    thread: int
    task: int | None
    entered: str
    left: str
    generator: int | None
    number: int
    parent: int | None
    count: int  # type: ignore[assignment]  # hides tuple.count

class Function(NamedTuple):
    name: str | None
    filename: str | None
    line: int | None
    calls: int
    total: int
    own: int

class Group(NamedTuple):
    function: Function
    callers: tuple[Function, ...]
    calls: int
    total: int
    own: int

class ExceptionEvent(NamedTuple):
    type: str | None
    kind: str
    time: int
    thread: int
    function: str | None
    filename: str | None
    line: int | None

class Task(NamedTuple):
    id: int
    name: str | None
    parent: int | None
    function: str | None
    start: int
    awaits: tuple[int, ...]
    awaited_by: tuple[int, ...]

class Losses(NamedTuple):
    produced: int
    recorded: int
    dropped: dict[str, int]
    names: int

class Record(NamedTuple):
    kind: str
    thread: int
    time: int
    fields: dict[str, Any]
