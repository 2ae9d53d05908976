"""``whence run --help``."""

from __future__ import annotations

import argparse

from whence.cli import _settings

_USAGE = "whence run [options] [--] script.py ... | -m module ... | -c code ..."
_DESCRIPTION = """\
Run a Python program as python does, record it, and say what was recorded. Options end
where the program begins: what follows is the program's. The exit code is the program's;
2 if nothing could be run.
"""
_EPILOG = """\
Options may also be variables, like WHENCE_MAX_SIZE=200MB or WHENCE_C_CALLS=1, or keys
of [tool.whence] in the nearest pyproject.toml, like max_size = "200MB". The command
line counts before variables, and these before the file.
"""


def show() -> int:
    """Print what there is to say about the options."""
    parser = argparse.ArgumentParser(
        prog="whence run", usage=_USAGE, description=_DESCRIPTION, epilog=_EPILOG
    )
    for setting in _settings.ALL:
        names = [f"-{setting.letter}"] if setting.letter else []
        if setting.kind == "flag":
            action = argparse.BooleanOptionalAction
            parser.add_argument(
                *names, setting.option, action=action, help=setting.about
            )
        else:
            parser.add_argument(
                *names, setting.option, metavar=setting.metavar, help=setting.about
            )
    parser.print_help()
    return 0
