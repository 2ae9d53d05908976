"""The native capture against its slow twin, on programs nobody wrote."""

import random
import threading

import whence
from reference import capture, programs


def make_probe(budget=60):
    """A function that captures its caller's stack both ways, `budget` times."""
    differences = []
    seen = set()

    def probe():
        nonlocal budget
        if budget <= 0:
            return
        budget -= 1
        stack = whence.capture(skip=1)
        expected = capture.frames(skip=1)
        seen.add(stack)
        if list(stack.frames) != expected:
            differences.append((stack.frames, expected))

    return probe, differences, seen


def run_in_thread(source, filename, probe):
    """Run a program with few frames below it. What it raises is the writer's bug."""
    raised = []

    def run():
        try:
            exec(
                compile(source, filename, "exec"),
                {"probe": probe, "__name__": "program"},
            )
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not raised, source


def test_500_random_programs_agree_with_the_twin(seed, request):
    count = request.config.getoption("--programs")
    captured = 0
    for number in range(count):
        source = programs.random_program(random.Random(f"{seed}:{number}"))
        probe, differences, seen = make_probe()
        run_in_thread(source, f"<program {number}>", probe)
        assert not differences, f"--seed {seed}, program {number}:\n{source}"
        captured += len(seen)
    assert captured > 3 * count


def test_random_skip_and_limit_agree_with_the_twin(rng):
    def dive(depth, skip, limit):
        if depth:
            return dive(depth - 1, skip, limit)
        return (
            whence.capture(skip=skip, limit=limit),
            # one line up, so the innermost frame differs in its place
            capture.frames(skip, limit),
        )

    for _ in range(200):
        depth, skip = rng.randint(0, 30), rng.randint(0, 40)
        limit = rng.choice([None, 0, 1, 5, 50])
        stack, expected = dive(depth, skip, limit)
        got = list(stack.frames)
        if skip == 0 and expected:
            assert got[0][:2] == expected[0][:2]
            got, expected = got[1:], expected[1:]
        assert got == expected
