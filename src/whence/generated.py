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

import bisect
from _thread import allocate_lock
from collections.abc import Callable, Iterable, Mapping, Sequence

from whence import _providers
from whence._frame import Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    # A frame, a (filename, line) pair, or a (filename, line, name) triple.
    Origin: TypeAlias = Frame | tuple[str, int] | tuple[str, int, str]
    # What a line came from: one origin, several (innermost first), or nothing.
    Origins: TypeAlias = Origin | Iterable[Origin] | None
    # Exact lines, or (first line, origins) pairs that hold until the next.
    LineMap: TypeAlias = Mapping[int, Origins] | Iterable[tuple[int, Origins]]
    Lookup: TypeAlias = Callable[[int], tuple[Frame, ...]]
    Provider: TypeAlias = Callable[[str, int], Origins]

__all__ = ["failures", "register", "register_provider", "unregister"]

_KEPT_FAILURES = 16


# What is registered. Both are replaced as a whole under the lock, so readers need none.
_changing = allocate_lock()
_line_maps: dict[str, Lookup] = {}
_providers_in_order: tuple[Provider, ...] = ()
_failures: list[str] = []


def register(filename: str, line_map: LineMap) -> None:
    """Say what the lines of a generated file came from. Replaces an earlier map for it.

    A mapping holds for exactly its lines. An iterable of (first line, origins) pairs
    holds from each first line until the next one.
    """
    if not isinstance(filename, str):
        message = f"filename must be a str, not {type(filename).__name__}"
        raise TypeError(message)
    lookup = _lookup(line_map)
    global _line_maps
    with _changing:
        _line_maps = {**_line_maps, filename: lookup}


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


def failures() -> list[str]:
    """Return what went wrong in providers lately, one line each, newest last."""
    return list(_failures)


class Expansion:
    """Inserts origins into the frames of one batch, asking once for each line."""

    def __init__(
        self, line_maps: Mapping[str, Lookup], providers: Sequence[Provider]
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
                out.extend(self._origins(frame.filename, frame.line))
        return out

    def _origins(self, filename: str, line: int) -> tuple[Frame, ...]:
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
                frames = _as_frames(provider(filename, line))
            except Exception as error:  # a stack is shown whatever a provider does
                _note_failure(provider, error)
            else:
                if frames:
                    return frames
        return ()


def expansion() -> Expansion | None:
    """Return what inserts origins, or None if nothing is registered that could."""
    line_maps = _line_maps
    providers = (*_providers_in_order, *_providers.active())
    return Expansion(line_maps, providers) if line_maps or providers else None


def _lookup(line_map: LineMap) -> Lookup:
    if isinstance(line_map, Mapping):
        exact = {_as_line(line): _as_frames(of) for line, of in line_map.items()}
        return lambda line: exact.get(line, ())
    pairs = sorted(
        ((_as_line(line), _as_frames(of)) for line, of in line_map),
        key=lambda pair: pair[0],
    )
    starts = [line for line, _ in pairs]

    def stretch(line: int) -> tuple[Frame, ...]:
        place = bisect.bisect_right(starts, line)
        return pairs[place - 1][1] if place else ()

    return stretch


def _as_line(line: object) -> int:
    if not isinstance(line, int):
        message = f"lines of a line map are int, not {type(line).__name__}"
        raise TypeError(message)
    return line


def _as_frames(origins: Origins) -> tuple[Frame, ...]:
    if origins is None:
        return ()
    if isinstance(origins, tuple) and origins and isinstance(origins[0], str):
        return (_as_frame(origins),)
    return tuple(_as_frame(origin) for origin in origins)


def _as_frame(origin: object) -> Frame:
    match origin:
        case Frame():
            frame = origin
        case (str(filename), int(line)):
            frame = Frame("<generated>", filename, line)
        case (str(filename), int(line), str(name)):
            frame = Frame(name, filename, line)
        case _:
            message = (
                "an origin is a Frame, (filename, line) or (filename, line, name), "
                f"not {origin!r}"
            )
            raise TypeError(message)
    return frame._replace(kind="generated")


def _note_failure(provider: Provider, error: Exception) -> None:
    name = getattr(provider, "__qualname__", type(provider).__qualname__)
    note = f"{name}: {type(error).__name__}: {error}"
    with _changing:
        if note in _failures:
            _failures.remove(note)
        _failures.append(note)
        del _failures[:-_KEPT_FAILURES]
