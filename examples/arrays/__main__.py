"""The command line: `python -m examples.arrays demo`, in a checkout of whence."""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from array import array
from collections import Counter
from pathlib import Path

import whence
from whence.handles import HandleTable, LoweredError

from .c_backend import CBackend
from .program import Program, compile_text
from .python_backend import PythonBackend

_MODEL = Path(__file__).with_name("model.arr")
_BACKENDS: dict[str, type[CBackend | PythonBackend]] = {
    "python": PythonBackend,
    "c": CBackend,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.arrays")
    commands = parser.add_subparsers(required=True)
    demo = commands.add_parser("demo", help="errors and times of model.arr")
    demo.add_argument("--recording", type=Path, help="keep the recording there")
    demo.set_defaults(call=_demo)
    run = commands.add_parser("run", help="run a program")
    run.add_argument("program", type=Path)
    run.add_argument("inputs", nargs="*", metavar="name=1,2,3", type=_input)
    run.add_argument("--backend", choices=sorted(_BACKENDS), default="c")
    run.add_argument("--table", type=Path, help="save the table of handles there")
    run.set_defaults(call=_run)
    explain = commands.add_parser("explain", help="show the source of a handle")
    explain.add_argument("table", type=Path)
    explain.add_argument("handle", type=int)
    explain.add_argument("--root", type=Path, help="where the sources are")
    explain.set_defaults(call=_explain)
    options = parser.parse_args()
    options.call(options)


def _input(text: str) -> tuple[str, list[float]]:
    name, _, values = text.partition("=")
    return name, [float(value) for value in values.split(",") if value]


def _run(options: argparse.Namespace) -> None:
    program = _compiled(options.program)
    if options.table:
        program.table.save(options.table, overwrite=True)
    backend = _BACKENDS[options.backend](program)
    print(program.run(backend, **dict(options.inputs)))


def _explain(options: argparse.Namespace) -> None:
    table = HandleTable.load(options.table)
    print(table.explain(options.handle, root=options.root), end="")


def _compiled(path: Path) -> Program:
    return compile_text(path.read_text(encoding="utf-8"), str(path))


def _demo(options: argparse.Namespace) -> None:
    path = _MODEL
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    program = _compiled(path)
    for name, backend_type in _BACKENDS.items():
        print(f"== A division by zero in generated {name} ==\n")
        backend = backend_type(program)
        try:
            program.run(backend, prices=[11, 5], before=[10, 0], weights=[1, 2])
        except LoweredError as error:
            traceback.print_exception(error, file=sys.stdout)
            failed = error.handles[0]
        print()
    with tempfile.TemporaryDirectory() as folder:
        print("== The same handle, from the table in a file ==\n")
        saved = Path(folder, "model.handles")
        program.table.save(saved)
        print(HandleTable.load(saved).explain(failed))
        print("== Time by line of the source, from a recording ==\n")
        recording = options.recording or Path(folder, "model.whence")
        _record(program, recording)
        _print_times(program, recording)


def _record(program: Program, path: Path) -> None:
    count, rounds = 200_000, 20
    backend = CBackend(program)
    before = array("d", (1 + i % 7 for i in range(count)))
    prices = array("d", (2 + i % 11 for i in range(count)))
    with whence.record(path, overwrite=True):
        for _ in range(rounds):
            program.run(backend, prices=prices, before=before, weights=before)


def _print_times(program: Program, path: Path) -> None:
    """Print the source with the time of each line, then what that was spent in."""
    with whence.open(path) as recording:
        work = [
            function
            for function in recording.functions
            if function.filename == program.filename and function.own
        ]
    times: Counter[int | None] = Counter()
    for function in work:
        times[function.line] += function.own
    lines = Path(program.filename).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        time = f"{times[number] / 1e6:.2f} ms" if times[number] else ""
        print(f"{time:>10}  {number:3}  {line}")
    print()
    for function in work:
        print(f"{function.own / 1e6:7.2f} ms  {function.calls:3}  {function.name}")


if __name__ == "__main__":
    main()
