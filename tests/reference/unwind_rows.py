"""Rows of unwind tables, by running the call frame programs of DWARF: see unwind.py."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from typing import NamedTuple

NONE, FRAME, LEAF, SIGNAL, OUTERMOST, UNSUPPORTED = range(6)
RBP, RSP, RIP = 6, 7, 16  # x86-64
LOST = -(1 << 15)
WORD = 8
MASK = (1 << 64) - 1


class Rule(NamedTuple):
    """What a frame is left by, as native/unwind/rule.h has it."""

    kind: int
    from_fp: bool = False
    fp_from_fp: bool = False
    indirect: bool = False
    cfa: int = 0
    link: int = 0
    fp: int = 0

    def packed(self) -> int:
        """Return it as one word."""
        flags = self.kind | self.from_fp << 4 | self.fp_from_fp << 6
        flags |= self.indirect << 7 | (self.cfa & 0xFFFFFF) << 8
        return flags | (self.link & 0xFFFF) << 32 | (self.fp & 0xFFFF) << 48


class Term(NamedTuple):
    """A register (or none) plus a number; or what lies at that place."""

    register: int | None
    number: int
    loaded: bool = False


class Unreadable(Exception):
    """The table says what nobody understands."""


class Reader:
    """Bytes of the file that lie at an address, one after the other."""

    def __init__(self, data: bytes, address: int) -> None:
        self.data = data
        self.base = address
        self.at = 0

    def take(self, form: str) -> int:
        """Return one number of a form of struct's."""
        size = struct.calcsize("<" + form)
        if self.at + size > len(self.data):
            raise Unreadable
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += size
        return int(value)

    def leb(self, *, signed: bool = False) -> int:
        """Return a number of as many bytes as it needs."""
        value = shift = 0
        while True:
            byte = self.take("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        return value - (1 << shift) if signed and byte & 0x40 else value

    def part(self, size: int) -> Reader:
        """Return the next bytes as a reader of their own."""
        if self.at + size > len(self.data):
            raise Unreadable
        part = Reader(self.data[self.at : self.at + size], self.base + self.at)
        self.at += size
        return part

    def pointer(self, encoding: int, header: int = 0) -> int:
        """Return an address, written in one of the ways of DW_EH_PE."""
        here = self.base + self.at
        forms = {0: "Q", 2: "H", 3: "I", 4: "Q", 10: "h", 11: "i", 12: "q"}
        kind = encoding & 15
        if kind in (1, 9):
            value = self.leb(signed=kind == 9)
        elif kind in forms:
            value = self.take(forms[kind])
        else:
            raise Unreadable
        relative = {0: 0, 0x10: here, 0x30: header}
        if encoding & 0x70 not in relative:
            raise Unreadable
        return (value + relative[encoding & 0x70]) & MASK

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self.data) - self.at


@dataclass
class Common:
    """A CIE: what functions have in common."""

    code_step: int
    data_step: int
    returns: int
    pointers: int
    has_extra: bool
    is_signal: bool
    program: Reader


@dataclass
class Row:
    """Where the frame ends, and where each register of the caller is."""

    cfa: Term | None = None
    registers: dict[int, tuple[str, int | Term | None]] = field(default_factory=dict)

    def copy(self) -> Row:
        """Return one that can be changed."""
        return replace(self, registers=dict(self.registers))


class Run:
    """A call frame program on its way to one address."""

    def __init__(self, common: Common, begin: int, pc: int) -> None:
        self.common = common
        self.begin = begin
        self.pc = pc
        self.row = Row()
        self.first = Row()
        self.states: list[Row] = []

    def run(self, own: Reader) -> Row:
        """Run what all functions have in common, then what one has."""
        self._run(self.common.program)
        self.first = self.row.copy()
        self._run(own)
        return self.row

    def _run(self, program: Reader) -> None:
        at = self.begin
        while program.left:
            code = program.take("B")
            high, low = code & 0xC0, code & 0x3F
            if high == 0x40:
                at += low * self.common.code_step
            elif code in (2, 3, 4):
                at += program.take(" BHI"[code - 1]) * self.common.code_step
            elif code == 1:
                at = program.pointer(self.common.pointers)
            elif high == 0x80:
                offset = program.leb() * self.common.data_step
                self.row.registers[low] = ("offset", offset)
            elif high == 0xC0:
                self._restore(low)
            else:
                self._change(code, program)
            if at > self.pc:
                return

    def _restore(self, register: int) -> None:
        if register in self.first.registers:
            self.row.registers[register] = self.first.registers[register]
        else:
            self.row.registers.pop(register, None)

    def _change(self, code: int, program: Reader) -> None:
        if code in (0x00, 0x2D):  # nothing; or for another processor
            return
        if code == 0x0A:
            self.states.append(self.row.copy())
        elif code == 0x0B:
            if not self.states:
                raise Unreadable
            self.row = self.states.pop()
        elif code in (0x0C, 0x0D, 0x0E, 0x0F, 0x12, 0x13):
            self._change_cfa(code, program)
        elif code == 0x2E:
            program.leb()
        else:
            self._change_register(code, program)

    def _change_cfa(self, code: int, program: Reader) -> None:
        step = self.common.data_step
        old = self.row.cfa or Term(None, 0)
        if code == 0x0F:
            self.row.cfa = evaluate(program.part(program.leb()), self.pc)
            return
        register = program.leb() if code in (0x0C, 0x0D, 0x12) else old.register
        number = old.number
        if code in (0x0C, 0x0E):
            number = program.leb()
        elif code in (0x12, 0x13):
            number = program.leb(signed=True) * step
        self.row.cfa = Term(register, number)

    def _change_register(self, code: int, program: Reader) -> None:
        registers, step = self.row.registers, self.common.data_step
        number = program.leb()
        if code in (0x05, 0x11, 0x2F):
            offset = program.leb(signed=code == 0x11) * step
            registers[number] = ("offset", -offset if code == 0x2F else offset)
        elif code == 0x06:
            self._restore(number)
        elif code == 0x07:
            registers[number] = ("undefined", None)
        elif code == 0x08:
            registers[number] = ("same", None)
        elif code == 0x10:
            registers[number] = ("at", evaluate(program.part(program.leb()), self.pc))
        elif code in (0x09, 0x14, 0x15):
            program.leb()
            registers[number] = ("value", None)
        elif code == 0x16:
            program.part(program.leb())
            registers[number] = ("value", None)
        else:
            raise Unreadable


def evaluate(program: Reader, pc: int) -> Term | None:
    """Return what an expression gives, if it is one of the few that rules can say."""
    stack: list[Term] = []
    try:
        while program.left:
            step(program.take("B"), program, stack, pc)
        (result,) = stack
    except (Unreadable, IndexError, ValueError):
        return None
    return result


CONSTANTS = {0x08: "B", 0x09: "b", 0x0A: "H", 0x0B: "h", 0x0C: "I", 0x0D: "i"}


def step(code: int, program: Reader, stack: list[Term], pc: int) -> None:
    """Run one operation of an expression."""
    if 0x30 <= code <= 0x4F:
        stack.append(Term(None, code - 0x30))
    elif 0x70 <= code <= 0x8F:
        register, number = code - 0x70, program.leb(signed=True)
        known = register in (RBP, RSP)
        if not known and register != RIP:
            raise Unreadable
        stack.append(Term(register, number) if known else Term(None, pc + number))
    elif code in CONSTANTS:
        stack.append(Term(None, program.take(CONSTANTS[code])))
    elif code in (0x10, 0x11):
        stack.append(Term(None, program.leb(signed=code == 0x11)))
    elif code == 0x23:
        stack.append(plus(stack.pop(), Term(None, program.leb())))
    elif code == 0x06:
        place = stack.pop()
        if place.loaded or place.register is None:
            raise Unreadable
        stack.append(place._replace(loaded=True))
    else:
        right, left = stack.pop(), stack.pop()
        stack.append(combined(code, left, right))


def plus(left: Term, right: Term) -> Term:
    """Add two terms, of which one is a number."""
    if left.register is not None and right.register is not None:
        raise Unreadable
    if left.loaded or right.loaded:
        raise Unreadable
    register = left.register if right.register is None else right.register
    return Term(register, left.number + right.number)


def combined(code: int, left: Term, right: Term) -> Term:
    """Return what an operation makes of two terms."""
    if code == 0x22:
        return plus(left, right)
    if code == 0x1C and right.register is None:
        return plus(left, Term(None, -right.number))
    if left.register is not None or right.register is not None:
        raise Unreadable
    if code == 0x1A:
        return Term(None, left.number & right.number)
    if code == 0x2A:
        return Term(None, int(left.number >= right.number))
    if code == 0x24 and 0 <= right.number < 64:
        return Term(None, left.number << right.number)
    raise Unreadable


def in_words(offset: int) -> int | None:
    """Return an offset as words, if a rule can say it."""
    fits = offset % WORD == 0 and -(1 << 15) <= offset // WORD < 1 << 15
    return offset // WORD if fits else None


def rule_of(row: Row) -> Rule:
    """Return what a rule says of a row."""
    link = row.registers.get(RIP, ("same", None))
    if link[0] == "undefined":
        return Rule(OUTERMOST)
    cfa = row.cfa
    if cfa is None or cfa.register not in (RBP, RSP) or abs(cfa.number) >= 1 << 23:
        raise Unreadable
    words = in_words(link[1]) if isinstance(link[1], int) else None
    if link[0] != "offset" or words is None:
        raise Unreadable
    fp_from_fp, fp = frame_pointer(row, cfa)
    return Rule(
        FRAME, cfa.register == RBP, fp_from_fp, cfa.loaded, cfa.number, words, fp
    )


def frame_pointer(row: Row, cfa: Term) -> tuple[bool, int]:
    """Return whether it is counted from itself, and how far."""
    how, where = row.registers.get(RBP, ("same", None))
    if how == "same":
        return False, 0
    words = None
    if how == "offset" and isinstance(where, int):
        words = in_words(where)
    elif how == "at" and isinstance(where, Term) and not where.loaded:
        if where.register == RBP:
            words = in_words(where.number)
            return True, LOST if words is None else words
        if where.register == RSP == cfa.register and not cfa.loaded:
            words = in_words(where.number - cfa.number)
    return (False, words) if words else (True, LOST)
