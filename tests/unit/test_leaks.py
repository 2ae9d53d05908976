"""Leaks as programs have them: the line that takes the memory is the first suspect."""

import functools
import gc
import linecache

import pytest

import whence
from harness.beside_python import execute
from harness.beside_python import whence as whence_command
from harness.walks import needs_stacks

pytestmark = needs_stacks
SIZE = 10_000
RESULTS, CALLBACKS = [], []


class Request:
    def __init__(self, number):
        self.number = number


def into_a_list(number):
    RESULTS.append(bytearray(SIZE + number))  # a list that grows for ever


def into_a_closure(number):
    body = bytearray(SIZE + number)  # which the function below holds

    def callback():
        return len(body)

    CALLBACKS.append(callback)


def fail(number):
    scratch = bytearray(SIZE + number)  # a local of a frame that is held
    message = f"{len(scratch)}"
    raise LookupError(message)


def into_a_cycle_of_a_traceback(number):
    try:
        fail(number)
    except LookupError as error:
        caught = error  # the frame holds the error, which holds the frame
        caught.number = number


@functools.cache
def into_a_cache(request):
    return bytearray(SIZE + request.number)  # by request, and each one is new


def work(leak):
    for number in range(200):
        for _ in range(5):
            bytearray(3 * SIZE)  # given back at once
        leak(number) if leak is not into_a_cache else leak(Request(number))


@pytest.fixture(autouse=True)
def clean():
    gc.disable()  # or cycles would go before the recording ends
    yield
    gc.enable()
    RESULTS.clear()
    CALLBACKS.clear()
    into_a_cache.cache_clear()
    gc.collect()


@pytest.mark.parametrize(
    ("leak", "function", "text"),
    [
        (into_a_list, "into_a_list", "a list that grows for ever"),
        (into_a_closure, "into_a_closure", "which the function below holds"),
        (into_a_cycle_of_a_traceback, "fail", "a local of a frame that is held"),
        (into_a_cache, "into_a_cache", "by request, and each one is new"),
    ],
)
def test_the_line_that_leaks_is_the_first_suspect(tmp_path, leak, function, text):
    path = tmp_path / "leak.whence"
    with whence.record(path, calls=False, memory=True):
        work(leak)
    with whence.open(path) as recording:
        suspect = recording.memory.leaks()[0]
        innermost = suspect.stack[0]
        line = linecache.getline(innermost.filename, innermost.line)
        assert (innermost.filename, innermost.name) == (__file__, function)
        assert text in line
        assert suspect.bytes >= 200 * SIZE
        assert suspect.count >= 200
        assert "work" in [frame.name for frame in suspect.stack]
        by_line = recording.memory.leaks().by_line()[0]
        assert by_line[:3] == (__file__, innermost.line, function)


PROGRAM = """
import asyncio, decimal, sqlite3, xml.dom.minidom

SEEN = {}

def answer(request):
    SEEN[request] = f"answer to {request}" * 3
    return len(SEEN)

def serve():
    for number in range(1_000):
        answer(f"request {number}")

serve()
"""


def test_what_modules_take_does_not_hide_it_in_the_summary(tmp_path):
    script, path = tmp_path / "server.py", tmp_path / "a.whence"
    script.write_text(PROGRAM)
    execute(whence_command("run", "-q", "-o", path, "--memory", script), cwd=tmp_path)
    said = execute(whence_command("summary", path), cwd=tmp_path)
    _, _, leaks = said.out.decode().partition("in use at the end\n")
    suspect, *rest = leaks.partition("\n\n")[0].splitlines()
    assert suspect.endswith("answer (server.py:7)")
    assert rest[-1].endswith("modules, as they were imported")
    assert bytes_of(rest[-1]) > bytes_of(suspect) > 100_000


def bytes_of(row):
    number, unit, *_ = row.split()
    return float(number) * {"bytes": 1, "KB": 1e3, "MB": 1e6}[unit]


def test_a_cycle_that_is_collected_is_no_leak(tmp_path):
    path = tmp_path / "no-leak.whence"
    with whence.record(path, calls=False, memory=True):
        work(into_a_cycle_of_a_traceback)
        gc.collect()
    with whence.open(path) as recording:
        assert recording.memory.leaks().total.bytes < 20 * SIZE
        assert recording.memory.peak.bytes > 200 * SIZE
