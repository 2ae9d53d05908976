"""Raw enters of a tracer that does not write into the recording by itself."""

from _thread import get_native_id

from whence import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whence.tracers import Enter


class Enters:
    """When which thing was entered, in ticks of the recorder's clock."""

    def __init__(self) -> None:
        self._begun: tuple[int, int] = _core.recording_status()["start"]
        self._ended: tuple[int, int] = self._begun
        self.enters: list[Enter] = []

    def enter(self, key: int) -> None:
        """Note that ``key`` was entered, on this thread, now."""
        self.enters.append((key, get_native_id(), _core.read_clocks()[0]))  # type: ignore[arg-type]

    def end(self) -> int:
        """Return when that was, in nanoseconds since the beginning."""
        self._ended = _core.read_clocks()
        return self._ended[1] - self._begun[1]

    def time(self, ticks: int) -> int:
        """Return ticks as nanoseconds since the beginning."""
        (first, start), (last, stop) = self._begun, self._ended
        return (ticks - first) * (stop - start) // max(1, last - first)
