"""Recordings of several processes, and what they must say once they are merged."""

import whence
from reference import recording as twin
from whence.cli import main

SECOND = 1_000_000_000
GENERATORS = 1 << 40  # FORMAT.md, "Merged recordings"
# Which fields of what a recording gives change when it is merged.
TIMES = {"time", "start", "end"}
THREADS = {"thread"}
TASKS = {"task", "parent", "awaits", "awaited_by"}


def write(path, file, number, *, pid=None, later=0, wall=None, boot=None, **layout):
    """Write a recording of the twin as that of another process, begun later."""
    file.file_id = bytes([number]) * 16
    file.pid = 1000 + number if pid is None else pid
    file.wall += later if wall is None else wall
    for each in (file, *file.chunks):
        for edge in ("start", "end"):
            ticks, monotonic = getattr(each, edge)
            setattr(each, edge, (ticks, monotonic + later))
    if boot is not None:
        facts = [twin.Raw(0xE0, [900, b"boot"]), twin.Raw(0xE3, [900, boot])]
        metadata = next(c for c in file.chunks if c.what == twin.METADATA)
        metadata.records[:0] = facts
    path.write_bytes(twin.write(file, **layout))
    return path


def merge(out, *paths):
    """Merge by the command line; open what it wrote."""
    assert main(["merge", *map(str, paths), "-o", str(out)]) == 0
    return whence.open(out)


def shifted(item, process, *, threads, tasks):
    """Return a named tuple of a part as the merged recording has it."""
    changed = {}
    for name, value in item._asdict().items():
        if value is None or (name == "parent" and hasattr(item, "number")):
            continue
        if name in TIMES:
            changed[name] = value + process.start
        elif name in THREADS or (name == "id" and hasattr(item, "os_id")):
            changed[name] = value + threads
        elif name in TASKS or (name == "id" and hasattr(item, "awaits")):
            several = isinstance(value, tuple)
            changed[name] = (
                tuple(v + tasks for v in value) if several else value + tasks
            )
        elif name == "generator":
            changed[name] = value + (process.id - 1) * GENERATORS
        elif name == "process":
            changed[name] = process.id
    return item._replace(**changed)
