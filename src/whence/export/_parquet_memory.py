"""Tables of memory in Parquet: every block, the stacks that asked, what was in use.

A block knows its stack by a number, which is one of its process.
"""

from __future__ import annotations

from whence import _core
from whence._memory_names import MemoryNames
from whence._recording import has_memory, parts_of
from whence.export._stacks import Stacks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from whence._recording import Recording

SCHEMAS = {
    "alloc": {
        "process": "uint32",
        "thread": "uint32",
        "start": "int64",
        "end": "int64",
        "address": "uint64",
        "size": "uint64",
        "domain": "string",
        "stack": "uint64",
    },
    "stack": {
        "process": "uint32",
        "id": "uint64",
        "function": "string",
        "filename": "string",
        "line": "int64",
        "depth": "uint32",
        "frames": "string",
    },
    "usage": {
        "process": "uint32",
        "time": "int64",
        "domain": "string",
        "bytes": "uint64",
        "count": "uint64",
    },
    "resident": {"process": "uint32", "time": "int64", "bytes": "uint64"},
}
_STACKS = 1 << 12  # at a time: each has the text of all its frames


class Blocks:
    """The blocks of one process as an Arrow stream; ``stacks`` grows as it is read."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.stacks: dict[int, None] = {}

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give a stream to whoever asks; another schema than ours is not made."""
        readers = (part.reader for part in parts_of(self._recording))
        bounds = tuple(self._recording._bounds)  # noqa: SLF001
        return _core.arrow_blocks(readers, bounds)

    def batches(self, pa: Any) -> Iterator[dict[str, Any]]:
        """Yield columns, with domains as texts."""
        domains = MemoryNames(parts_of(self._recording)[0].reader)
        for batch in pa.RecordBatchReader.from_stream(self):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            coded = columns["domain"].dictionary_encode()
            names = pa.array([domains.domain(d.as_py()) for d in coded.dictionary])
            columns["domain"] = names.take(coded.indices)
            known = columns["stack"].unique().to_pylist()
            self.stacks.update(dict.fromkeys(id_ for id_ in known if id_ is not None))
            yield columns


def stacks_of(recording: Recording, ids: dict[int, None]) -> Iterator[dict[str, Any]]:
    """Yield columns of the stacks with these numbers, some at a time."""
    (part,) = parts_of(recording)
    stacks = Stacks(part.reader)
    rows: list[tuple[Any, ...]] = []
    names = ("id", "function", "filename", "line", "depth", "frames")
    for id_ in sorted(ids):
        number = stacks.number(id_)
        innermost = stacks.innermost(number, 1)
        place = innermost[0] if innermost else (None, None, None)
        rows.append((id_, *place, stacks.depth(number), _text(stacks, number)))
        if len(rows) == _STACKS:
            yield dict(zip(names, zip(*rows, strict=True), strict=True))
            rows = []
    if rows:
        yield dict(zip(names, zip(*rows, strict=True), strict=True))


def _text(stacks: Stacks, number: int) -> str:
    """Write the frames as collapsed stacks have them, outermost first."""
    labels = [stacks.labels[place] for place in stacks.path(number)]
    frames = (
        name if filename is None else f"{name} ({filename}:{line})"
        for name, filename, line in labels
    )
    return ";".join(frame.replace(";", ":") for frame in frames)


def usage_of(recording: Recording) -> dict[str, list[dict[str, Any]]]:
    """Return rows of what was in use by domain, and of what was resident."""
    rows: dict[str, list[dict[str, Any]]] = {"usage": [], "resident": []}
    if not has_memory(recording):
        return rows
    usage = recording.memory.usage()
    domains = dict.fromkeys(name for point in usage.points for name in point.domains)
    for point in usage.points:
        for name in domains:
            size, count = point.domains.get(name, (0, 0))
            row = {"time": point.time, "domain": name, "bytes": size, "count": count}
            rows["usage"].append(row)
    rows["resident"] += [each._asdict() for each in usage.resident]
    return rows
