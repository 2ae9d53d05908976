"""What ``whence run`` can be told, wherever it is told.

Each setting is an option of the command line, a variable and a key of a file.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Given = dict[str, tuple[Any, str]]  # by name: the value, and where it was given

_YES = ("1", "true", "yes", "on")
_NO = ("0", "false", "no", "off")
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {  # in a file
    "flag": ((bool,), "true or false"),
    "text": ((str,), "a text"),
    "count": ((int,), "a number"),
    "amount": ((int, float, str), "a number or a text"),
}
_FOR_THE_COMMAND = ("output", "force", "quiet")  # the others are for record()


class UsageError(Exception):
    """Something was asked for that there is not. The message is one line."""


class Setting:
    """One of them. ``kind`` says which values it takes.

    ``"flag"``; ``"text"``; ``"amount"``, a number or a text with a unit; ``"count"``;
    ``"texts"``, each given by itself; ``"words"``, which a comma separates.
    """

    __slots__ = ("about", "kind", "letter", "metavar", "name")

    def __init__(
        self, name: str, kind: str, metavar: str, about: str, letter: str = ""
    ) -> None:
        self.name = name
        self.kind = kind
        self.metavar = metavar
        self.about = about
        self.letter = letter

    @property
    def option(self) -> str:
        """How it is called on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """How it is called in the environment."""
        return "WHENCE_" + self.name.upper()


_FILE_HELP = "the recording; %%p is the process, %%t the time, %%%% a percent sign"
ALL = (
    Setting("output", "text", "FILE", _FILE_HELP, "o"),
    Setting("force", "flag", "", "replace FILE if it is there", "f"),
    Setting("quiet", "flag", "", "print nothing of our own", "q"),
    Setting("calls", "flag", "", "record calls of Python functions (default: yes)"),
    Setting("c_calls", "flag", "", "record calls of C functions, too"),
    Setting("exceptions", "flag", "", "record where exceptions are raised and handled"),
    Setting("gc", "flag", "", "record runs of the garbage collector (default: yes)"),
    Setting("memory", "flag", "", "record blocks of memory, with their stacks"),
    Setting("memory_all", "flag", "", "the same, and those of C libraries, mappings"),
    Setting("memory_detail", "text", "HOW", "alloc; full: stacks of frees, too; state"),
    Setting("memory_skip", "words", "WHAT", "leave out freed, moved, allocated, ..."),
    Setting("native", "flag", "", "native frames in the stacks of memory, too"),
    Setting("keep", "amount", "TIME", "keep the last so many seconds, 30 or 5m"),
    Setting("max_size", "amount", "SIZE", "use no more than that: a ring, like 200MB"),
    Setting("pack", "flag", "", "pack the file at the end (default: yes)"),
    Setting("follow", "flag", "", "record child processes, into files beside this one"),
    Setting("dump_on", "words", "WHAT", "copy on exception, SIGUSR2, span>500ms, ..."),
    Setting("include", "texts", "GLOB", "only functions of these files or names"),
    Setting("exclude", "texts", "GLOB", "no functions of these files or names"),
    Setting("max_depth", "count", "N", "no calls deeper than that"),
    Setting("min_duration", "amount", "TIME", "count shorter calls, like 20us"),
    Setting("chunk_size", "amount", "SIZE", "what a thread takes of it at a time"),
)
BY_NAME = {setting.name: setting for setting in ALL}


def unknown(what: str, name: str, known: Iterable[str]) -> UsageError:
    """Say that there is no such thing, and what may have been meant."""
    import difflib  # noqa: PLC0415

    near = difflib.get_close_matches(name, list(known), 1)
    return UsageError(f"{what}: did you mean {near[0]}?" if near else what)


def from_text(setting: Setting, text: str, source: str) -> Any:
    """Read a value from an option or a variable."""
    if setting.kind == "flag":
        if text.lower() not in _YES + _NO:
            message = f"{source} must be 1 or 0, not {text!r}"
            raise UsageError(message)
        return text.lower() in _YES
    if setting.kind == "count":
        return int(text) if text.isdecimal() else text
    if setting.kind in ("texts", "words"):
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def from_file(setting: Setting, value: object, source: str) -> Any:
    """Check the type of a value of a file; its meaning is checked later."""
    if setting.kind in ("texts", "words"):
        what = "a list of texts"
        values = [value] if isinstance(value, str) else value
        if isinstance(values, list) and all(isinstance(v, str) for v in values):
            return values
    else:
        types, what = _TYPES[setting.kind]
        if isinstance(value, types) and isinstance(value, bool) == (types == (bool,)):
            return value
    message = f"{source} must be {what}, not {value!r}"
    raise UsageError(message)


def settle(given: Given) -> dict[str, Any]:
    """Return the arguments of ``record()``; errors say where they come from."""
    arguments = {
        name: value
        for name, (value, _) in given.items()
        if name not in _FOR_THE_COMMAND
    }
    sources = {name: source for name, (_, source) in given.items()}
    if arguments.pop("memory_all", False):
        arguments["memory"] = "all"
        sources["memory"] = sources["memory_all"]
    if arguments.get("native") and not arguments.get("memory"):
        what = "native frames belong to stacks of memory: add --memory or --memory-all"
        message = f"{sources['native']}: {what}"
        raise UsageError(message)
    for name, value in arguments.items():
        if name != "native":  # which is nothing by itself
            _try({name: value}, sources[name])
    if "memory_detail" in arguments and not arguments.get("memory"):
        what = "there is no detail without memory: add --memory or --memory-all"
        message = f"{sources['memory_detail']}: {what}"
        raise UsageError(message)
    _try(arguments, given.get("max_size", ("", ""))[1])  # does the rest go with it?
    return arguments


def _try(arguments: dict[str, Any], source: str) -> None:
    """Have the recorder look at them."""
    from whence._record import record  # noqa: PLC0415

    try:
        record(**arguments)
    except (TypeError, ValueError) as error:
        message = f"{source}: {error}"
        raise UsageError(message) from None
