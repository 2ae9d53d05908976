"""The parser of the command line, whose errors are one line like all others."""

from __future__ import annotations

import argparse

from whence.cli._terminal import complain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

CANNOT = 2


class Parser(argparse.ArgumentParser):
    """As its parent; its verbs are of this kind, too."""

    def error(self, message: str) -> NoReturn:
        """Say in one line what is wrong, and what to do."""
        complain(f"whence: {message} ({self.prog} --help says more)")
        self.exit(CANNOT)
