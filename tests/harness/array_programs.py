"""Random programs for examples/arrays, and what Python itself makes of them.

Expressions of the language are expressions of Python, so Python can be the judge: of
precedence, of calls, and of the values, with operands that compute one whole array
after the other when they are asked for.
"""

import operator
import re

_IN_PYTHON = {
    r"([0-9]+\.[0-9]+)": r"number(\1)",
    r"^input .*$": "",
    r"^def (\w+)\((.*?)\) = ": r"\1 = lambda \2: ",
    r"^let ": "",
    r"^return ": "result = ",
}


class Plain:
    """A value that is computed when it is needed, once: a number, or a list."""

    def __init__(self, compute):
        self._compute = compute
        self._made = []

    @property
    def value(self):
        if not self._made:
            self._made.append(self._compute())
        return self._made[0]

    def _with(self, other, op):
        def compute():
            left, right = self.value, other.value
            if not isinstance(left, list) and not isinstance(right, list):
                return op(left, right)
            length = len(left if isinstance(left, list) else right)
            left = left if isinstance(left, list) else [left] * length
            right = right if isinstance(right, list) else [right] * length
            return [op(a, b) for a, b in zip(left, right, strict=True)]

        return Plain(compute)

    def __add__(self, other):
        return self._with(other, operator.add)

    def __sub__(self, other):
        return self._with(other, operator.sub)

    def __mul__(self, other):
        return self._with(other, operator.mul)

    def __truediv__(self, other):
        return self._with(other, operator.truediv)


def _sum(operand):
    def compute():
        total = 0.0  # not sum(), which rounds less often since Python 3.12
        values = operand.value
        for value in values if isinstance(values, list) else [values]:
            total += value
        return total

    return Plain(compute)


def plain_result(text, arrays):
    """Return what a random program computes; ZeroDivisionError if it divides so."""
    for pattern, python in _IN_PYTHON.items():
        text = re.sub(pattern, python, text, flags=re.MULTILINE)
    names = {"number": lambda value: Plain(lambda: value), "sum": _sum}
    names |= {name: Plain(lambda v=values: v) for name, values in arrays.items()}
    exec(text, names)
    return names["result"].value


def random_program(rng):
    """Return a text, and arrays for it. One line for each definition."""
    inputs = ["a", "b", "ß"][: rng.randint(1, 3)]
    lines = [f"input {', '.join(inputs)}"]
    functions = []
    for name in ["f", "g", "h"][: rng.randint(0, 3)]:
        parameters = ["x", "y", "z"][: rng.randint(1, 3)]
        body = _expression(rng, parameters, functions, 3)
        lines.append(f"def {name}({', '.join(parameters)}) = {body}")
        functions.append((name, len(parameters)))
    names = list(inputs)
    for name in ["k", "l", "é"][: rng.randint(0, 3)]:
        lines.append(f"let {name} = {_expression(rng, names, functions, 3)}")
        names.append(name)
    lines.append(f"return {_expression(rng, names, functions, 4)}")
    length = rng.choice([0, 1, 7])
    # Some zeros: so some programs fail, and many do not.
    zeros = rng.choice([0, 0, 0.1])
    arrays = {
        name: [
            0.0 if rng.random() < zeros else rng.uniform(-9, 9) for _ in range(length)
        ]
        for name in inputs
    }
    return "\n".join(lines), arrays


def _expression(rng, names, functions, depth):
    if depth == 0 or rng.random() < 0.1:
        return rng.choice([*names, *names, f"{rng.randint(1, 40) / 4}"])
    choice = rng.random()
    if choice < 0.1:
        return f"sum({_expression(rng, names, functions, depth - 1)})"
    if choice < 0.4 and functions:
        name, count = rng.choice(functions)
        arguments = [
            _expression(rng, names, functions, depth - 1) for _ in range(count)
        ]
        return f"{name}({', '.join(arguments)})"
    left, right = (_expression(rng, names, functions, depth - 1) for _ in range(2))
    text = f"{left} {rng.choice('+-*/')} {right}"
    return f"({text})" if rng.random() < 0.5 else text
