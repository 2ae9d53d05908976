"""From tokens to a tree.

    module     =  { "input" names | "def" name "(" names ")" "=" sum
                  | "let" name "=" sum } "return" sum
    sum        =  product { ("+" | "-") product }
    product    =  operand { ("*" | "/") operand }
    operand    =  number | name [ "(" [ sum { "," sum } ] ")" ] | "(" sum ")"

Lines have no meaning: an expression may go over several.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .source import Source, Token
from .syntax import Binary, Call, Expression, Function, Module, Name, Number

_KEYWORDS = frozenset(("input", "def", "let", "return"))
_RESERVED = _KEYWORDS | {"sum"}
_SUMS = {"+": "add", "-": "sub"}
_PRODUCTS = {"*": "mul", "/": "div"}


def parse(source: Source) -> Module:
    """Read a text. SyntaxError if it is no program."""
    return _Parser(source).module()


class _Parser:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._tokens = source.tokens()
        self._place = 0
        self._named: set[str] = set()

    @property
    def _next(self) -> Token:
        return self._tokens[self._place]

    @property
    def _last(self) -> Token:
        return self._tokens[self._place - 1]

    def _error(self, message: str, at: Token) -> SyntaxError:
        return self._source.error(message, self._source.range(at, at))

    def _take(self, *texts: str) -> Token | None:
        """Take the next token if it is one of these."""
        if self._next.kind == "end" or self._next.text not in texts:
            return None
        self._place += 1
        return self._last

    def _expect(self, text: str) -> None:
        if not self._take(text):
            message = f"{text!r} should stand here, not {self._next.text!r}"
            raise self._error(message, self._next)

    def _new_name(self, known: set[str]) -> str:
        token = self._next
        if token.kind != "name" or token.text in _RESERVED:
            message = f"a new name should stand here, not {token.text!r}"
            raise self._error(message, token)
        if token.text in known:
            message = f"{token.text!r} has a meaning already"
            raise self._error(message, token)
        self._place += 1
        known.add(token.text)
        return token.text

    def _new_names(self, known: set[str]) -> tuple[str, ...]:
        names = [self._new_name(known)]
        while self._take(","):
            names.append(self._new_name(known))
        return tuple(names)

    def module(self) -> Module:
        inputs: list[str] = []
        functions: dict[str, Function] = {}
        lets: dict[str, Expression] = {}
        while not self._take("return"):
            if self._take("input"):
                inputs += self._new_names(self._named)
            elif self._take("let"):
                name = self._new_name(self._named)
                self._expect("=")
                lets[name] = self._sum()
            else:
                self._expect("def")
                name = self._new_name(self._named)
                functions[name] = self._function()
        result = self._sum()
        if self._next.kind != "end":
            message = f"the program has ended, but {self._next.text!r} follows"
            raise self._error(message, self._next)
        return Module(self._source, tuple(inputs), functions, lets, result)

    def _function(self) -> Function:
        self._expect("(")
        parameters = self._new_names(set())
        self._expect(")")
        self._expect("=")
        return Function(parameters, self._sum())

    def _sum(self) -> Expression:
        return self._binary(_SUMS, self._product)

    def _product(self) -> Expression:
        return self._binary(_PRODUCTS, self._operand)

    def _binary(
        self, ops: dict[str, str], operand: Callable[[], Expression]
    ) -> Expression:
        # From the first token, not from the left operand: that has no parentheses.
        first = self._next
        left = operand()
        while symbol := self._take(*ops):
            right = operand()
            at = self._source.range(first, self._last)
            left = Binary(ops[symbol.text], left, right, at)
        return left

    def _operand(self) -> Expression:
        if self._take("("):
            inner = self._sum()
            self._expect(")")
            return inner
        token = self._next
        if token.kind not in ("number", "name") or token.text in _KEYWORDS:
            message = f"a value should stand here, not {token.text!r}"
            raise self._error(message, token)
        self._place += 1
        if token.kind == "number":
            return self._number(token)
        if self._take("("):
            arguments = self._arguments()
            at = self._source.range(token, self._last)
            return Call(token.text, arguments, at)
        return Name(token.text, self._source.range(token, token))

    def _number(self, token: Token) -> Number:
        value = float(token.text)
        if not math.isfinite(value):  # neither C nor Python has a literal for it
            message = "the number is too large"
            raise self._error(message, token)
        return Number(value, self._source.range(token, token))

    def _arguments(self) -> tuple[Expression, ...]:
        if self._take(")"):
            return ()
        arguments = [self._sum()]
        while self._take(","):
            arguments.append(self._sum())
        self._expect(")")
        return tuple(arguments)
