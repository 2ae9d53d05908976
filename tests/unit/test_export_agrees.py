"""Every format says the same of every function as the recording does, to the ns."""

import importlib.util
import itertools
import time

import pytest

import whence
from harness import exported, sample_program
from whence import generated, handles
from whence.export import export

RUNS = ("objects", "generators", "tasks", "threads")


def workload(name):
    path = exported.ROOT / "bench" / "workloads" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda: module.run(module.WARM)


def lowered(tables=[]):  # noqa: B006
    """Generated Python with a line map, and work of a backend with a table."""
    recorder = handles.Recorder(top="net.Model")
    inlined = handles.InlinedCall("forward", handles.SourceRange("model.ex", 3))
    place = handles.SourceRange("layers.ex", 8, 4, 8, 9)
    multiply = recorder.issue(place, "mul", inlined)
    both = recorder.derive("fused", [multiply, recorder.issue(None, "add")])
    table = recorder.stop()
    table.line_map("<lowered>", {2: multiply})
    tables.append(handles.install(table))
    made = {"sample": sample_program.work}
    exec(compile("def kernel():\n    return sample()\n", "<lowered>", "exec"), made)
    for handle in (multiply, both, multiply, 2**40):
        start = time.perf_counter_ns()
        made["kernel"]()
        handles.event(handle, start, time.perf_counter_ns(), "kernel_0", "jit")
    generated.unregister("<lowered>")


@pytest.fixture(
    scope="module", params=["sample", "c_calls", "folded", "lowered", *RUNS]
)
def path(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param) / "app.whence"
    options = {"c_calls": request.param == "c_calls"}
    if request.param == "folded":
        options["min_duration"] = "1ms"
    run = sample_program.work_in_threads
    if request.param in RUNS:
        run = workload(request.param)
    elif request.param == "lowered":
        run = lowered
    run()
    with whence.record(path, **options):
        run()
    with whence.open(path) as recording:
        assert any(c.count > 1 for c in recording.calls().read()) is (
            "min_duration" in options
        )
    return path


def check(name, recording, out):
    export(recording, out)
    found, wanted = exported.read(name, out), exported.expected(name, recording)
    assert len(wanted) > 5
    assert found == wanted


@pytest.mark.parametrize("name", exported.FORMATS)
def test_functions(name, path, tmp_path):
    with whence.open(path) as recording:
        check(name, recording, tmp_path / f"app{exported.suffix(name)}")


@pytest.mark.parametrize("name", exported.FORMATS)
def test_parts(name, path, tmp_path):
    numbers = itertools.count()
    with whence.open(path) as recording:
        ends = sorted(call.start + call.duration for call in recording.calls().read())
        middle = ends[len(ends) // 2]
        busy = {call.thread for call in recording.calls().read()}
        for part in (
            recording.slice(end=middle),
            recording.slice(start=middle),
            *(recording.slice(threads=[thread]) for thread in busy),
        ):
            out = tmp_path / f"{next(numbers)}{exported.suffix(name)}"
            check(name, part, out)


def test_speedscope_has_each_thread(path, tmp_path):
    out = tmp_path / "app.speedscope.json"
    with whence.open(path) as recording:
        export(recording, out)
        titles = [p["name"] for p in exported.speedscope_file(out)["profiles"]]
        busy = {call.thread for call in recording.calls().read()}
        threads = [t for t in recording.threads if t.id in busy]
        assert titles[0] == "all threads"
        if len(threads) == 1:
            assert len(titles) == 1
            return
        assert titles[1:] == [f"{t.name} ({t.id})" for t in threads]
        for number, thread in enumerate(threads, 1):
            part = recording.slice(threads=[thread.id])
            wanted = exported.expected("speedscope", part)
            assert exported.speedscope(out, number) == wanted


@pytest.mark.parametrize("name", exported.FORMATS)
def test_the_same_bytes_each_time(name, path, tmp_path):
    first, second = (tmp_path / f"{n}{exported.suffix(name)}" for n in "ab")
    with whence.open(path) as recording:
        export(recording, first)
        export(recording, second)
    assert first.read_bytes() == second.read_bytes()
