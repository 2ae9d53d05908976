"""What ``record()`` was asked for, checked."""

from whence import _chunk_size, _units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from whence._triggers import Triggers
    from whence.tracers import CallTracer


FLAGS = (
    *("overwrite", "calls", "c_calls", "exceptions"),
    *("gc", "native", "pack", "follow"),
)
# As the core numbers them.
MEMORY_DETAILS = {"state": 1, "alloc": 2, "full": 3}
MEMORY_EVENTS = {
    "allocated": 1,
    "moved": 2,
    "freed": 4,
    "out_of_memory": 8,
    "segments": 16,
}


class Options:
    """The arguments of ``record()`` but for its path, in the units of the core."""

    def __init__(  # noqa: PLR0913
        self,
        *,
        overwrite: bool,
        calls: bool,
        c_calls: bool,
        exceptions: bool,
        gc: bool,
        memory: bool | str,
        memory_detail: str,
        memory_skip: "Iterable[str]",
        native: bool,
        keep: float | str | None,
        max_size: int | str | None,
        pack: bool,
        follow: bool,
        dump_on: "Iterable[str]",
        include: "Iterable[str]",
        exclude: "Iterable[str]",
        max_depth: int | None,
        min_duration: float | str | None,
        chunk_size: int | str | None,
    ) -> None:
        # For a child that is followed, in the form in which they were given.
        self.arguments: dict[str, Any] = {
            "overwrite": overwrite,
            "calls": calls,
            "c_calls": c_calls,
            "exceptions": exceptions,
            "gc": gc,
            "memory": memory,
            "memory_detail": memory_detail,
            "native": native,
            "keep": keep,
            "max_size": max_size,
            "pack": pack,
            "max_depth": max_depth,
            "min_duration": min_duration,
            "chunk_size": chunk_size,
        }
        flags = {**self.arguments, "follow": follow}
        for name in FLAGS:
            if not isinstance(flags[name], bool):
                message = f"{name} must be True or False, not {flags[name]!r}"
                raise TypeError(message)
        self.overwrite = overwrite
        self.calls = calls
        self.c_calls = c_calls
        self.exceptions = exceptions
        self.gc = gc
        self.memory = _memory(memory)
        if native and not memory:
            message = "native frames belong to stacks of memory: native needs memory"
            raise ValueError(message)
        self.native = native
        self.detail_memory(memory_detail)
        skipped = _kinds(memory_skip)
        self.memory_events = _events_but(skipped)
        self.arguments.update(memory_skip=skipped)
        self.keep = 0 if keep is None else _units.nanoseconds(keep, "keep")
        self.max_size = 0 if max_size is None else _units.size(max_size, "max_size")
        self.pack = pack
        self.follow = follow
        self.triggers = _make_triggers(dump_on)
        included, excluded = (
            _patterns(include, "include"),
            _patterns(exclude, "exclude"),
        )
        self.arguments.update(include=included, exclude=excluded)
        self.include = _with_names(included)
        self.exclude = _with_names(excluded)
        self.max_depth = _depth(max_depth)
        self.min_duration = 0
        if min_duration is not None:
            self.min_duration = _units.nanoseconds(min_duration, "min_duration")
        self.chunk_size = _chunk_size.choose(chunk_size, self.max_size)

    def detail_memory(self, detail: str) -> None:
        """Say what is wanted of memory, also in the middle of a recording."""
        self.memory_detail = _detail(detail)
        self.arguments["memory_detail"] = detail

    def told(self) -> str:
        """Return what was asked for beyond the defaults, for the recording."""
        usual = {"calls": True, "gc": True, "pack": True, "memory_detail": "alloc"}
        nothing = (False, None, ())
        told = [
            f"{name}={value!r}"
            for name, value in self.arguments.items()
            if name != "overwrite"
            and (value != usual[name] if name in usual else value not in nothing)
        ]
        if self.follow:
            told.append("follow=True")
        return ", ".join(told)

    def make_tracer(self) -> "CallTracer":
        """Return a tracer for the calls, or one that does nothing."""
        from whence import tracers  # noqa: PLC0415

        return tracers.make("calls") if self.calls else tracers.CallTracer()


def _make_triggers(dump_on: "Iterable[str]") -> "Triggers | None":
    if not dump_on:
        return None
    from whence._triggers import Triggers  # noqa: PLC0415

    return Triggers(dump_on)


def _patterns(patterns: "Any", name: str) -> tuple[str, ...]:
    if isinstance(patterns, str):
        patterns = (patterns,)
    texts = tuple(patterns)
    for text in texts:
        if not isinstance(text, str):
            message = f"{name} takes patterns like '*/mylib/*', not {text!r}"
            raise TypeError(message)
    return texts


def _with_names(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Add those that a file's name fits in whatever folder it is.

    But none with a ``*``, to which the rest of the path would be as good as the name.
    """
    names = (text for text in patterns if "/" not in text and "*" not in text)
    return (*patterns, *(f"*/{name}" for name in names))


def _memory(memory: "Any") -> bool | str:
    if not isinstance(memory, bool) and memory != "all":
        message = f"memory must be True, False or 'all', not {memory!r}"
        raise ValueError(message)
    return memory  # type: ignore[no-any-return]


def _detail(detail: str) -> int:
    if detail not in MEMORY_DETAILS:
        known = ", ".join(map(repr, MEMORY_DETAILS))
        message = f"memory_detail must be one of {known}, not {detail!r}"
        raise ValueError(message)
    return MEMORY_DETAILS[detail]


def _kinds(names: "Any") -> tuple[str, ...]:
    """Return kinds of events of memory, which may be one text or several."""
    several = not isinstance(names, str) and hasattr(names, "__iter__")
    kinds = tuple(names) if several else (names,)
    for kind in kinds:
        if not isinstance(kind, str) or kind not in MEMORY_EVENTS:
            known = ", ".join(map(repr, MEMORY_EVENTS))
            message = f"memory_skip takes {known}, not {kind!r}"
            raise ValueError(message)
    return kinds


def _events_but(skipped: tuple[str, ...]) -> int:
    """Return the bits of the events of memory that are recorded."""
    events = sum(MEMORY_EVENTS.values())
    for kind in skipped:
        events &= ~MEMORY_EVENTS[kind]
    return events


def _depth(max_depth: int | None) -> int:
    if max_depth is None:
        return 0
    if not isinstance(max_depth, int) or not 0 < max_depth < 2**31:
        message = f"max_depth must be a number of calls from 1 on, not {max_depth!r}"
        raise ValueError(message)
    return max_depth
