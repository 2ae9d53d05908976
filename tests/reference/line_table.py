"""The slow twin of the decoder of line tables (PEP 657), for lines only."""

from __future__ import annotations


def line_at(table: bytes, first_line: int, offset: int) -> int | None:
    """Give the line of the instruction at an offset in bytes, or None."""
    data = list(table)

    def byte() -> int:
        return data.pop(0) if data else 0

    def varint() -> int:
        value = shift = 0
        while True:
            next_ = byte()
            value |= (next_ & 0x3F) << shift & 0xFFFFFFFF
            shift += 6
            if not next_ & 0x40:
                return value

    line, end = _wrap(first_line), 0
    while data:
        head = byte()
        end += 2 * ((head & 7) + 1)
        kind = head >> 3 & 15
        if kind in {13, 14}:
            delta = varint()
            line = _wrap(line + (-(delta >> 1) if delta & 1 else delta >> 1))
            for _ in range(3 if kind == 14 else 0):
                varint()
        elif kind < 13:
            line = _wrap(line + max(kind - 10, 0))
            for _ in range(2 if kind >= 10 else 1):
                byte()
        if offset < end:
            return None if kind == 15 or line == -1 else line
    return None


def _wrap(line: int) -> int:
    return (line + 2**31) % 2**32 - 2**31
