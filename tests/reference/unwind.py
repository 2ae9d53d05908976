"""A slow twin of native/unwind/table.cpp: unwind rules from the bytes of an ELF file.

It reads the file, not memory, and runs the programs in it on a table of all registers
(unwind_rows.py); only then does it say what a rule can say of the row that is asked
for. Expressions are terms ("register plus number", "what lies there").
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from pathlib import Path

from reference.unwind_rows import (
    RIP,
    SIGNAL,
    UNSUPPORTED,
    Common,
    Reader,
    Rule,
    Run,
    Unreadable,
    rule_of,
)

SIGNAL_RETURN = bytes.fromhex("48c7c00f000000 0f05")  # mov $15, %rax; syscall


class Elf:
    """Where addresses of an ELF file of 64 bits lie in it."""

    def __init__(self, path: Path | str) -> None:
        self.data = Path(path).read_bytes()
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise Unreadable
        offset, size, count = (
            struct.unpack_from("<Q", self.data, 32)[0],
            *struct.unpack_from("<HH", self.data, 54),
        )
        self.segments: list[
            tuple[int, int, int, int]
        ] = []  # address, size, place, flags
        self.header = 0
        for i in range(count):
            kind, flags, place, address, _, length = struct.unpack_from(
                "<IIQQQQ", self.data, offset + i * size
            )
            if kind == 1:
                self.segments.append((address, length, place, flags))
            elif kind == 0x6474E550:  # PT_GNU_EH_FRAME
                self.header = address

    def at(self, address: int) -> Reader:
        """Return what lies from an address on, to the end of its segment."""
        for begin, size, place, _ in self.segments:
            if begin <= address < begin + size:
                skipped = address - begin
                return Reader(self.data[place + skipped : place + size], address)
        raise Unreadable

    def code(self) -> list[tuple[int, int]]:
        """Return the address and size of each segment that can be run."""
        return [(begin, size) for begin, size, _, flags in self.segments if flags & 1]


class Table:
    """The unwind table of a file."""

    def __init__(self, path: Path | str) -> None:
        self.elf = Elf(path)
        header = self.elf.at(self.elf.header)
        version, frames, counts, rows = (header.take("B") for _ in range(4))
        if version != 1 or rows != 0x3B:
            raise Unreadable
        header.pointer(frames, self.elf.header)
        count = header.pointer(counts, self.elf.header)
        numbers = struct.unpack_from(f"<{2 * count}i", header.data, header.at)
        self.begins = [self.elf.header + n for n in numbers[::2]]
        self.entries = [self.elf.header + n for n in numbers[1::2]]
        self.commons: dict[int, Common] = {}

    def rule(self, pc: int) -> Rule:
        """Return how to leave a frame at this address of the file."""
        try:
            return self._rule(pc)
        except Unreadable:
            return Rule(UNSUPPORTED)

    def _rule(self, pc: int) -> Rule:
        index = bisect_right(self.begins, pc) - 1
        if index < 0:
            raise Unreadable
        entry = self._entry(self.entries[index])
        place = entry.base
        common = self._common(place - entry.take("I"))
        begin = entry.pointer(common.pointers)
        size = entry.pointer(common.pointers & 15)
        if common.has_extra:
            entry.part(entry.leb())
        if not begin <= pc < begin + size:
            raise Unreadable
        if common.is_signal and SIGNAL_RETURN in self._code(begin):
            return Rule(SIGNAL)
        if common.returns != RIP:
            raise Unreadable
        program = entry.part(entry.left)
        common.program.at = 0
        return rule_of(Run(common, begin, pc).run(program))

    def _code(self, begin: int) -> bytes:
        """Return what a signal handler would return to there, and a byte before it."""
        reader = self.elf.at(begin)
        return reader.data[reader.at :][: len(SIGNAL_RETURN) + 1]

    def _entry(self, address: int) -> Reader:
        reader = self.elf.at(address)
        return reader.part(reader.take("I"))

    def _common(self, address: int) -> Common:
        if address not in self.commons:
            self.commons[address] = read_common(self._entry(address))
        return self.commons[address]


def read_common(entry: Reader) -> Common:
    """Read a CIE."""
    number, version = entry.take("I"), entry.take("B")
    if number != 0 or version not in (1, 3):
        raise Unreadable
    letters = ""
    while byte := entry.take("B"):
        letters += chr(byte)
    code_step, data_step = entry.leb(), entry.leb(signed=True)
    returns = entry.take("B") if version == 1 else entry.leb()
    pointers = 0
    if letters and letters[0] != "z":
        raise Unreadable
    extra = entry.part(entry.leb()) if letters else entry
    for letter in letters[1:]:
        if letter == "R":
            pointers = extra.take("B")
        elif letter == "L":
            extra.take("B")
        elif letter == "P":
            extra.pointer(extra.take("B") & 0x7F)
        elif letter not in "SBG":
            raise Unreadable
    program = entry.part(entry.left)
    return Common(
        code_step, data_step, returns, pointers, bool(letters), "S" in letters, program
    )
