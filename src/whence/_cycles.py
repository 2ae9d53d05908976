"""A recorder with a schedule: each cycle of its steps goes into a file of its own."""

import os

from whence import _core, _process
from whence._schedule import Action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whence._record import record
    from whence._schedule import Schedule

_RECORDS = (Action.RECORD, Action.SAVE)


class Cycles:
    """Where in its schedule a recorder is. All calls come under the recorder's lock."""

    def __init__(self, schedule: "Schedule") -> None:
        self._schedule = schedule
        self._action = Action.NONE
        self._step = 0
        self._cycle = 0
        self._span: _core.span | None = None

    def begin(self, recorder: "record") -> None:
        self._step = self._cycle = 0
        self._action = Action.NONE
        self._turn_to(recorder, self._schedule(0))

    def step(self, recorder: "record") -> None:
        """End the step, and with its last one the cycle; begin the next."""
        self._end_span()
        self._step += 1
        if self._action is Action.SAVE:
            self._action = Action.NONE
            recorder._finish_cycle()  # noqa: SLF001
            if _process.current is not recorder:
                return  # whoever was told of the cycle has stopped it
        self._turn_to(recorder, self._schedule(self._step))

    def end(self, recorder: "record") -> None:
        """End in the middle of a cycle: what it has recorded is there, and told of."""
        self._end_span()
        action, self._action = self._action, Action.NONE
        if action in _RECORDS:
            recorder._finish_cycle()  # noqa: SLF001
        elif action is Action.WARMUP:
            recorder._discard()  # noqa: SLF001

    def _turn_to(self, recorder: "record", action: Action) -> None:
        before, self._action = self._action, action
        if action is Action.WARMUP and before is not Action.WARMUP:
            self._cycle += 1
            recorder._begin(self._path(recorder))  # noqa: SLF001
        elif action in _RECORDS and before not in _RECORDS:
            if before is Action.WARMUP:
                recorder._discard()  # noqa: SLF001
            else:
                self._cycle += 1
            recorder._begin(self._path(recorder))  # noqa: SLF001
        if action in _RECORDS:
            self._span = _core.span("step", number=self._step)
            self._span.__enter__()

    def _end_span(self) -> None:
        span, self._span = self._span, None
        if span is not None:
            span.__exit__(None, None, None)

    def _path(self, recorder: "record") -> str | None:
        wanted = recorder._wanted  # noqa: SLF001
        if self._schedule.repeat == 1:
            return wanted
        stem = (wanted or f"whence-{os.getpid()}.whence").removesuffix(".whence")
        return f"{stem}-{self._cycle}.whence"
