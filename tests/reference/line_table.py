"""The slow twin of the decoder of line tables (PEP 657), for lines only."""

from __future__ import annotations


class _Table:
    def __init__(self, table: bytes) -> None:
        self.data = list(table)

    def byte(self) -> int:
        return self.data.pop(0) if self.data else 0

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= ((byte & 0x3F) << shift) & 0xFFFFFFFF
            shift += 6
            if not byte & 0x40:
                return value

    def entry(self, kind: int) -> int:
        """Read one entry behind its head, and give by how much the line changes."""
        if kind == 15:
            return 0
        if kind < 13:
            for _ in range(2 if kind >= 10 else 1):
                self.byte()
            return max(kind - 10, 0)
        delta = self.varint()
        for _ in range(3 if kind == 14 else 0):
            self.varint()
        return -(delta >> 1) if delta & 1 else delta >> 1


def lines(table: bytes, first_line: int) -> list[int]:
    """Give the line of each stretch of instructions that has one."""
    entries = _Table(table)
    line, found = first_line, []
    while entries.data:
        kind = entries.byte() >> 3 & 15
        line = (line + entries.entry(kind) + 2**31) % 2**32 - 2**31
        if kind != 15 and line != -1:
            found.append(line)
    return found


def line_at(table: bytes, first_line: int, offset: int) -> int | None:
    """Give the line of the instruction at an offset in bytes, or None."""
    entries = _Table(table)
    line, end = first_line, 0
    while entries.data:
        head = entries.byte()
        end += 2 * ((head & 7) + 1)
        kind = head >> 3 & 15
        line = (line + entries.entry(kind) + 2**31) % 2**32 - 2**31
        if offset < end:
            return None if kind == 15 or line == -1 else line
    return None
