"""Callgrind's profile format, version 1: own time by function, total time by call.

Readers take a function's total from the calls of it. So all that nothing is around is
called by one function more, and a call of a function that is further out on the same
path adds to how often, not to how long: recursion counts once.
"""

from __future__ import annotations

from whence._text import printable
from whence.export._metrics import tree_for
from whence.export._names import UNKNOWN, Label, labels
from whence.export._paths import edges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from whence._recording import Recording

_NO_FILE = "???"
_ROOT = Label("<all threads>", None, 0)


def write(recording: Recording, file: BinaryIO) -> None:
    """Write every function with the calls that it made."""
    import whence  # noqa: PLC0415

    tree = tree_for(recording, "callgrind")
    places: dict[Label, int] = {_ROOT: 0}
    numbers = [places.setdefault(label, len(places)) for label in labels(tree)]
    own = [0] * len(places)
    calls: list[dict[int, list[int]]] = [{} for _ in places]
    for edge in edges(tree, numbers):
        own[edge.function] += edge.own
        made = calls[edge.caller or 0].setdefault(edge.function, [0, 0])
        made[0] += edge.calls
        made[1] += edge.total if edge.outermost else 0

    program = printable(recording.info.program or UNKNOWN)
    head = "# callgrind format\nversion: 1\n"
    head += f"creator: whence {whence.__version__}\npid: {recording.info.pid}\n"
    head += f"cmd: {program}\npositions: line\nevent: ns : Nanoseconds\nevents: ns\n"
    file.write(f"{head}summary: {sum(own)}\n".encode())
    names = _Names(list(places))
    for number, label in enumerate(places):
        lines = [f"\nfl={names.file(number)}\nfn={names.function(number)}\n"]
        lines.append(f"{label.line} {own[number]}\n")
        for callee, (count, total) in calls[number].items():
            at = names.labels[callee].line
            lines.append(f"cfi={names.file(callee)}\ncfn={names.function(callee)}\n")
            lines.append(f"calls={count} {at}\n{label.line} {total}\n")
        file.write("".join(lines).encode())


class _Names:
    """Names as the format has them: in full the first time, then only their numbers."""

    def __init__(self, names: Sequence[Label]) -> None:
        self.labels = names
        self._files: dict[str, int] = {}
        self._known: set[int] = set()
        lines: dict[tuple[str, str | None], set[int]] = {}
        for name, filename, line in names:
            lines.setdefault((name, filename), set()).add(line)
        self._several = {key for key, found in lines.items() if len(found) > 1}

    def file(self, number: int) -> str:
        filename = self.labels[number].filename or _NO_FILE
        if filename in self._files:
            return f"({self._files[filename]})"
        self._files[filename] = len(self._files) + 1
        return f"({self._files[filename]}) {filename}"

    def function(self, number: int) -> str:
        """Name a function: with its line if the file has several of that name."""
        if number in self._known:
            return f"({number + 1})"
        self._known.add(number)
        name, filename, line = self.labels[number]
        where = f" (line {line})" if (name, filename) in self._several else ""
        return f"({number + 1}) {name}{where}"
