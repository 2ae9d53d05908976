"""Lines and columns of the standard library's instructions, against CPython's."""

import importlib.util
import types

import pytest

from whence import _core

MODULES = [
    *(
        "argparse",
        "asyncio.tasks",
        "dataclasses",
        "decimal",
        "difflib",
        "email.message",
    ),
    *("inspect", "json.decoder", "logging", "pathlib", "tarfile", "typing", "zipfile"),
]


def all_code(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from all_code(constant)


def located(code, unit):
    line, end_line, column, end_column = _core.locate(
        code.co_linetable, code.co_firstlineno, unit * 2
    )
    return line, end_line, column, end_column


@pytest.mark.parametrize("name", MODULES)
def test_every_instruction_of_a_module(name, rng):
    spec = importlib.util.find_spec(name)
    compared = 0
    for code in all_code(spec.loader.get_code(name)):
        positions = list(code.co_positions())
        units = range(len(positions))
        for unit in rng.sample(units, min(len(units), 100)):
            assert located(code, unit) == positions[unit], (code, unit)
            compared += 1
    assert compared > 10


def test_long_lines_and_far_jumps_between_lines():
    source = "x = [\n" + "\n" * 70_000 + "1 +\n" + " " * 3000 + "f(1,\n\n\n2)]\ny = 1"
    for code in all_code(compile(source, "<far>", "exec")):
        for unit, position in enumerate(code.co_positions()):
            assert located(code, unit) == position


def test_code_without_locations():
    code = compile("a = b + c\n", "<bare>", "exec").replace(co_linetable=b"")
    assert located(code, 3) == (None, None, None, None)
