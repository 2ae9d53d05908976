"""Names for the native frames of a recording, in a copy of it."""

from __future__ import annotations

import contextlib
import os

from whence import _recording, _running
from whence._new_file import new_file
from whence._part import RecordingError
from whence._symbols import Module, Symbolizer, placeholder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from whence import _core
    from whence._frame import Frame
    from whence._part import Part

    Symbol = tuple[str, str, int]  # name, file and line, or "" and 0

_UNKNOWN = "<unknown>"  # as older versions call what has no name
_RIGHTS = 0o777
_RIGHTS_OF_GROUP = 0o070


class NamedCopy:
    """What was named, and why the rest was not."""

    __slots__ = ("named", "problems", "reason", "total")

    def __init__(self, total: int, named: int, symbolizer: Symbolizer) -> None:
        self.total = total
        self.named = named
        self.reason = symbolizer.reason
        self.problems = dict(symbolizer.problems)


def write_named_copy(
    path: str,
    out: str,
    *,
    mode: str = "full",
    debug_dirs: Iterable[str] = (),
    overwrite: bool = False,
) -> NamedCopy:
    """Write a copy of a recording in which native frames have names.

    They are looked up in the libraries that the recording names, and by build id in the
    system's directory of debug files and in ``debug_dirs``. Nothing is run. What it has
    already stays, unless more is found now, or ``mode`` is ``"off"``. If ``out`` is the
    recording itself, the copy takes its place.
    """
    symbolizer = Symbolizer(mode, debug_dirs)
    replaced = _replaced(path, out)
    if replaced is not None:
        if not overwrite:
            message = f"{out} is the recording itself: without -o it is replaced"
            raise RecordingError(message)
        # Links to it stay what they are.
        out = os.path.realpath(path)
        with _recording.open(path) as recording:
            _expect_nobody_writes(path, _part_of(path, recording))
        # What has ended since then is read below as it is now.
    with _recording.open(path) as recording:
        reader = _part_of(path, recording).reader
        total, named, symbols = _name(reader, symbolizer)
        with new_file(out, force=overwrite) as file:
            _recording.rewrite(recording, file.fileno(), symbols=symbols, close=False)
            if replaced is not None:
                _take_over_rights(file.fileno(), replaced)
            os.fsync(file)
    return NamedCopy(total, named, symbolizer)


def _part_of(path: str, recording: _recording.Recording) -> Part:
    parts = _recording.parts_of(recording)
    if len(parts) != 1 or parts[0].place.name:
        message = f"{path} is a merged recording: symbolize its parts, then merge"
        raise RecordingError(message)
    return parts[0]


def _replaced(path: str, out: str) -> os.stat_result | None:
    """Return what the recording is, if the copy is to take its place."""
    ours = os.stat(path)  # noqa: PTH116
    with contextlib.suppress(OSError):
        if os.path.samestat(ours, os.stat(out)):  # noqa: PTH116
            return ours
    return None


def _expect_nobody_writes(path: str, part: Part) -> None:
    """Refuse to replace what a program writes on to: the rest would go nowhere."""
    header = part.header
    if header["closed"] or header["compact"]:  # which is a copy
        return
    then = header["start_monotonic"]
    if _running.is_running(header["pid"], then, part.fact("boot")):
        message = (
            f"{path} was never closed, and its program, process {header['pid']}, is "
            "still running: wait for its end, or give -o for a copy"
        )
        raise RecordingError(message)


def _name(
    reader: _core.Reader, symbolizer: Symbolizer
) -> tuple[int, int, list[tuple[int, int, bytes, bytes, int]]]:
    """Return how many places there are, how many have names, and all the names."""
    modules = {
        number: Module(place or "", build_id or "")
        for number, place, build_id in reader.modules()
    }
    frames = [frame for frame in reader.native_frames() if frame[0] in modules]
    wanted = [(modules[module], address) for module, address in frames]
    symbols = []
    named = 0
    for (module, address), found in zip(frames, symbolizer.name(wanted), strict=True):
        nothing = placeholder(modules[module], address).name
        chosen = _symbols_of(found)
        if symbolizer.mode != "off":
            known = [
                (name or "", file or "", line)
                for name, file, line in reader.symbols(module, address)
            ]
            # The file may be another one today, if it has no build id.
            if _worth(known, nothing) >= _worth(chosen, nothing):
                chosen = known
        named += _worth(chosen, nothing)[0]
        for name, filename, line in chosen:
            symbols.append((module, address, _bytes(name), _bytes(filename), line))
    return len(frames), named, symbols


def _symbols_of(frames: list[Frame]) -> list[Symbol]:
    return [(frame.name, frame.filename, frame.line or 0) for frame in frames]


def _worth(symbols: list[Symbol], nothing: str) -> tuple[bool, bool, bool]:
    """Say whether it has a name and a line, and is there at all: the more the better.

    ``nothing`` is what stands for the name if there is none.
    """
    is_named = any(name not in ("", _UNKNOWN, nothing) for name, _, _ in symbols)
    return is_named, any(line for _, _, line in symbols), bool(symbols)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass").replace(b"\0", b"")


def _take_over_rights(file: int, of: os.stat_result) -> None:
    """Let those who might read the one before read this one, and nobody else."""
    with contextlib.suppress(OSError):  # only root may give files away
        os.fchown(file, of.st_uid, of.st_gid)
    same_group = os.fstat(file).st_gid == of.st_gid
    os.fchmod(
        file, of.st_mode & (_RIGHTS if same_group else _RIGHTS & ~_RIGHTS_OF_GROUP)
    )
