"""rich's console, as the verbs want it. Imported by the first line that is printed."""

from __future__ import annotations

from rich.console import Console


class LineConsole(Console):
    """Prints lines as they are; who stops to read them is no error of ours."""

    def __init__(self) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Leave it to the command line; rich would end the process with code 1."""
        raise BrokenPipeError
