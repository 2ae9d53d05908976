"""The tracer of calls against an independent count, on programs nobody wrote."""

import random
from collections import Counter

import whence
from reference import call_programs, calls

ENTERS = {"call", "resume", "throw"}
EXITS = {"return", "yield", "unwind", "unstarted", "gone"}


def is_of_program(filename):
    return filename.startswith(("<program", "<made", "<string"))


def make_run(source, filename):
    def run():
        names = {"probe": lambda: None, "__name__": "program"}
        exec(compile(source, filename, "exec"), names)

    return run


def read(path):
    """Counts of enters by function, and of records by kind. All calls must nest."""
    with whence.open(path) as recording:
        kinds = Counter(record.kind for record in recording)
        calls = list(recording.calls().read())
        assert recording.losses.dropped == {}
    by_number = {(call.thread, call.number): call for call in calls}
    left = Counter(call.left for call in calls)
    entered = Counter(call.entered for call in calls)
    # Whatever was entered was left, or was open at the end.
    for kind in ("call", "resume", "throw"):
        assert entered[kind] == kinds[kind]
    for kind in EXITS:
        assert left[kind] == kinds[kind], kind
    for call in calls:
        if call.parent is None:
            assert call.depth == 0
            continue
        parent = by_number[call.thread, call.parent]
        assert call.depth == parent.depth + 1
        assert parent.start <= call.start
        assert call.start + call.duration <= parent.start + parent.duration
    functions = Counter(
        (call.filename, call.function, call.line)
        for call in calls
        if call.entered in ENTERS
    )
    return functions, kinds


def compare(source, filename, path):
    make_run(source, filename)()  # imports, and whatever else happens only once
    truth = calls.count(make_run(source, filename), is_of_program)
    with whence.record(path, overwrite=True, pack=False) as recorder:
        make_run(source, filename)()
    assert recorder.dropped == {}
    functions, kinds = read(path)
    functions = Counter(
        {key: n for key, n in functions.items() if is_of_program(key[0])}
    )
    return truth, functions, kinds


def test_500_random_programs_count_as_an_independent_tracer_does(
    seed, request, tmp_path
):
    path = tmp_path / "calls.whence"
    seen = Counter()
    for number in range(request.config.getoption("--programs")):
        source = call_programs.random_program(random.Random(f"{seed}:{number}"))
        truth, functions, kinds = compare(source, f"<program {number}>", path)
        difference = {
            key: (truth[key], functions[key])
            for key in truth | functions
            if truth[key] != functions[key]
        }
        assert not difference, f"--seed {seed}, program {number}:\n{source}"
        seen += kinds
    assert set(seen) >= ENTERS
