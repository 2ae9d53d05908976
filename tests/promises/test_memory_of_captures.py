"""What captures keep: nothing twice, no user object, and little of what is gone."""

import gc
import os
import weakref

import whence


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def made(number, body="return capture()"):
    namespace = {"capture": whence.capture}
    exec(f"def function_{number}():\n    {body}\n", namespace)
    return namespace.pop(f"function_{number}")


def test_a_million_captures_of_one_stack_add_nothing():
    def again(times):
        for _ in range(times):
            whence.capture()

    seen = []
    for times in (10, 1_000_000):
        again(times)
        seen.append(whence.statistics())
    assert seen[0] == seen[1]


def test_3000_functions_keep_3000_names_and_no_code():
    stacks, watched = [], []
    for number in range(3000):
        function = made(number)
        stacks.append(function())
        watched.append(weakref.ref(function.__code__))
        del function
    gc.collect()
    assert [code for code in watched if code() is not None] == []
    names = [frames[0].name for frames in whence.symbolize(stacks)]
    assert names == [f"function_{number}" for number in range(3000)]
    assert len(set(stacks)) == 3000


def test_functions_that_are_never_captured_cost_nothing():
    before = whence.statistics()
    for number in range(100_000):
        made(number, "return 1")()
        if number % 100 == 0:
            whence.capture()
    after = whence.statistics()
    assert after.codes - before.codes <= 2  # this function, and pytest's own frames
    assert after.codes_dead == before.codes_dead
    assert after.codes_bytes - before.codes_bytes <= 1 << 16


def test_functions_that_were_captured_cost_a_few_hundred_bytes():
    count = 100_000
    made(0)()
    gc.collect()
    before, resident_before = whence.statistics(), resident()
    for number in range(count):
        made(number)()
    gc.collect()
    after = whence.statistics()
    assert after.codes_dead - before.codes_dead == count
    tables = (after.codes_bytes + after.stacks_bytes) - (
        before.codes_bytes + before.stacks_bytes
    )
    assert tables / count < 300  # tables grow by doubling: half of this is reserve
    assert (resident() - resident_before) / count < 400


def test_chains_of_origins_can_be_as_long_as_they_like():
    stack = None
    for _ in range(300_000):
        stack = whence.capture(origin=stack)
    other = None
    for _ in range(3):
        other = whence.capture(origin=other)
    assert stack != other
    del stack
    gc.collect()
