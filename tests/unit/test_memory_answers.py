"""Questions about memory leave no trace in it, and what was refused did not happen."""

import os

import pytest

from harness import runner, walks

pytestmark = walks.needs_stacks

QUIET = """
import whence
kept = []
def work(recorder):
    kept.append(bytes(100_000))
    {question}
    kept.append(bytes(100_000))
with whence.record({path!r}, calls=False, memory={memory!r}) as recorder:
    work(recorder)
with whence.open({path!r}) as recording:
    memory = recording.memory
    mine = [g for g in memory.leaks() if g.bytes >= 20_000]
    print(*(f"{{g.stack[0].name}} {{g.bytes // 10_000}}" for g in mine))
    print(memory.peak.bytes < 400_000)
"""


@pytest.mark.parametrize("memory", [True, "all"])
@pytest.mark.parametrize(
    "question",
    [
        "whence.memory",
        "assert whence.memory.snapshot()[0].stack[0].name == 'work'",
        "assert whence.memory.stack_of(kept[0]) is not None",
        "whence.memory.export_history({path!r} + '.dump')",
        "whence.memory.snapshot(); whence.memory.stack_of(recorder)",
    ],
)
def test_a_question_takes_no_memory_of_the_program(tmp_path, memory, question):
    """In a process of its own: there it has to import what it needs."""
    path = str(tmp_path / "a.whence")
    question = question.format(path=path)
    program = QUIET.format(path=path, question=question, memory=memory)
    done = runner.run(program)
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == ["work 10 work 10", "True"]


def test_what_is_given_back_while_one_is_answered_is_told(tmp_path):
    """The collector may run then, and what it finds is the program's."""
    path = str(tmp_path / "a.whence")
    program = f"""
        import gc, whence
        from whence import memory
        class Cycle:
            def __init__(self):
                self.me, self.block = self, bytes(50_000)
        gc.disable()
        with whence.record({path!r}, calls=False, gc=False, memory=True):
            for _ in range(20):
                Cycle()
            before = memory.snapshot().total.bytes
            gc.set_threshold(1)
            gc.enable()
            after = [memory.snapshot().total.bytes for _ in range(2)]
        print(before > 1_000_000, after[-1] < 100_000)
    """
    done = runner.run(program)
    assert (done.status, done.out, done.err) == (0, "True True\n", "")


def test_a_recording_that_was_moved_still_answers(tmp_path):
    path = str(tmp_path / "a.whence")
    program = f"""
        import os, whence
        from whence import memory
        with whence.record({path!r}, calls=False, memory=True, pack=False):
            kept = bytes(100_000)
            os.rename({path!r}, {path!r} + ".moved")
            open({path!r}, "w").write("of somebody else")
            print(memory.snapshot()[0].bytes > 100_000)
            print(memory.stack_of(kept).frames[0].name)
    """
    done = runner.run(program)
    assert (done.status, done.out, done.err) == (0, "True\n<module>\n", "")


MAPPINGS = """
import ctypes, errno, whence
from whence import memory

NO_WHERE, PAGE = 0x123000, 4096
PRIVATE, FIXED, ANONYMOUS, BOTH = 2, 16, 32, 3
FAILED = ctypes.c_void_p(-1).value

def library():
    libc = ctypes.CDLL("libc.so.6", use_errno=True)
    size, number, place = ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p
    libc.mmap.restype = libc.mremap.restype = place
    libc.mmap.argtypes = [place, size, number, number, number, ctypes.c_long]
    libc.mremap.argtypes = [place, size, size, number]
    libc.munmap.argtypes = [place, size]
    return libc

def anonymous(libc, size, at=None, flags=0):
    return libc.mmap(at, size, BOTH, PRIVATE | ANONYMOUS | flags, -1, 0)

early = anonymous(library(), 1 << 20)
recorder = whence.record({path!r}, calls=False, memory="all", memory_detail={detail!r})
with recorder:
    libc = library()  # asked again, it is led through whence
    {steps}
with whence.open({path!r}) as recording:
    level = recording.memory.leaks().by_domain().get("mmap")
    print(level.bytes if level else 0)
"""


@pytest.mark.skipif(
    "WHENCE_SANITIZED" in os.environ, reason="a sanitizer has an mmap() of its own"
)
@pytest.mark.parametrize("detail", ["state", "alloc", "full"])
@pytest.mark.parametrize(
    ("steps", "in_use"),
    [
        ("assert libc.mremap(NO_WHERE, PAGE, 2 * PAGE, 1) == FAILED", 0),
        ("assert libc.mremap(NO_WHERE + 5, 1 << 30, 1 << 31, 1) == FAILED", 0),
        ("assert libc.mremap(early, 1 << 20, 1 << 44, 0) == FAILED", 0),
        (
            "block = anonymous(libc, 1 << 16)\n"
            "    assert libc.munmap(block + (1 << 15), 1 << 15) == 0\n"
            "    assert libc.mremap(block, 1 << 16, 1 << 17, 1) == FAILED\n"
            "    assert libc.munmap(block + 1, PAGE) == -1",
            1 << 15,
        ),
        (
            "block = anonymous(libc, 1 << 16)\n"
            "    fixed = PRIVATE | FIXED\n"
            "    assert libc.mmap(block, 1 << 16, BOTH, fixed, 9999, 0) == FAILED",
            1 << 16,
        ),
        (
            "block = anonymous(libc, 1 << 16)\n"
            "    assert anonymous(libc, PAGE, block + PAGE, FIXED) == block + PAGE",
            1 << 16,
        ),
        (
            "block = anonymous(libc, 1 << 16)\n"
            "    assert libc.mremap(block, 1 << 16, PAGE, 0) == block",
            4096,
        ),
        (
            "block = anonymous(libc, 1 << 16)\n"
            "    assert libc.mremap(block, 1 << 16, 1 << 44, 1) == FAILED",
            1 << 16,
        ),
        (
            "block = anonymous(libc, 1 << 16)\n"
            "    assert libc.mremap(block, 1 << 16, 1 << 22, 1) != FAILED",
            1 << 22,
        ),
        (
            "block = anonymous(libc, 4 * PAGE)\n"
            "    assert memory.stack_of(block + PAGE) is not None\n"
            "    assert libc.munmap(block + PAGE, PAGE) == 0\n"
            "    assert memory.stack_of(block + PAGE) is None\n"
            "    assert memory.stack_of(block + 2 * PAGE) is not None\n"
            "    assert memory.stack_of(block) is not None",
            3 * 4096,
        ),
    ],
)
def test_mappings_are_what_the_system_made_of_them(tmp_path, detail, steps, in_use):
    path = str(tmp_path / "a.whence")
    done = runner.run(MAPPINGS.format(path=path, detail=detail, steps=steps))
    assert (done.status, done.out, done.err) == (0, f"{in_use}\n", "")


@pytest.mark.parametrize("blocks", [1_000, 50_000])
def test_a_ring_may_be_too_small_for_all_that_is_in_use(tmp_path, blocks):
    """Then it has no answer, rather than a part of one, and the recording says so."""
    path = str(tmp_path / "a.whence")
    program = f"""
        import whence
        from whence import memory
        options = dict(calls=False, gc=False, max_size="256KB")
        with whence.record({path!r}, memory=True, memory_detail="state", **options):
            kept = [bytes(100) for _ in range({blocks})]
            try:
                print(memory.snapshot().total.count >= {blocks})
            except RuntimeError as error:
                print(error)
        with whence.open({path!r}) as recording:
            count = recording.memory.leaks().total.count
            print(recording.info.memory, count >= {blocks})
    """
    done = runner.run(program)
    small = "all that is in use is more than the ring holds: raise max_size"
    told = ["True", "None True"] if blocks == 1_000 else [small, "state_cut False"]
    assert (done.status, done.out.splitlines(), done.err) == (0, told, "")


def test_hooks_that_were_gone_are_told_whatever_comes_after(tmp_path):
    path = str(tmp_path / "a.whence")
    program = f"""
        import tracemalloc, whence
        tracemalloc.start()
        recorder = whence.record({path!r}, calls=False, memory=True).start()
        tracemalloc.stop()  # puts back what it had found
        lost = [bytes(1000) for _ in range(1000)]
        recorder.memory_detail = "full"
        recorder.stop()
        with whence.open({path!r}) as recording:
            print(recording.info.memory)
    """
    done = runner.run(program)
    assert (done.status, done.out, done.err) == (0, "hook_replaced\n", "")


def test_what_is_no_address_is_said_to_be_none():
    from whence import memory

    for number in (-1, 1 << 64):
        with pytest.raises(ValueError, match=r"an address is from 0 to 2\*\*64 - 1"):
            memory.stack_of(number)
