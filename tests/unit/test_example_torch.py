"""The examples of PyTorch: errors and time of lowered models, by the model's lines."""

import importlib
import json
import linecache
import os
import subprocess
import sys
from pathlib import Path

import pytest

import whence
from whence.handles import Recorder

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "torch_model"
SCORER = FOLDER / "scorer.py"


def line_of(text):
    """Return the number of the only line of the model that has this text."""
    lines = SCORER.read_text().splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if text in line]
    return number


TABLE = line_of("self.table(text)")
WORDS = line_of("self.words(text)")
LINEAR = line_of("self.linear(x)")
RELU = line_of("torch.relu(mixed)")
MUL = line_of("bent * self.scale")
FIRST = line_of("self.first(x)")
SECOND = line_of("self.second(x)")
FINITE = line_of("finite(x)")
SUM = line_of("x.sum(dim=-1)")


@pytest.fixture
def example(monkeypatch):
    """Import modules of the example, which import one another."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


@pytest.fixture
def lowered(example):
    pytest.importorskip("torch")
    return example("lowered")


def places(frames):
    return [(frame.filename, frame.line) for frame in frames]


def in_scorer(*lines):
    return [(str(SCORER), line) for line in lines]


@pytest.mark.torch
def test_a_lowered_program_computes_the_same(lowered):
    torch = importlib.import_module("torch")
    model = lowered.Scorer()
    text = torch.tensor([3, 1, 4])
    program = lowered.lower(model)
    assert torch.equal(program(text), model(text))
    names = [step.name for step in program.instructions]
    assert names.count("relu_mul") == 2  # of the two layers
    assert "relu" not in names


@pytest.mark.torch
def test_a_handle_has_the_lines_and_modules_of_its_node(lowered):
    program = lowered.lower(lowered.Scorer())
    steps = {step.name: step.handle for step in program.instructions}
    table = program.table
    assert places(table.frames(steps["sum_1"])) == in_scorer(SUM)
    assert places(table.frames(steps["second_linear"])) == in_scorer(LINEAR, SECOND)
    fused = [step.handle for step in program.instructions if step.name == "relu_mul"]
    assert [places(table.frames(handle)) for handle in fused] == [
        in_scorer(RELU, FIRST, MUL, FIRST),
        in_scorer(RELU, SECOND, MUL, SECOND),
    ]
    assert table[fused[0]].edge == "fused"
    hierarchy = "top(Scorer).second(Layer)::forward.second_linear"
    assert hierarchy in table.explain(steps["second_linear"])


@pytest.mark.torch
def test_an_error_in_the_program_explains_the_model(lowered):
    error = lowered.fail()
    assert isinstance(error.__cause__, IndexError)
    (note,) = error.__notes__
    outer, inner = (
        note.index(f'File "{SCORER}", line {line},') for line in (WORDS, TABLE)
    )
    assert outer < inner
    assert "Module hierarchy: top(Scorer).words(Words)::forward.words_table" in note


@pytest.mark.torch
def test_time_in_a_recording_is_that_of_the_model(lowered, tmp_path):
    path = tmp_path / "lowered.whence"
    lowered.record(path, runs=5)
    lines = lowered.time_by_line(path)
    assert {(line.filename, line.line) for line in lines} == {
        *in_scorer(TABLE, LINEAR, RELU, MUL, FINITE, SUM)
    }
    with whence.open(path) as recording:
        events = list(recording.handle_events)
    assert sum(line.time for line in lines) == sum(event.duration for event in events)
    assert {event.backend for event in events} == {"registers"}


@pytest.mark.torch
def test_work_is_among_the_functions_of_a_recording(lowered, tmp_path):
    path = tmp_path / "lowered.whence"
    lowered.record(path, runs=5)
    work = {function.name: function for function in lowered.work(path)}
    for name, line in (
        ("words_table (registers) in top(Scorer).words(Words)::forward", TABLE),
        ("first_linear (registers) in top(Scorer).first(Layer)::forward", LINEAR),
        ("second_linear (registers) in top(Scorer).second(Layer)::forward", LINEAR),
        ("sum_1 (registers) in top(Scorer)", SUM),
    ):
        (function,) = [work[full] for full in work if full.startswith(name)]
        assert (function.filename, function.line) == (str(SCORER), line)
        assert function.calls == 5
    fused = [work[full] for full in work if full.startswith("relu_mul (registers)")]
    assert sum(function.calls for function in fused) == 10
    assert {function.line for function in fused} == {RELU}
    with whence.open(path) as recording:
        around = {
            (node.function.name.split()[0], node.parent.function.line)
            for node in recording.call_tree()
            if node.function and "(registers)" in node.function.name
        }
    assert {("first_linear", FIRST), ("second_linear", SECOND)} <= around


@pytest.mark.torch
def test_one_command_shows_a_lowered_model():
    pytest.importorskip("torch")
    out = run([FOLDER / "lowered.py"])
    error, lines, work = out.split("\n\n")
    assert error.startswith("IndexError: ")
    assert f"scorer.py:{LINEAR} " in lines
    assert "top(Scorer).first(Layer)::forward" in work


def run(command, **variables):
    """Run Python in a child: compilers leave threads, processes and warnings."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=FOLDER,
        env={**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1", **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """What the example of torch.compile finds, and prints; compiling takes long."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("inductor")
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(folder)}
    program = f"""if True:
        import json, pathlib, compiled
        error = compiled.fail_in_a_kernel()
        found = {{
            "cause": type(error.__cause__).__name__,
            "kernel": [
                frame for handle in error.handles
                for frame in error._tables[-1].frames(handle)
            ],
            "note": error.__notes__[0],
            "operator": compiled.fail_in_an_operator(),
            "time": compiled.where_time_went(pathlib.Path({str(folder)!r}, "r.whence")),
        }}
        print(json.dumps(found))
    """
    found = json.loads(run(["-c", program], **cache))
    found["kernel"] = [whence.Frame(*frame) for frame in found["kernel"]]
    found["operator"] = [whence.Frame(*frame) for frame in found["operator"]]
    return {**found, "printed": run(["compiled.py"], **cache)}


@pytest.mark.torch
def test_an_error_in_a_kernel_explains_the_model(compiled):
    assert compiled["cause"] == "RuntimeError"
    assert places(compiled["kernel"]) == in_scorer(TABLE, WORDS)
    assert "return self.table(text)" in compiled["note"]


@pytest.mark.torch
def test_a_stack_inside_generated_code_names_the_model(compiled):
    assert places(compiled["operator"]) == in_scorer(FINITE)


@pytest.mark.torch
def test_time_in_generated_code_is_that_of_the_model(compiled):
    """The one function that was made of the model is where its first operation is."""
    assert {filename for filename, *_ in compiled["time"]} == {str(SCORER)}
    calls = {line: calls for _, line, _, calls, _ in compiled["time"]}
    assert any(calls.get(line) == 100 for line in (TABLE, WORDS))


@pytest.mark.torch
def test_one_command_shows_a_compiled_model(compiled):
    error, operator, time = compiled["printed"].split("\n\n")
    assert f"line {TABLE}, in forward" in error
    assert operator.endswith(f"  scorer.py:{FINITE}")
    assert "Scorer.forward" in time


def test_a_fused_kernel_has_all_that_it_was_made_of(example):
    """Without PyTorch: a stand-in for what Inductor generates and keeps."""
    kernels = example("kernels")
    source = (
        "def call():\n"
        "    # [Provenance debug handles] cpp_fused_mul_relu_1:3\n"
        "    kernel()\n"
    )
    linecache.cache["<output>"] = (1, None, source.splitlines(True), "<output>")
    namespace = {"kernel": lambda: 1 / 0}
    exec(compile(source, "<output>", "exec"), namespace)
    stacks = ['File "m.py", line 9, in step\n  File "m.py", line 4, in forward\n']
    stacks += ['  File "m.py", line 5, in forward\n    return x * y\n']

    class Graph:
        inductor_provenance_stack_traces_str = json.dumps(
            {"cpp_fused_mul_relu_1:3": stacks, "other:4": ["..."]}
        )

        def __call__(self):
            namespace["call"]()

    recorder = Recorder()
    with pytest.raises(ZeroDivisionError) as caught:
        Graph()()
    handle = kernels.issue(recorder, caught.value)
    table = recorder.stop()
    assert table[handle].kind == "cpp_fused_mul_relu_1"
    assert places(table.frames(handle)) == [("m.py", 4), ("m.py", 9), ("m.py", 5)]
    with pytest.raises(ZeroDivisionError) as caught:
        1 / 0  # not in a kernel
    assert kernels.issue(recorder, caught.value) == whence.handles.UNKNOWN
