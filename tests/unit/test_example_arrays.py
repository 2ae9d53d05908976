"""The example compiler: its results, and the way from what it makes to the source."""

import ast
import gc
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from examples.arrays import CBackend, PythonBackend, compile_text

import whence
from harness.array_programs import plain_result, random_program
from whence.handles import HandleTable, LoweredError, SourceRange

ROOT = Path(__file__).resolve().parents[2]
needs_compiler = pytest.mark.skipif(
    shutil.which("cc") is None, reason="there is no C compiler"
)
BACKENDS = [PythonBackend, pytest.param(CBackend, marks=needs_compiler)]
on_each_backend = pytest.mark.parametrize("make", BACKENDS)

NESTED = """\
input prices, before
def ratio(part, whole) = part / whole
def change(now, then) =
    ratio(now - then, then)
# é: columns are bytes
let né = 2 * change(prices, before) return né / sum(prices)
"""


WITH_ZERO = {"prices": [3, 2, 1], "before": [1, 0, 2]}


def run(text, make, filename="test.arr", **arrays):
    program = compile_text(text, filename)
    return program.run(make(program), **arrays)


def failed(text, make, **arrays):
    """Return the error of a program and the program, which has the table."""
    program = compile_text(text, "test.arr")
    with pytest.raises(LoweredError) as caught:
        program.run(make(program), **arrays)
    return caught.value, program


def cut(text, place):
    """Return the text at a place: what a compiler says is what is there."""
    lines = [line.encode() for line in text.split("\n")][
        place.line - 1 : place.end_line
    ]
    lines[-1] = lines[-1][: place.end_column]
    lines[0] = lines[0][place.column :]
    return b"\n".join(lines).decode()


def line_of(text, part):
    """Return the line that a part of a text is in, and its columns."""
    before, _, _ = text.partition(part)
    line = before.count("\n") + 1
    column = len(before.rpartition("\n")[2].encode())
    return line, column, line, column + len(part.encode())


def calls_of(stack):
    while stack is not None:
        yield stack
        stack = stack.callee


class TestResults:
    @on_each_backend
    @pytest.mark.parametrize(
        ("text", "result"),
        [
            ("input a return a", [1.0, 2.0, 4.0]),
            ("return 3", 3.0),
            ("return 2 + 3 * 4 - 6 / 2 / 3", 13.0),
            ("return 2 - (3 - 4)", 3.0),
            ("input a return 8 / a", [8.0, 4.0, 2.0]),
            ("input a return sum(a)", 7.0),
            ("input a return a / sum(a) * 7", [1.0, 2.0, 4.0]),
            ("input a return sum(5)", 5.0),
            ("input a def f(x, y) = x - y return f(f(a, 1), a)", [-1.0, -1.0, -1.0]),
            ("input a let b = 1 / (a - a) return a", [1.0, 2.0, 4.0]),
        ],
    )
    def test_small_programs(self, make, text, result):
        arrays = {"a": [1, 2, 4]} if "input" in text else {}
        assert run(text, make, **arrays) == result

    @needs_compiler
    def test_random_programs_compute_what_python_does(self, rng):
        failures = 0
        for _ in range(25):
            text, arrays = random_program(rng)
            program = compile_text(text, "random.arr")
            backends = PythonBackend(program), CBackend(program)
            try:
                expected = repr(plain_result(text, arrays))
            except ZeroDivisionError:
                failures += 1
                places = {
                    self.fails_at(program, text, each, arrays) for each in backends
                }
                assert len(places) == 1, text
            else:
                for backend in backends:
                    # As texts, since no NaN is equal to another.
                    assert repr(program.run(backend, **arrays)) == expected, text
        assert failures < 25

    def fails_at(self, program, text, backend, arrays):
        with pytest.raises(LoweredError, match="division by zero") as caught:
            program.run(backend, **arrays)
        place = program.table[caught.value.handles[0]].range
        division = ast.parse(cut(text, place), mode="eval").body
        assert isinstance(division, ast.BinOp)
        assert isinstance(division.op, ast.Div)
        return place, caught.value.handles

    @on_each_backend
    def test_inputs_must_be_those_of_the_program(self, make):
        with pytest.raises(TypeError, match="takes a, b, not a"):
            run("input a, b return a + b", make, a=[1])


class TestPlaces:
    def test_each_operation_knows_its_text_and_the_calls_around_it(self):
        program = compile_text(NESTED, "test.arr")
        found = []
        for handle in program.table:
            record = program.table[handle]
            if record.edge is None:
                chain = [
                    (c.function, cut(NESTED, c.range)) for c in calls_of(record.stack)
                ]
                found.append((record.kind, cut(NESTED, record.range), chain))
        change = ("change", "change(prices, before)")
        ratio = ("ratio", "ratio(now - then, then)")
        assert found == [
            ("sub", "now - then", [change]),
            ("div", "part / whole", [change, ratio]),
            ("mul", "2 * change(prices, before)", []),
            ("sum", "sum(prices)", []),
            ("div", "né / sum(prices)", []),
        ]

    def test_columns_are_bytes_and_lines_may_be_several(self):
        text = "input ß return (ß + 1)\n  * # é\n  (ß\n - 2)"
        program = compile_text(text, "é.arr")
        ranges = {program.table[h].kind: program.table[h].range for h in program.table}
        assert ranges["add"] == SourceRange("é.arr", 1, 17, 1, 23)
        assert ranges["sub"] == SourceRange("é.arr", 3, 3, 4, 4)
        assert ranges["mul"] == SourceRange("é.arr", 1, 16, 4, 5)

    def test_calls_share_what_is_further_in(self):
        text = "def f(x) = x + 1 def g(x) = f(x) return g(2) * g(3)"
        table = compile_text(text, "test.arr").table
        first, second = (table[h].stack for h in table if table[h].kind == "add")
        assert first.range != second.range
        assert first.callee is second.callee
        assert first.callee.function == "f"

    @pytest.mark.parametrize(
        ("text", "part", "message"),
        [
            ("let é = $", "$", "means nothing"),
            ("let é = é2 return 1", "é2", "is not known here"),
            ("let a = 1\nlet a = 2", "a", "has a meaning already"),
            ("let sum = 1", "sum", "new name"),
            ("return 1 +", "", "a value should stand here"),
            ("return (1 + 2", "", "should stand here"),
            ("return 1 2", "2", "has ended"),
            ("return 1e999", "1e999", "too large"),
            ("return f(1)", "f(1)", "no function"),
            ("return sum(1, 2)", "sum(1, 2)", "takes 1 values, not 2"),
            ("def f(x) = g(x) def g(x) = f(x) return f(1)", "f(x)", "calls itself"),
            ("input a def f(x) = a + x return f(1)", "a", "is not known here"),
        ],
    )
    def test_wrong_programs_are_told_where(self, text, part, message):
        with pytest.raises(SyntaxError, match=message) as caught:
            compile_text(text, "wrong.arr")
        error = caught.value
        assert error.filename == "wrong.arr"
        assert error.text == text.split("\n")[error.lineno - 1]
        assert error.text[error.offset - 1 : error.end_offset - 1] == part


class TestFusion:
    def fused(self, text):
        """Return the kinds of operations of each kernel, as its handle tells them."""
        program = compile_text(text, "test.arr")
        found = []
        for kernel in program.kernels:
            record = program.table[kernel.handle]
            if record.edge is not None:
                assert record.edge == "fused"
                found.append([program.table[each].kind for each in record.parents])
            else:
                found.append([record.kind])
        return found

    @pytest.mark.parametrize(
        ("text", "kernels"),
        [
            ("input a return a", []),
            ("input a return a + 1", [["add"]]),
            ("input a, b return (a + b) * (a - b) / 2", [["add", "sub", "mul", "div"]]),
            ("input a return sum(a * a)", [["mul", "sum"]]),
            # A number for the whole array is no matter of the loop.
            ("input a return a * (1 / 3)", [["div"], ["mul"]]),
            ("input a return a / sum(a * 2)", [["mul", "sum"], ["div"]]),
            # What one loop uses twice stays in it; what two use is kept.
            ("input a let b = a + 1 return b * b", [["add", "mul"]]),
            (
                "input a let b = a + 1 return b / sum(b)",
                [["add"], ["sum"], ["div"]],
            ),
            ("input a let b = a / 0 return a - 1", [["sub"]]),
        ],
    )
    def test_what_shares_a_loop(self, text, kernels):
        assert self.fused(text) == kernels


class TestErrors:
    @on_each_backend
    def test_a_division_by_zero_is_shown_at_its_place_in_the_source(self, make):
        error, _ = failed(NESTED, make, **WITH_ZERO)
        assert str(error) == "division by zero"
        shown = "".join(traceback.format_exception(error))
        expected = """\
  File "test.arr", line 6, in <top>
    let né = 2 * change(prices, before) return né / sum(prices)
                 ^^^^^^^^^^^^^^^^^^^^^^
  File "test.arr", line 4, in change
    ratio(now - then, then)
    ^^^^^^^^^^^^^^^^^^^^^^^
  File "test.arr", line 2, in ratio
    def ratio(part, whole) = part / whole
                             ^^^^^^^^^^^^
"""
        assert expected in shown

    @on_each_backend
    def test_its_handles_are_the_operation_and_the_kernel(self, make):
        error, program = failed(NESTED, make, **WITH_ZERO)
        division, kernel = error.handles
        record = program.table[division]
        assert record.kind == "div"
        assert record.range == SourceRange("test.arr", *line_of(NESTED, "part / whole"))
        assert program.table[kernel].edge == "fused"
        assert division in program.table[kernel].parents
        frames = [(f.name, f.line, f.column) for f in program.table.frames(division)]
        assert frames == [("ratio", 2, 25), ("change", 4, 4), ("<top>", 6, 14)]

    @on_each_backend
    @pytest.mark.parametrize("zero", "abc")
    def test_of_several_divisions_in_a_kernel_it_is_the_one_that_failed(
        self, make, zero
    ):
        text = (
            "input a, b, c\ndef f(x, y) = x /\n y\nreturn f(1, a) + (1 / b) + f(2, c)"
        )
        arrays = {name: [1, 0 if name == zero else 2] for name in "abc"}
        error, program = failed(text, make, **arrays)
        assert len(program.kernels) == 1
        record = program.table[error.handles[0]]
        outermost = record.stack.range if record.stack else record.range
        part = {"a": "f(1, a)", "b": "1 / b", "c": "f(2, c)"}[zero]
        assert cut(text, outermost) == part
        if record.stack:
            assert record.range == SourceRange("test.arr", 2, 14, 3, 2)

    @on_each_backend
    def test_a_kernel_of_one_operation_is_told_once(self, make):
        error, program = failed("input a return 1 / a", make, a=[0])
        assert error.handles == (program.kernels[0].handle,)

    @on_each_backend
    def test_lengths_that_do_not_fit_are_told_where_they_meet(self, make):
        text = "input a, b def f(x, y) = x + y return (a * 2) / f(a, b)"
        error, program = failed(text, make, a=[1, 2], b=[1])
        assert str(error) == "arrays of 2 and 1 elements do not fit"
        record = program.table[error.handles[0]]
        assert cut(text, record.range) == "x + y"
        assert cut(text, record.stack.range) == "f(a, b)"


class TestGeneratedPython:
    def test_stacks_of_it_go_on_in_the_source(self):
        class Spied(list):
            def __getitem__(self, index):
                stacks.append(whence.capture(skip=1))
                return list.__getitem__(self, index)

        stacks = []
        program = compile_text(NESTED, "test.arr")
        backend = PythonBackend(program)
        kernel = program.kernels[-1]
        assert [each.op for each in kernel.operations] == ["sub", "div", "mul", "div"]
        backend.run(kernel, 1, [0.0], [Spied([value]) for value in (1.0, 2.0, 3.0)])
        first = stacks[0].frames
        assert (first[0].name, first[0].filename) == (kernel.name, backend.filename)
        places = [(f.kind, f.name, f.filename, f.line) for f in first[1:3]]
        assert places == [
            ("generated", "change", "test.arr", 4),
            ("generated", "<top>", "test.arr", 6),
        ]
        assert "now - then" in str(stacks[0])
        assert {f.line for s in stacks for f in s.frames if f.name == "ratio"} == {2}

    def test_it_is_forgotten_with_the_backend(self):
        program = compile_text("input a return 1 / a", "test.arr")
        backend = PythonBackend(program)
        filename = backend.filename
        with pytest.raises(LoweredError):
            program.run(backend, a=[0])
        del backend
        gc.collect()
        with pytest.raises(ValueError, match="no line map"):
            whence.generated.unregister(filename)


class TestTables:
    @on_each_backend
    def test_another_process_explains_the_handle_in_the_same_words(
        self, make, tmp_path, run_python
    ):
        error, program = failed(NESTED, make, **WITH_ZERO)
        saved = tmp_path / "program.handles"
        program.table.save(saved)
        (tmp_path / "test.arr").write_text(NESTED, encoding="utf-8")
        code = f"""
            from whence.handles import HandleTable
            table = HandleTable.load({str(saved)!r})
            print(table.explain({error.handles}, root={str(tmp_path)!r}), end="")
        """
        printed = run_python(code, env={"PYTHONIOENCODING": "utf-8"})
        assert printed == program.table.explain(error.handles)
        assert printed.rstrip("\n") == error.__notes__[0]

    @needs_compiler
    def test_the_commands_save_and_explain(self, tmp_path):
        saved = tmp_path / "model.handles"
        model = Path("examples", "arrays", "model.arr")
        inputs = "prices=2,3", "before=1,0", "weights=1,1"
        done = command("run", model, *inputs, "--table", saved)
        assert done.returncode == 1
        assert "LoweredError: division by zero" in done.stderr
        table = HandleTable.load(saved)
        (division,) = (
            handle
            for handle in table
            if table[handle].range == SourceRange(str(model), 4, 25, 4, 37)
            and table[handle].stack.range.line == 9
        )
        done = command("explain", saved, division, "--root", ROOT)
        assert done.stdout == table.explain(division, root=ROOT)
        lines = [line.strip() for line in done.stdout.splitlines()]
        places = [line for line in lines if line.startswith("File")]
        assert places == [
            f'File "{model}", line 9, in <top>',
            f'File "{model}", line 5, in change',
            f'File "{model}", line 4, in ratio',
        ]
        assert "^" * len("part / whole") in lines


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "examples.arrays", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


@needs_compiler
class TestRecordings:
    @pytest.fixture
    def program(self):
        text = """\
input a
def twice(x) = x +
    x
def norm(x) =
    sum(twice(x) * x)

return a /
    norm(a)
"""
        return compile_text(text, "time.arr")

    @pytest.fixture
    def path(self, program, tmp_path):
        backend = CBackend(program)
        path = tmp_path / "run.whence"
        with whence.record(path):
            for _ in range(3):
                program.run(backend, a=[1.0] * 10_000)
        return path

    def test_each_run_of_a_kernel_is_told_with_its_handle(self, program, path):
        with whence.open(path) as recording:
            told = [(e.handle, e.name, e.backend) for e in recording.handle_events]
            assert recording.handles == program.table
        kernels = [(kernel.handle, kernel.name, "c") for kernel in program.kernels]
        assert told == kernels * 3

    def test_time_is_that_of_lines_of_the_source(self, path):
        with whence.open(path) as recording:
            work = {
                function.line: function
                for function in recording.functions
                if function.filename == "time.arr" and function.own
            }
        assert sorted(work) == [2, 7]
        assert all(function.calls == 3 for function in work.values())
        assert work[2].name.startswith("kernel_0 (c)")
        assert work[7].name.startswith("kernel_1 (c)")

    def test_calls_that_were_inlined_are_around_the_work(self, path):
        with whence.open(path) as recording:
            tree = recording.call_tree()
        (node,) = (n for n in tree if n.function and n.function.name == "kernel_1 (c)")
        assert node.parent.function.name == "CBackend.run"
        (node,) = (n for n in tree if n.function and n.function.line == 2 and n.own)
        above = []
        while node.function.name != "CBackend.run":
            above.append((node.function.filename, node.function.line))
            node = node.parent
        # The loop is of two functions: what leads to both is the call of the outer one.
        assert above == [("time.arr", 2), ("time.arr", 8)]

    def test_summary_names_the_source(self, path):
        done = subprocess.run(
            [sys.executable, "-m", "whence", "summary", path],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert "kernel_1 (c) (time.arr:7)" in done.stdout


@needs_compiler
def test_the_demo_shows_errors_and_times(tmp_path):
    done = command("demo", "--recording", tmp_path / "demo.whence")
    assert done.returncode == 0, done.stderr
    model = "examples/arrays/model.arr"
    assert done.stdout.count("LoweredError: division by zero") == 2
    # Both errors, and the table from its file.
    assert done.stdout.count(f'File "{model}", line 4, in ratio') == 3
    source = (ROOT / model).read_text(encoding="utf-8").splitlines()
    listing = {
        number: line.split(" ms ")[0].strip()
        for line in done.stdout.splitlines()
        for number, text in enumerate(source, 1)
        if text and line.endswith(f"{number:3}  {text}") and " ms " in line
    }
    assert sorted(listing) == [4, 5, 6, 11]
    assert all(float(time) >= 0 for time in listing.values())
    with whence.open(tmp_path / "demo.whence") as recording:
        assert {e.backend for e in recording.handle_events} == {"c"}
