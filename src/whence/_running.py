"""Whether the process that made a recording is still there, and may write on."""

import os

_LONGEST_BOOT = 64
_PRIME = 2**61 - 1
_SECOND = 1_000_000_000
# In /proc/PID/stat, after the name, which may have anything in it; see proc(5).
_STATE, _THREADS, _STARTED = 0, 17, 19


def boot() -> str | None:
    """Return what recordings have in common that share a monotonic clock.

    That is a boot of the machine and a time namespace; and not its name, but what a
    division leaves of it, for which nothing has to be imported.
    """
    try:
        found = _read("/proc/sys/kernel/random/boot_id", _LONGEST_BOOT)
        clock = os.readlink(b"/proc/self/ns/time")  # noqa: PTH115
    except OSError:
        return None
    return f"{int.from_bytes(found + clock) % _PRIME:x}"


def is_running(pid: int, then: int, boot_then: str | None) -> bool:
    """Say whether the process that had this number then is still running.

    ``then`` is what the monotonic clock said, ``boot_then`` what ``boot()`` did; None
    is any boot. A process that began later has only got the number.
    """
    import time  # noqa: PLC0415

    if boot_then is not None and boot_then != boot():
        return False
    try:
        text = _read(f"/proc/{pid}/stat", 4096)
        fields = text.rpartition(b")")[2].split()
        ended = fields[_STATE] in b"ZX" and int(fields[_THREADS]) <= 1
        ticks = int(fields[_STARTED])
    except (OSError, IndexError, ValueError):
        return False
    # Both count from the boot, but only one while the machine sleeps: so long at most.
    slept = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
    started = ticks * _SECOND // os.sysconf("SC_CLK_TCK")
    return not ended and started <= then + slept


def _read(path: str, size: int) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, size)
    finally:
        os.close(file)
