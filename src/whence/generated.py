"""From generated code back to what it was generated from.

A line of generated code means nothing to the person who wrote the template, the graph
or the notebook cell behind it. Tell whence what a line came from, and the frames it
came from stand right after the generated one in every stack, with ``kind="generated"``:

- ``register(filename, line_map)`` for a file whose lines are known beforehand;
- ``register_provider(function)`` for a function that is asked for each (filename,
  line).

Line maps are asked first, then providers in the order they were registered, then the
ones that whence brings along (see ``whence._providers``); the first that yields frames
wins. All of it may be called from any thread at any time.
"""

from __future__ import annotations

from whence import _core, _providers
from whence._line_map import LineMap, as_frames, stretches
from whence._locks import ForkedLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from whence._frame import Frame
    from whence._line_map import Lines, Origins

    Provider: TypeAlias = Callable[[str, int], Origins]

__all__ = [
    "failures",
    "format_exception",
    "origins",
    "register",
    "register_provider",
    "unregister",
]

_KEPT_FAILURES = 16


# What is registered. Both are replaced as a whole under the lock, so readers need none.
_changing = ForkedLock()
_line_maps: dict[str, LineMap] = {}
_providers_in_order: tuple[Provider, ...] = ()
_failures: list[str] = []


def register(filename: str, line_map: Lines) -> None:
    """Say what the lines of a generated file came from. Replaces an earlier map for it.

    A mapping holds for exactly its lines. An iterable of (first line, origins) pairs
    holds from each first line until the next one. A recording that is on keeps the map,
    and so does one that is started.
    """
    if not isinstance(filename, str):
        message = f"filename must be a str, not {type(filename).__name__}"
        raise TypeError(message)
    known = LineMap(line_map)
    global _line_maps
    with _changing:
        _line_maps = {**_line_maps, filename: known}
    if _core.is_recording():
        _core.keep_line_map(filename, known.entries())


def register_provider(provider: Provider) -> Provider:
    """Ask ``provider(filename, line)`` for the origins of frames. Can be a decorator.

    It returns frames or None. One that raises counts as having returned None (see
    ``failures()``), so that a stack can always be shown.
    """
    if not callable(provider):
        message = f"a provider must be callable, not {type(provider).__name__}"
        raise TypeError(message)
    global _providers_in_order
    with _changing:
        _providers_in_order = (*_providers_in_order, provider)
    return provider


def unregister(what: str | Provider) -> None:
    """Take back a line map, by its file name, or a provider, by the function itself."""
    global _line_maps, _providers_in_order
    with _changing:
        if isinstance(what, str):
            line_maps = dict(_line_maps)
            if line_maps.pop(what, None) is None:
                message = f"no line map is registered for {what!r}"
                raise ValueError(message)
            _line_maps = line_maps
        else:
            providers = list(_providers_in_order)
            if what not in providers:
                message = f"{what!r} is not a registered provider"
                raise ValueError(message)
            providers.remove(what)
            _providers_in_order = tuple(providers)


def origins(filename: str, line: int) -> tuple[Frame, ...]:
    """Return what a line of generated code came from, innermost first."""
    known = expansion()
    return () if known is None else known.origins(filename, line)


def format_exception(error: BaseException) -> str:
    """Return the traceback of an exception, with what generated code came from.

    As ``traceback.format_exception()`` has it; what a frame was generated from stands
    before that frame, as if it had called it.
    """
    from whence import _tracebacks  # noqa: PLC0415

    return _tracebacks.format_exception(error, expansion())


def failures() -> list[str]:
    """Return what went wrong in providers lately, one line each, newest last."""
    return list(_failures)


class Expansion:
    """Inserts origins into the frames of one batch, asking once for each line."""

    def __init__(
        self, line_maps: Mapping[str, LineMap], providers: Sequence[Provider]
    ) -> None:
        self._line_maps = line_maps
        self._providers = providers
        self._known: dict[tuple[str, int], tuple[Frame, ...]] = {}

    def apply(self, stacks: list[list[Frame]]) -> list[list[Frame]]:
        done: dict[int, list[Frame]] = {}
        for frames in stacks:
            if id(frames) not in done:
                done[id(frames)] = self._expanded(frames)
        return [done[id(frames)] for frames in stacks]

    def _expanded(self, frames: list[Frame]) -> list[Frame]:
        out = []
        for frame in frames:
            out.append(frame)
            if frame.kind == "python" and frame.line is not None:
                out.extend(self.origins(frame.filename, frame.line))
        return out

    def origins(self, filename: str, line: int) -> tuple[Frame, ...]:
        """Return what a line came from, innermost first."""
        key = (filename, line)
        if key not in self._known:
            self._known[key] = self._ask(filename, line)
        return self._known[key]

    def _ask(self, filename: str, line: int) -> tuple[Frame, ...]:
        lookup = self._line_maps.get(filename)
        if lookup is not None and (frames := lookup(line)):
            return frames
        for provider in self._providers:
            try:
                frames = as_frames(provider(filename, line))
            except Exception as error:  # a stack is shown whatever a provider does
                _note_failure(provider, error)
            else:
                if frames:
                    return frames
        return ()


def expansion() -> Expansion | None:
    """Return what inserts origins, or None if nothing is registered that could."""
    line_maps = _line_maps
    libraries = [library.provide for library in _providers.active()]
    providers = (*_providers_in_order, *libraries)
    return Expansion(line_maps, providers) if line_maps or providers else None


def keep_line_maps() -> None:
    """Put the maps of now into the recording that has begun."""
    for filename, line_map in _line_maps.items():
        _core.keep_line_map(filename, line_map.entries())


def keep_provided() -> None:
    """Ask providers about the code that the recording has, and put that into it.

    They are asked when it ends: not while the program runs, and not in a process that
    is killed.
    """
    libraries, own = _providers.active(), _providers_in_order
    if not libraries and not own:
        return
    line_maps = _line_maps
    for filename, lines in _core.recorded_lines().items():
        known = [each.provide for each in libraries if _knows(each, filename)]
        if known or own:
            expansion = Expansion(line_maps, (*own, *known))
            entries = stretches(lines, lambda line: expansion.origins(filename, line))  # noqa: B023
            if entries:
                _core.keep_line_map(filename, entries)


def _knows(library: _providers.Library, filename: str) -> bool:
    try:
        return library.knows(filename)
    except Exception as error:  # a library that is half imported, or another version
        _note_failure(library.provide, error)
        return False


def _note_failure(provider: Provider, error: Exception) -> None:
    name = getattr(provider, "__qualname__", type(provider).__qualname__)
    note = f"{name}: {type(error).__name__}: {error}"
    with _changing:
        if note in _failures:
            _failures.remove(note)
        _failures.append(note)
        del _failures[:-_KEPT_FAILURES]
