"""The command line of ``whence run``: options end where the program begins.

By hand and not by argparse: what is imported here is there when the program begins, in
the place of a module of its own with that name.
"""

from __future__ import annotations

from whence.cli import _program, _settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from whence.cli._program import Program
    from whence.cli._settings import Given, Setting

_LETTERS = {setting.letter: setting for setting in _settings.ALL if setting.letter}
_FLAGS = [setting for setting in _settings.ALL if setting.kind == "flag"]
_OF_PYTHON = "bBdEiIOPRsStuvVWxX"  # its options, of which we know none


class HelpWanted(Exception):  # noqa: N818
    """Somebody asks for ``--help``."""


def read(arguments: list[str]) -> tuple[Given, Program]:
    """Return what the options say, and the program that follows them."""
    given: Given = {}
    rest = iter(arguments)
    for argument in rest:
        if argument in ("--", "-") or not argument.startswith("-"):
            script = _value_of(argument, rest) if argument == "--" else argument
            kind = _program.Stdin if script == "-" else _program.Script
            return given, kind(script, list(rest))
        if argument.startswith("--"):
            _read_long(argument, rest, given)
        elif (program := _read_letters(argument, rest, given)) is not None:
            return given, program
    message = "nothing to run: give a script, -m MODULE or -c CODE"
    raise _settings.UsageError(message)


def _read_long(argument: str, rest: Iterator[str], given: Given) -> None:
    option, equals, text = argument.partition("=")
    name = option[2:].replace("-", "_")
    if name == "help":
        raise HelpWanted
    setting = _settings.BY_NAME.get(name)
    if setting is None:
        setting = _settings.BY_NAME.get(name.removeprefix("no_"))
        if setting not in _FLAGS:
            known = [setting.option for setting in _settings.ALL]
            known += [f"--no-{setting.option[2:]}" for setting in _FLAGS]
            what = f"there is no option {option}"
            raise _settings.unknown(what, option, known)
    if setting.kind != "flag":
        _take(setting, text if equals else _value_of(option, rest), option, given)
    elif equals:
        message = f"{option} takes no value"
        raise _settings.UsageError(message)
    else:
        given[setting.name] = (name == setting.name, option)


def _read_letters(argument: str, rest: Iterator[str], given: Given) -> Program | None:
    """Read ``-fq``, ``-oFILE``, ``-m MODULE`` and the like."""
    for place, letter in enumerate(argument[1:], 2):
        option, joined = f"-{letter}", argument[place:]
        if letter in "mc":
            kind = _program.Module if letter == "m" else _program.Command
            return kind(joined or _value_of(option, rest), list(rest))
        setting = _LETTERS.get(letter)
        if letter == "h":
            raise HelpWanted
        if setting is None:
            message = f"there is no option {option}"
            if letter in _OF_PYTHON:
                message += f" here; for Python's: python {argument} -m whence run ..."
            raise _settings.UsageError(message)
        if setting.kind != "flag":
            _take(setting, joined or _value_of(option, rest), option, given)
            break
        given[setting.name] = (True, option)
    return None


def _value_of(option: str, rest: Iterator[str]) -> str:
    for value in rest:
        return value
    message = f"something is missing after {option}"
    raise _settings.UsageError(message)


def _take(setting: Setting, text: str, option: str, given: Given) -> None:
    if setting.kind == "texts":
        value = [text]  # whatever is in it
    else:
        value = _settings.from_text(setting, text, option)
    if isinstance(value, list):
        value = [*given.get(setting.name, ([], ""))[0], *value]
    given[setting.name] = (value, option)
