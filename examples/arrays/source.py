"""Texts and their tokens, each with the place that it stands at."""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass

from whence.handles import SourceRange

_TOKEN = re.compile(
    r"(?P<space>\s+|#.*)"
    r"|(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<symbol>[-+*/(),=])"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of one line. Columns are bytes of UTF-8, from 0, as in a SourceRange."""

    kind: str  # "number", "name", "symbol" or "end"
    text: str
    line: int
    column: int
    end_column: int


class Source:
    """A text and its name, which need not be a file."""

    def __init__(self, text: str, filename: str) -> None:
        self.filename = filename
        self.lines = text.split("\n")

    def tokens(self) -> list[Token]:
        """Return all tokens, the last of kind "end". SyntaxError for other texts."""
        tokens = []
        for number, line in enumerate(self.lines, 1):
            place = column = 0
            while place < len(line):
                found = _TOKEN.match(line, place)
                width = len((found[0] if found else line[place]).encode())
                if found is None:
                    at = self._at(number, column, number, column + width)
                    message = f"{line[place]!r} means nothing here"
                    raise self.error(message, at)
                if found.lastgroup and found.lastgroup != "space":
                    token = Token(
                        *(found.lastgroup, found[0]),
                        *(number, column, column + width),
                    )
                    tokens.append(token)
                place, column = found.end(), column + width
        end = len(self.lines[-1].encode())
        return [*tokens, Token("end", "the end", len(self.lines), end, end)]

    def range(self, first: Token, last: Token) -> SourceRange:
        """Return the place from one token to another, both included."""
        return self._at(first.line, first.column, last.line, last.end_column)

    def error(self, message: str, at: SourceRange) -> SyntaxError:
        """Return an error that Python shows with the line and carets."""
        line = self.lines[at.line - 1]
        last_line = self.lines[(at.end_line or at.line) - 1]
        details = (
            *(self.filename, at.line, _character(line, at.column), line),
            *(at.end_line, _character(last_line, at.end_column)),
        )
        return SyntaxError(message, details)

    def show(self) -> None:
        """Make the lines known to tracebacks, also if there is no such file."""
        lines = [f"{line}\n" for line in self.lines]
        # No time of change: checkcache() then leaves the entry alone.
        linecache.cache[self.filename] = (
            *(sum(map(len, lines)), None),
            *(lines, self.filename),
        )

    def _at(self, line: int, column: int, end_line: int, end: int) -> SourceRange:
        return SourceRange(self.filename, line, column, end_line, end)


def _character(line: str, column: int | None) -> int:
    """Return a column as SyntaxError counts them: characters, from 1."""
    return len(line.encode()[:column].decode()) + 1
