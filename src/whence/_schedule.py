"""Which steps of a program are recorded: ``whence.schedule``."""

import enum


class Action(enum.Enum):
    """What a recorder does during a step."""

    NONE = "none"
    WARMUP = "warmup"  # trace, and throw away
    RECORD = "record"
    SAVE = "save"  # record, and close the file at the end of the step


class Schedule:
    """Steps in cycles; call it with the number of a step, from 0, for its action."""

    def __init__(  # noqa: PLR0913
        self,
        *,
        wait: int,
        warmup: int,
        active: int,
        repeat: int,
        skip_first: int,
        skip_first_wait: int,
    ) -> None:
        self._wait = wait
        self._warmup = warmup
        self._active = active
        self.repeat = repeat
        self._skip_first = skip_first
        self._skip_first_wait = skip_first_wait

    def __call__(self, step: int) -> Action:
        step -= self._skip_first
        if step < 0:
            return Action.NONE
        if self._skip_first_wait:
            step += self._wait
        length = self._wait + self._warmup + self._active
        cycle, place = divmod(step, length)
        if self.repeat and cycle >= self.repeat:
            return Action.NONE
        if place < self._wait:
            return Action.NONE
        if place < self._wait + self._warmup:
            return Action.WARMUP
        return Action.SAVE if place == length - 1 else Action.RECORD

    def __repr__(self) -> str:
        return (
            f"whence.schedule(wait={self._wait}, warmup={self._warmup}, "
            f"active={self._active}, repeat={self.repeat}, "
            f"skip_first={self._skip_first}, skip_first_wait={self._skip_first_wait})"
        )


def schedule(  # noqa: PLR0913
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Schedule:
    """Return a schedule for ``record(schedule=...)``.

    After ``skip_first`` steps come cycles: ``wait`` steps in which nothing is done,
    ``warmup`` steps that are traced and thrown away, and ``active`` ones that are
    recorded, each cycle into a file of its own. ``repeat`` cycles, or without end if it
    is 0. ``skip_first_wait`` other than 0 leaves the wait of the first cycle out.
    """
    numbers = {
        "wait": wait,
        "warmup": warmup,
        "active": active,
        "repeat": repeat,
        "skip_first": skip_first,
        "skip_first_wait": skip_first_wait,
    }
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            message = f"{name} must be a number of steps, 0 or more, not {number!r}"
            raise ValueError(message)
    if active == 0:
        message = "active must be 1 or more: else nothing would ever be recorded"
        raise ValueError(message)
    if warmup == 0:
        import warnings  # noqa: PLC0415

        message = "without warmup the first step of a cycle pays for the tracer's start"
        warnings.warn(message, stacklevel=2)
    return Schedule(**numbers)
