"""Recordings of calls that tests know all about: each enter and leave is one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from reference.recording import EVENTS, HEADER, METADATA, Chunk, File, Raw, write

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Iterator, Sequence

Tree: TypeAlias = "tuple[int, list[Tree]]"  # a function, and what it calls
Function = tuple[str | None, str | None, int]  # qualified name, file, line
LEAVE = -1
STEP = 10  # nanoseconds
_CALL, _RETURN, _C_CALL, _C_RETURN = 0x40, 0x20, 0x46, 0x23
_STRING, _INFO, _CODE, _THREAD = 0xE0, 0xE3, 0xC0, 0xA0
_PAGE = 4096


def steps_of(trees: Iterable[Tree]) -> Iterator[int]:
    """The functions entered, and LEAVE for each that is left."""
    for function, below in trees:
        yield function
        yield from steps_of(below)
        yield LEAVE


def random_trees(rng: random.Random, functions: int, size: int = 60) -> list[Tree]:
    """Trees of about so many calls."""
    trees: list[Tree] = []
    open_lists = [trees]
    for _ in range(rng.randint(1, size)):
        below: list[Tree] = []
        open_lists[-1].append((rng.randrange(functions), below))
        if rng.random() < 0.6:
            open_lists.append(below)
        while len(open_lists) > 1 and rng.random() < 0.3:
            open_lists.pop()
    return trees


def recording(
    functions: Sequence[Function],
    threads: Sequence[Iterable[int]],
    *,
    program: str = "app",
) -> bytes:
    """A recording of threads that take these steps. Without a file, it is a C function.

    What has no name has lost it.
    """
    named = dict.fromkeys(text for function in functions for text in function[:2])
    strings = {text: n for n, text in enumerate(filter(None, named), 2)}
    metadata = [
        Raw(_STRING, [1, b"program"]),
        Raw(_INFO, [1, program.encode("utf-8", "surrogatepass")]),
        *(
            Raw(_STRING, [number, text.encode("utf-8", "surrogatepass")])
            for text, number in strings.items()
        ),
        *(Raw(_THREAD, [0, n, 1000 + n, 0, 1]) for n in range(1, len(threads) + 1)),
    ]
    for code, (name, file, line) in enumerate(functions, 1):
        if file is not None:
            text = strings.get(name or "", 0)
            metadata.append(Raw(_CODE, [code, text, text, strings[file], line, 0]))
    chunks = [Chunk(1, metadata, METADATA)]
    for thread, steps in enumerate(threads, 1):
        what = [
            (_CALL, n) if file else (_C_CALL, strings.get(name or "", 0))
            for n, (name, file, _) in enumerate(functions, 1)
        ]
        records = list(_records(what, steps))
        chunks.append(Chunk(thread + 1, records, EVENTS, thread))
    now = STEP * max((len(chunk.records) for chunk in chunks[1:]), default=0)
    for chunk in chunks:
        chunk.end = (now, now)
    largest = max(len(chunk.payload()[0]) for chunk in chunks) + HEADER
    size = -(-largest // _PAGE) * _PAGE
    produced = sum(len(chunk.records) for chunk in chunks[1:])
    return write(File(chunks, size, end=(now, now), produced=produced))


def _records(what: list[tuple[int, int]], steps: Iterable[int]) -> Iterator[Raw]:
    path: list[int] = []
    for number, step in enumerate(steps):
        if step == LEAVE:
            native = path.pop() == _C_CALL
            yield Raw(_C_RETURN if native else _RETURN, [STEP * number])
        else:
            code, value = what[step]
            path.append(code)
            yield Raw(code, [STEP * number, value])
