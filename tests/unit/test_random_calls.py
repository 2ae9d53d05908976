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
    """Counts of enters by function; and by kind, in all threads."""
    functions, kinds = Counter(), Counter()
    open_frames = Counter()
    with whence.open(path) as recording:
        codes = {}
        for record in recording:
            kinds[record.kind] += 1
            fields = record.fields
            if record.kind in ENTERS or record.kind == "open":
                open_frames[record.thread] += 1
                number = fields["code"]
                if number not in codes:
                    name, qualname, filename, line = recording._reader.code(number)
                    codes[number] = (filename, qualname, line)
                if record.kind in ENTERS:
                    functions[codes[number]] += 1
            elif record.kind in EXITS:
                open_frames[record.thread] -= 1
        assert recording.losses.dropped == {}
    return functions, kinds


def compare(source, filename, path):
    make_run(source, filename)()  # imports, and whatever else happens only once
    truth = calls.count(make_run(source, filename), is_of_program)
    with whence.record(path, overwrite=True, pack=False) as recorder:
        make_run(source, filename)()
    assert recorder.dropped == {}
    functions, kinds = read(path)
    functions = Counter({key: n for key, n in functions.items() if is_of_program(key[0])})
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
    assert ENTERS <= set(seen)
