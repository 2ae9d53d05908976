"""The slow twin of recoded payloads: FORMAT.md, "Packed chunks"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reference.recording import KINDS, Bad, take_varint, unzigzag, varint, zigzag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PLACES, OWNER = 16, 0x65
ALL = 2**64


class Addresses:
    """The addresses of a chunk, one after the other: what stands for each."""

    def __init__(self) -> None:
        self.recent: list[int] = []
        self.last = 0
        self.seen = False

    def use(self, address: int) -> None:
        if address in self.recent:
            self.recent.remove(address)
        self.recent = [address, *self.recent][:PLACES]
        self.last = address
        self.seen = True

    def recode(self, value: int) -> int:
        address = (self.last + unzigzag(value)) % ALL
        if address in self.recent:
            out = self.recent.index(address)
        else:
            out = value + PLACES
            if out >= ALL:
                raise Bad
        self.use(address)
        return out

    def restore(self, value: int) -> int:
        if value < PLACES:
            if value >= len(self.recent):
                raise Bad
            address = self.recent[value]
            out = zigzag((address - self.last + ALL // 2) % ALL - ALL // 2)
        else:
            out = value - PLACES
            address = (self.last + unzigzag(out)) % ALL
            if address in self.recent:
                raise Bad
        self.use(address)
        return out


def changed(
    data: bytes, addresses: Addresses, change: Callable[[int], int]
) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        code, begin = data[at], at
        at += 1
        if code >> 5 == 0:
            raise Bad
        if code >> 5 == 7:
            size, at = take_varint(data, at)
            at += size
            if at > len(data):
                raise Bad
            yield data[begin:at]
            yield b""
            continue
        kind = KINDS.get(code)
        yield data[begin:at]
        for place in range(code >> 5):
            begin = at
            value, at = take_varint(data, at)
            if kind and kind.fields[place][1] == "address":
                if varint(value) != data[begin:at]:
                    raise Bad
                yield varint(change(value))
            else:
                yield data[begin:at]
        if code == OWNER:
            addresses.last = 0
        yield b""  # the end of a record


def recode(payload: bytes) -> bytes:
    """Give the recoded payload, or nothing where there is no point in it."""
    addresses = Addresses()
    try:
        out = b"".join(changed(payload, addresses, addresses.recode))
    except Bad:
        return b""
    return out if addresses.seen and len(out) <= len(payload) else b""


def restore(recoded: bytes, *, is_cut: bool = False) -> bytes | None:
    """Give the payload; of one that is cut, its whole records."""
    addresses = Addresses()
    out, whole = bytearray(), 0
    try:
        for part in changed(recoded, addresses, addresses.restore):
            out += part
            whole = whole if part else len(out)
    except Bad:
        return bytes(out[:whole]) if is_cut else None
    return bytes(out)
