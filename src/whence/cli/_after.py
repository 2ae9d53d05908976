"""What ``whence run`` does when the program is over: say what was recorded.

Nothing in here changes how the program ends. It is the last function of ``atexit``, so
the recording is closed, and whatever the program has done to this process is done.
"""

from __future__ import annotations

import contextlib
import os
import sys

from whence import _core
from whence._text import printable
from whence.cli import _import_path

_STDERR = 2


class After:
    """To be registered before the recording starts, so that it comes after its end.

    And to be made while no folder of the program is searched for modules.
    """

    def __init__(self, *, quiet: bool, follows: bool, chooses: bool) -> None:
        self._quiet = quiet
        self._follows = follows
        self._chooses = chooses
        self._process = os.getpid()
        self._import_path = [*sys.path]
        self._shown = ""
        self._recording: str | None = None
        self.interrupted = False

    def begin(self, shown: str, recording: str | None) -> None:
        """Keep the name of the recording, as it was given, and where that is."""
        self._shown, self._recording = shown, recording

    def __call__(self) -> None:
        """Print the summary; in a forked child that exits like its parent, nothing."""
        if os.getpid() != self._process:
            return
        if self._recording is not None and not self._quiet:
            # Also an interrupt, by somebody who has no time for it.
            with contextlib.suppress(BaseException):
                self._print_summary(self._recording)
        if self.interrupted:
            _core.end_by_interrupt()

    def _print_summary(self, recording: str) -> None:
        stream = sys.__stderr__
        if stream is None or stream.closed:
            return  # whatever has that number now, it is not for us
        with contextlib.suppress(Exception):  # Python will find out, and say so
            sys.stdout.flush()
        try:
            with _import_path.as_before(self._import_path):
                text = self._make_summary(recording)
        except (Exception, SystemExit) as error:  # noqa: BLE001
            # Said with what is there already: what was amiss may be imports.
            text = f"whence: recorded {self._shown}; no summary: {error!r}"
            text = printable(text) + "\n"
        _write(text.encode(stream.encoding, "backslashreplace"))

    def _make_summary(self, recording: str) -> str:
        from whence.cli import _summary  # noqa: PLC0415

        asked = {"follows": self._follows, "chooses": self._chooses}
        lines = _summary.describe(recording, self._shown, **asked)
        return _summary.render(lines, terminal=os.isatty(_STDERR))


def _write(data: bytes) -> None:
    """Write past Python's streams, which would fail again at exit if this fails.

    The program may have left SIGPIPE to the system, which then ends it.
    """
    # Not signal, of which the program may have its own.
    import _signal as signal  # type: ignore[import-not-found]  # noqa: PLC0415

    mine = {signal.SIGPIPE}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, mine)
    try:
        while data:
            data = data[os.write(_STDERR, data) :]
    except BrokenPipeError:
        if signal.SIGPIPE not in before:
            signal.sigtimedwait(mine, 0)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
