"""What native/elf reads, read slowly: ELF files by their specification."""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import NamedTuple

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
NOTE = struct.Struct("<III")

MOST_SECTIONS = 1 << 18
MOST_SECTION_NAMES = 1 << 24
MOST_SYMBOLS = 1 << 24
MOST_NOTES = 1 << 16
MOST_NOTE_PLACES = 64
LONGEST_BUILD_ID = 64
LONGEST_DEBUG_LINK = 255
LONGEST_NAME = 1 << 14
MOST_ALIASES = 16
END = (1 << 64) - 1

SHT_NULL, SHT_SYMTAB, SHT_STRTAB, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 0, 2, 3, 7, 8, 11
SHF_EXECINSTR, SHF_COMPRESSED = 4, 0x800
PT_LOAD, PT_NOTE = 1, 4


class Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int

    @property
    def has_bytes(self) -> bool:
        return self.type not in (SHT_NULL, SHT_NOBITS) and self.size != 0


class Symbol(NamedTuple):
    """Sorts as the index does: the best of those that start together comes first."""

    start: int
    kind: int  # 4: has no size, 2: is local, 1: from .dynsym
    beyond: int  # less the farther it reaches
    name: int
    section: int
    size: int


class Elf:
    """A file; ValueError if it is none that is understood."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        if data[:4] != b"\x7fELF":
            raise ValueError("no ELF file")
        header = HEADER.unpack(self.take(0, HEADER.size))
        ident, kind, machine, _, _, phoff, shoff, _, _, phsize, phnum = header[:11]
        shsize, shnum, names = header[11:]
        if ident[4:6] != b"\x02\x01" or machine not in (62, 183) or kind not in (2, 3):
            raise ValueError("another kind of ELF file")
        self.segments = self._segments(phoff, phsize, phnum)
        loaded = [segment[3] for segment in self.segments if segment[0] == PT_LOAD]
        self.load_address = min(loaded, default=0)
        self.sections: list[Section] = []
        self.debug_link: bytes | None = None
        self.has_debug_info = False
        self.debug_size = 0
        if shoff:
            self._read_sections(shoff, shsize, shnum, names)
        self.build_id = self._build_id()

    @property
    def has_symbols(self) -> bool:
        return self.section_of_type(SHT_SYMTAB) is not None

    def take(self, offset: int, size: int) -> bytes:
        if offset + size > len(self.data):
            raise ValueError("a part is missing")
        return self.data[offset : offset + size]

    def _segments(self, offset: int, size: int, count: int) -> list[tuple[int, ...]]:
        if not offset or not count:
            return []
        if size != SEGMENT.size:
            raise ValueError("damaged")
        return list(SEGMENT.iter_unpack(self.take(offset, count * size)))

    def _read_sections(self, offset: int, size: int, count: int, names: int) -> None:
        if size != SECTION.size:
            raise ValueError("damaged")
        first = Section(*SECTION.unpack(self.take(offset, size)))
        count = count or first.size
        if count > MOST_SECTIONS:
            raise ValueError("too many sections")
        table = self.take(offset, count * size)
        self.sections = [Section(*row) for row in SECTION.iter_unpack(table)]
        place = first.link if names == 0xFFFF else names
        text = b""
        if place:
            if place >= len(self.sections):
                raise ValueError("damaged")
            section = self.sections[place]
            if section.size > MOST_SECTION_NAMES:
                raise ValueError("too many names")
            if section.has_bytes:
                text = self.take(section.offset, section.size)
        for section in self.sections:
            if section.has_bytes:
                self._look_at(section, text[section.name :].split(b"\0")[0])

    def _look_at(self, section: Section, name: bytes) -> None:
        if name.startswith((b".debug", b".zdebug")) or section.flags & SHF_COMPRESSED:
            size = self._unpacked_size(section, name.startswith(b".zdebug"))
            self.debug_size = min(END, self.debug_size + size)
        if name in (b".debug_info", b".zdebug_info"):
            self.has_debug_info = True
        if name == b".gnu_debuglink" and self.debug_link is None:
            size = min(section.size, LONGEST_DEBUG_LINK + 1)
            link, end, _ = self.data[section.offset :][:size].partition(b"\0")
            if end and link:
                self.debug_link = link

    def _unpacked_size(self, section: Section, old_way: bool) -> int:
        if not old_way and not section.flags & SHF_COMPRESSED:
            return section.size
        head = self.data[section.offset :][: 12 if old_way else 24]
        if len(head) < (12 if old_way else 24):
            return END
        if old_way and head[:4] != b"ZLIB":
            return section.size
        if old_way:
            return max(section.size, int.from_bytes(head[4:], "big"))
        return max(section.size, int.from_bytes(head[8:16], "little"))

    def section_of_type(self, kind: int) -> Section | None:
        these = [s for s in self.sections if s.type == kind and s.has_bytes]
        return these[0] if these else None

    def _build_id(self) -> str | None:
        places = [
            (section.offset, section.size, section.alignment)
            for section in self.sections
            if section.type == SHT_NOTE
        ]
        places += [(s[2], s[5], s[7]) for s in self.segments if s[0] == PT_NOTE]
        found = (self._in_notes(*place) for place in places[:MOST_NOTE_PLACES])
        return next(filter(None, found), None)

    def _in_notes(self, offset: int, size: int, alignment: int) -> str | None:
        notes = self.data[offset:][: min(size, MOST_NOTES)]
        step = 8 if alignment == 8 else 4
        at = 0
        while at + NOTE.size <= len(notes):
            name_size, content_size, kind = NOTE.unpack_from(notes, at)
            name = notes[at + NOTE.size :][:name_size]
            content = -(-(at + NOTE.size + name_size) // step) * step
            if content + content_size > len(notes):
                return None
            if kind == 3 and name == b"GNU\0" and 0 < content_size <= LONGEST_BUILD_ID:
                return notes[content : content + content_size].hex()
            at = -(-(content + content_size) // step) * step
        return None


class Symbols:
    """The functions of a file; ValueError if its tables are damaged."""

    def __init__(self, elf: Elf) -> None:
        self.elf = elf
        self.names: dict[bool, tuple[int, int]] = {}
        groups: tuple[dict[int, list[Symbol]], ...] = ({}, {})
        for kind in (SHT_SYMTAB, SHT_DYNSYM):
            self._read(kind, groups)
        self.groups = groups
        self.starts = [sorted(group) for group in groups]
        for group in groups:
            for symbols in group.values():
                symbols.sort()

    def _read(self, kind: int, groups: tuple[dict[int, list[Symbol]], ...]) -> None:
        elf = self.elf
        table = elf.section_of_type(kind)
        if table is None:
            return
        if table.entry_size != SYMBOL.size or table.link >= len(elf.sections):
            raise ValueError("damaged")
        names = elf.sections[table.link]
        if names.type != SHT_STRTAB or table.size // SYMBOL.size > MOST_SYMBOLS:
            raise ValueError("damaged")
        rows = elf.take(table.offset, table.size)
        elf.take(names.offset, names.size)
        dynamic = kind == SHT_DYNSYM
        self.names[dynamic] = names.offset, names.size
        for row in SYMBOL.iter_unpack(rows[: len(rows) // SYMBOL.size * SYMBOL.size]):
            name, info, _, place, start, size = row
            known = 0 < place < min(0xFF00, len(elf.sections))
            is_function = info & 15 in (2, 10)
            is_label = (
                info & 15 == 0 and known and elf.sections[place].flags & SHF_EXECINSTR
            )
            if not (is_function or is_label) or not place or name >= names.size:
                continue
            if not size and not known:
                continue
            rank = (0 if size else 4) | (0 if info >> 4 else 2) | dynamic
            end = min(END, start + size) if size else 0
            symbol = Symbol(start, rank, END - end, name, place if known else 0, size)
            groups[0 if is_function else 1].setdefault(start, []).append(symbol)

    def find(self, address: int) -> tuple[bytes, int] | None:
        """Return the mangled name of the function there, and where it starts."""
        nearest = 0
        for starts, group in zip(self.starts, self.groups, strict=True):
            place = bisect_right(starts, address)
            if not place or starts[place - 1] < nearest:
                continue
            nearest = starts[place - 1]
            after = starts[place] if place < len(starts) else END
            here = group[nearest]
            here = [s for s in here if bool(s.size) == bool(here[0].size)]
            for kind in sorted({symbol.kind for symbol in here}):
                equals = [symbol for symbol in here if symbol.kind == kind]
                names = [
                    self._name(symbol)
                    for symbol in equals[:MOST_ALIASES]
                    if address < self._end(symbol, after)
                ]
                if names := [name for name in names if name]:
                    return min(names, key=_plainness), nearest
        return None

    def _end(self, symbol: Symbol, after: int) -> int:
        if symbol.size:
            return min(END, symbol.start + symbol.size)
        section = self.elf.sections[symbol.section]
        return min(after, section.address + section.size, END)

    def _name(self, symbol: Symbol) -> bytes:
        offset, size = self.names[bool(symbol.kind & 1)]
        first = offset + symbol.name
        text = self.elf.data[first : min(offset + size, first + LONGEST_NAME)]
        name, end, _ = text.partition(b"\0")
        if not end and len(name) < LONGEST_NAME:
            return b""
        if name.startswith(b"$"):
            return b""
        head = name.split(b"@")[0]
        return head or name


def _plainness(name: bytes) -> tuple[int, int, bytes]:
    return len(name) - len(name.lstrip(b"_")), len(name), name
