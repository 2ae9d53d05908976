"""As much of protocol buffers as it takes to write a message."""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_VARINT, _EIGHT_BYTES, _BYTES = 0, 1, 2
_MORE = 0x80
_SHORT = [bytes([value]) for value in range(_MORE)]


def varint(value: int) -> bytes:
    """Encode an unsigned number, or a signed one of 64 bits."""
    if 0 <= value < _MORE:
        return _SHORT[value]
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value >= _MORE:
        out.append(value & 0x7F | _MORE)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """Encode a field of a number. Zero is what a missing field is read as."""
    return varint(field << 3 | _VARINT) + varint(value) if value else b""


def double(field: int, value: float) -> bytes:
    """Encode a field of a number with a fraction."""
    return varint(field << 3 | _EIGHT_BYTES) + struct.pack("<d", value)


def data(field: int, value: bytes) -> bytes:
    """Encode a field of bytes, or of a message or packed numbers already encoded."""
    return varint(field << 3 | _BYTES) + varint(len(value)) + value


def text(field: int, value: str) -> bytes:
    """Encode a field of text."""
    return data(field, value.encode())


def packed(field: int, values: Iterable[int]) -> bytes:
    """Encode a repeated field of numbers."""
    return data(field, b"".join(map(varint, values)))
