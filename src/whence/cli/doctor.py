"""``whence doctor``: what this machine and this interpreter let whence do."""

from __future__ import annotations

import os
import shutil
import sys
import tracemalloc

import whence
from whence import _core
from whence.cli._terminal import say, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

FINE, TROUBLE = 0, 1
_SLOW_CLOCK = 100  # nanoseconds a reading
_LITTLE_ROOM = 1 << 30
_OURS = (4, 3, 2)
_EXTRAS = {"parquet": "pyarrow", "sql": "duckdb", "symbols": "symbolic"}


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "doctor",
        help="say what can be recorded here, and what stands in the way",
        description="Say what can be recorded with this interpreter on this machine, "
        "and what stands in the way. Exit code 0: all is well; 1: something is not.",
    )
    parser.set_defaults(run=run)


def run(_given: argparse.Namespace) -> int:
    """Look at everything, and say it."""
    findings = [*_interpreter(), *_frames(), *_clock(), *_tools(), *_allocators()]
    findings += [*_native(), *_disk(), *_extras()]
    for good, text in findings:
        say(f"{'ok' if good else '!!'}  {text}", "" if good else "yellow")
    return FINE if all(good for good, _ in findings) else TROUBLE


def _interpreter() -> list[tuple[bool, str]]:
    version = sys.version.split()[0]
    known = sys.implementation.name == "cpython" and sys.version_info < (3, 16)
    found = [
        (known, f"whence {whence.__version__}, {sys.implementation.name} {version}")
    ]
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        found.append((False, "free-threaded: calls are not recorded"))
    return found


def _frames() -> list[tuple[bool, str]]:
    statistics = whence.statistics()
    if statistics.walk == "fast":
        return [(True, "frames: this interpreter's layout is known, and was tested")]
    reason = statistics.walk_reason
    return [
        (False, f"frames: through the public API ({reason}); calls are not recorded")
    ]


def _clock() -> list[tuple[bool, str]]:
    kind, cost = _core.clock()
    text = f"clock: {kind}, a reading takes {cost} ns"
    if cost > _SLOW_CLOCK:
        text += "; every call that is recorded takes two readings"
    return [(cost <= _SLOW_CLOCK, text)]


def _tools() -> list[tuple[bool, str]]:
    """Who else watches calls? Tools that are not loaded now cannot be seen."""
    found = []
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        taken = {number: monitoring.get_tool(number) for number in range(6)}
        names = [f"{n} {name}" for n, name in taken.items() if name is not None]
        free = any(taken[number] is None for number in _OURS)
        text = f"monitoring: {', '.join(names) or 'no tool id'} taken"
        found.append((free, text if free else f"{text}: none is left for whence"))
    for name, get in (("profile", sys.getprofile), ("trace", sys.gettrace)):
        function = get()
        if function is not None:
            found.append((True, f"{name} function: {function!r} stays where it is"))
    if _core.calls_have_company():
        text = "another tool evaluates frames (PEP 523): it is called by whence's own"
        found.append((True, text))
    return found


def _allocators() -> list[tuple[bool, str]]:
    """Say who else is in front of the allocators."""
    found = ["tracemalloc"] if tracemalloc.is_tracing() else []
    if "debug" in os.environ.get("PYTHONMALLOC", "") or sys.flags.dev_mode:
        found.append("debug hooks of Python")
    if preloaded := os.environ.get("LD_PRELOAD"):
        found.append(f"LD_PRELOAD={preloaded}")
    return [(True, f"allocators: {', '.join(found) or 'nobody'} in front of them")]


def _native() -> list[tuple[bool, str]]:
    """Say whether native frames are found, and which names they have."""
    frames = [f for f in whence.capture(native=True).frames if f.kind == "native"]
    files = {frame.filename for frame in frames}
    if not frames:
        return [(False, "native frames: none are found on this machine")]
    whole = [path for path in files if _has_symbols(path)]
    names = "all functions" if len(whole) == len(files) else "exported functions"
    return [(True, f"native frames: {len(frames)} found here, with names of {names}")]


def _has_symbols(path: str) -> bool:
    try:
        return _core.ElfFile(path).has_symbols
    except (OSError, ValueError):
        return False


def _disk() -> list[tuple[bool, str]]:
    folder = os.getcwd()  # noqa: PTH109
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return [(False, f"disk: {folder}: {error.strerror}")]
    writable = os.access(folder, os.W_OK)
    state = "" if writable else ", and it cannot be written to"
    text = f"disk: {size(free)} free in {folder}{state}"
    return [(writable and free >= _LITTLE_ROOM, text)]


def _extras() -> list[tuple[bool, str]]:
    from importlib.util import find_spec  # noqa: PLC0415

    def there(module: str) -> bool:
        return find_spec(module) is not None

    zstd = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    try:
        packs = there(zstd)
    except ImportError:
        packs = False
    have = [name for name, module in _EXTRAS.items() if there(module)]
    lack = [name for name in _EXTRAS if name not in have]
    text = f"extras: {', '.join(have) or 'none'} installed"
    text += f"; not installed: {', '.join(lack)}" if lack else ""
    return [(packs, f"packing: {zstd}{'' if packs else ' is missing'}"), (True, text)]
