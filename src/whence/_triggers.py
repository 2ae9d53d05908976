"""When a recording dumps itself: ``dump_on=``.

A trigger is a text: ``"exception"`` (one that nobody catches), the name of a signal
(``"SIGUSR2"``) or a span that takes long (``"span>500ms"``, ``"span load>2s"``).
"""

import signal
import sys
import threading

from whence import _core, _units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Dump = Callable[[str], None]

# Whoever asks for a dump on one of these does not mean to end the program by it.
_FREE_TO_USE = {signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD, signal.SIGCONT}
_FREE_TO_USE |= {signal.SIGURG, signal.SIGWINCH}
_NEVER_HEARD_OF = ("SIGKILL", "SIGSTOP")


class Triggers:
    """What was asked for, checked; ``put_in`` and ``take_out`` the hooks for it."""

    def __init__(self, wanted: "Iterable[str]") -> None:
        self._exception = False
        self._signals: list[signal.Signals] = []
        self._spans: dict[str | None, int] = {}  # name, or None for any: ns
        self._undo: list[Callable[[], object]] = []
        for trigger in (wanted,) if isinstance(wanted, str) else wanted:
            self._add(trigger)

    def _add(self, trigger: "Any") -> None:
        if isinstance(trigger, signal.Signals):
            self._signals.append(trigger)
            return
        text = trigger if isinstance(trigger, str) else ""
        what, _, limit = text.partition(">")
        words = what.split(maxsplit=1)
        if text == "exception":
            self._exception = True
        elif text in _NEVER_HEARD_OF:
            message = f"no program hears of {text}: choose another signal"
            raise ValueError(message)
        elif text in signal.Signals.__members__:
            self._signals.append(signal.Signals[text])
        elif limit and words[:1] == ["span"]:
            name = words[1].strip() if len(words) > 1 else None
            self._spans[name] = _units.nanoseconds(limit, "a span's limit")
        else:
            message = (
                "dump_on takes 'exception', the name of a signal like 'SIGUSR2' and "
                f"spans like 'span>500ms' or 'span load>2s', not {trigger!r}"
            )
            raise ValueError(message)

    def put_in(self, dump: "Dump") -> None:
        own = threading.current_thread()
        if self._signals and own is not threading.main_thread():
            message = "dump_on with a signal can be started in the main thread only"
            raise ValueError(message)
        if self._exception:
            self._watch_exceptions(dump)
        for number in self._signals:
            self._watch_signal(number, dump)
        if self._spans:
            self._watch_spans(dump)

    def take_out(self) -> None:
        """Take the hooks out; one that must stay only passes on what it gets."""
        while self._undo:
            self._undo.pop()()

    def _watch_exceptions(self, dump: "Dump") -> None:
        def watch(module: "Any") -> None:
            before = module.excepthook
            on = True

            def hook(*args: "Any") -> None:
                if on:
                    dump("exception")
                before(*args)

            def undo() -> None:
                nonlocal on
                on = False
                if module.excepthook is hook:
                    module.excepthook = before

            module.excepthook = hook
            self._undo.append(undo)

        watch(sys)
        watch(threading)

    def _watch_signal(self, number: signal.Signals, dump: "Dump") -> None:
        before = signal.getsignal(number)
        if not callable(before) and _core.has_handler(number):
            message = (
                f"{number.name} has a handler that Python knows nothing of: "
                "choose another signal"
            )
            raise ValueError(message)
        on = True

        def handler(*args: "Any") -> None:
            if on:
                dump(number.name)
            if callable(before):
                before(*args)
            elif before == signal.SIG_DFL and number not in _FREE_TO_USE:
                signal.signal(number, signal.SIG_DFL)
                signal.raise_signal(number)

        def undo() -> None:
            nonlocal on
            on = False
            if threading.current_thread() is not threading.main_thread():
                return  # only that may; the handler passes on what it gets
            if signal.getsignal(number) is handler:
                signal.signal(number, before)

        signal.signal(number, handler)
        self._undo.append(undo)

    def _watch_spans(self, dump: "Dump") -> None:
        def told(name: str, nanoseconds: int) -> None:
            limit = self._spans.get(name, self._spans.get(None))
            if limit is not None and nanoseconds >= limit:
                dump(f"span {name}")

        _core.watch_spans(min(self._spans.values()), told)
        self._undo.append(lambda: _core.watch_spans(0, None))
