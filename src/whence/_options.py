"""What ``record()`` was asked for, checked."""

from whence import _chunk_size, _units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from whence._triggers import Triggers
    from whence.tracers import CallTracer


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
            "keep": keep,
            "max_size": max_size,
            "pack": pack,
            "max_depth": max_depth,
            "min_duration": min_duration,
            "chunk_size": chunk_size,
        }
        self.overwrite = overwrite
        self.calls = calls
        self.c_calls = c_calls
        self.exceptions = exceptions
        self.gc = gc
        self.keep = 0 if keep is None else _units.nanoseconds(keep, "keep")
        self.max_size = 0 if max_size is None else _units.size(max_size, "max_size")
        self.pack = pack
        self.follow = follow
        self.triggers = _make_triggers(dump_on)
        self.include = _patterns(include, "include")
        self.exclude = _patterns(exclude, "exclude")
        self.arguments.update(include=self.include, exclude=self.exclude)
        self.max_depth = _depth(max_depth)
        self.min_duration = 0
        if min_duration is not None:
            self.min_duration = _units.nanoseconds(min_duration, "min_duration")
        self.chunk_size = _chunk_size.choose(chunk_size, self.max_size)

    def told(self) -> str:
        """Return what was asked for beyond the defaults, for the recording."""
        usual = {"calls": True, "gc": True, "pack": True}
        nothing = (False, None, ())
        told = [
            f"{name}={value!r}"
            for name, value in self.arguments.items()
            if name != "overwrite"
            and (value is not usual[name] if name in usual else value not in nothing)
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


def _depth(max_depth: int | None) -> int:
    if max_depth is None:
        return 0
    if not isinstance(max_depth, int) or not 0 < max_depth < 2**31:
        message = f"max_depth must be a number of calls from 1 on, not {max_depth!r}"
        raise ValueError(message)
    return max_depth
