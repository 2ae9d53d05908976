"""Memory recording that gets nothing from the system: the program goes on unchanged."""

import errno
import threading

import pytest

import whence

pytestmark = pytest.mark.store

FOR_EVER = 2**40
OPTIONS = {"calls": False, "chunk_size": 4096, "max_size": 24 * 4096}


def program():
    """Threads that take memory, from stacks that are new each time."""
    results = []

    def dive(depth, number):
        if depth:
            return dive(depth - 1, number)
        made = [bytes(number + turn) for turn in range(20)]
        made.extend(bytearray(5_000) for _ in range(3))
        return sum(map(len, made))

    def work(number):
        results.extend(dive(depth, number) for depth in range(0, 60, 7))

    threads = [threading.Thread(target=work, args=[n]) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(results)


def record_it(folder, memory):
    path = folder / "faulty.whence"
    path.unlink(missing_ok=True)
    with whence.record(path, memory=memory, **OPTIONS):
        result = program()
    return result, path


@pytest.mark.timeout(600)
@pytest.mark.parametrize("memory", [True, "all"])
@pytest.mark.parametrize("last", [0, FOR_EVER], ids=["once", "for_ever"])
@pytest.mark.parametrize("error", ["ENOMEM", "ENOSPC"])
def test_every_call_fails_in_turn(faults, tmp_path, error, last, memory):
    expected = program()
    faults.arm(0, -1, 0)  # none fails
    record_it(tmp_path, memory)
    calls = faults.disarm()
    assert calls > 40
    for point in range(calls + 5):  # how threads take turns moves it a little
        faults.arm(point, point + last, getattr(errno, error))
        try:
            result, path = record_it(tmp_path, memory)
        finally:
            faults.disarm()
        assert result == expected, f"call {point} of {calls}"
        if path.exists() and path.read_bytes()[:512].strip(b"\0"):
            with whence.open(path) as recording:
                losses = recording.losses
                assert losses.produced == losses.recorded + sum(losses.dropped.values())
