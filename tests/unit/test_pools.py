"""Domains of memory that allocators report in, from Python and from C."""

import threading

import pytest

import whence
from harness.recorded import recorded
from harness.walks import needs_stacks
from whence import _core, memory

FIRST = memory.domain("first")
SECOND = memory.domain("second")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.whence"


def memory_of(path):
    return whence.open(path).memory


def take(domain, address, size):
    domain.allocated(address, size)


def give(domain, address):
    domain.freed(address)


@needs_stacks
def test_a_block_has_its_domain_its_size_and_the_stack_that_asked(path):
    with recorded(path):
        take(FIRST, 4096, 100)
        take(FIRST, 8192, 50)
        give(FIRST, 4096)
    found = memory_of(path)
    allocated, freed = found.history(4100, pool="first")
    assert (allocated.action, allocated.size, allocated.domain) == (
        *("allocated", 100, "first"),
    )
    names = [frame.name for frame in allocated.stack]
    assert names[0] == "take"
    assert "test_a_block_has_its_domain" in names[1]
    assert (freed.action, freed.size, freed.stack) == ("freed", 100, ())
    assert found.leaks().by_domain()["first"] == (50, 1)
    by_line = {line.function: line for line in found.leaks().by_line()}
    assert by_line["take"].bytes >= 50


@needs_stacks
def test_frees_have_stacks_if_that_is_asked_for(path):
    with recorded(path, memory_detail="full"):
        FIRST.segment_allocated(0, 10_000)
        take(FIRST, 4096, 100)
        give(FIRST, 4096)
        FIRST.segment_freed(0)
    *_, freed, segment = memory_of(path).history(4096, pool="first")
    assert freed.stack[0].name == "give"
    assert segment.action == "segment_freed"
    assert segment.stack[0].name.startswith("test_frees_have")


def test_the_same_address_in_two_domains_is_two_blocks(path):
    with recorded(path):
        FIRST.allocated(4096, 10)
        SECOND.allocated(4096, 20)
        SECOND.freed(4096)
    found = memory_of(path)
    assert found.leaks().by_domain()["first"] == (10, 1)
    assert "second" not in found.leaks().by_domain()
    assert [e.size for e in found.history(4096, pool="second")] == [20, 20]
    assert found.history(4096, pool="nobody") == []
    assert found.counts.contradictions == 0


def test_usage_tells_domains_apart_and_what_they_have_reserved(path):
    with recorded(path):
        FIRST.segment_allocated(1 << 20, 1 << 16)
        FIRST.segment_allocated(1 << 21, 1 << 10)
        FIRST.allocated(1 << 20, 300)
        SECOND.allocated(1 << 20, 1 << 40)
        SECOND.freed(1 << 20)
        FIRST.segment_freed(1 << 21)
        FIRST.segment_freed(77)  # one from before
    points = memory_of(path).usage().points
    top = max(points, key=lambda point: point.bytes)
    assert top.domains["second"] == (1 << 40, 1)
    assert top.domains["first"] == (300, 1)
    assert top.reserved == {"first": (1 << 16) + (1 << 10)}
    assert points[-1].reserved == {"first": 1 << 16}
    assert "second" not in points[-1].domains
    # What is reserved is not in use.
    assert memory_of(path).peak.bytes == top.bytes
    assert sum(level.bytes for level in top.domains.values()) == top.bytes


def test_a_segment_that_is_told_again_replaces_the_one_before(path):
    with recorded(path):
        FIRST.segment_allocated(4096, 100)
        FIRST.segment_allocated(4096, 30)
    assert memory_of(path).usage().points[-1].reserved == {"first": 30}


def test_more_domains_than_usage_tells_apart(path):
    domains = [memory.domain(f"one of many {n}") for n in range(100)]
    with recorded(path):
        for number, domain in enumerate(domains):
            domain.allocated(64, 1000 + number)
    found = memory_of(path)
    last = found.usage().points[-1].domains
    assert last["one of many 63"] == (1063, 1)
    assert last["other pools"] == (sum(range(1064, 1100)), 36)
    assert found.leaks().by_domain()["one of many 99"] == (1099, 1)


def test_nothing_is_told_without_a_recording_of_memory(path):
    FIRST.allocated(4096, 10)
    with recorded(path, memory=False):
        FIRST.allocated(4096, 10)
        FIRST.out_of_memory(5, 5)
    with recorded(path.with_suffix(".2"), memory=True) as recorder:
        recorder.pause()
        FIRST.allocated(4096, 20)
        recorder.resume()
        FIRST.allocated(8192, 30)
    with whence.open(path) as recording:
        assert not any(r.kind in ("pool", "pool_allocated") for r in recording)
        assert recording.memory.failures == []
    found = memory_of(path.with_suffix(".2"))
    assert found.leaks().by_domain()["first"] == (30, 1)


def test_every_recording_of_a_process_has_the_names(path):
    for number in (1, 2, 3):
        with recorded(path):
            FIRST.allocated(4096, number)
        assert memory_of(path).leaks().by_domain()["first"] == (number, 1)


def test_a_ring_keeps_the_names_and_a_dump_has_them(path):
    with recorded(path, max_size="256KB", chunk_size=4096) as recorder:
        SECOND.allocated(4096, 1)
        for number in range(100_000):
            FIRST.allocated(8192 + number, 1)
        recorder.dump(path.with_suffix(".dump"))
    for file in (path, path.with_suffix(".dump")):
        with whence.open(file) as recording:
            assert recording.losses.dropped["ring"] > 10_000
            assert {r.fields["name"] for r in recording if r.kind == "pool"} >= {
                *("first", "second"),
            }
            assert recording.memory.leaks().by_domain()["first"].count > 1_000


def test_domains_are_named_once_and_well():
    assert memory.domain("first").name == "first"
    assert repr(FIRST) == "whence.memory.domain('first')"
    with pytest.raises(ValueError, match="'obj' is a domain of the process: choose"):
        memory.domain("obj")
    with pytest.raises(ValueError, match="a domain needs a name like 'cuda:0', not ''"):
        memory.domain("")
    with pytest.raises(TypeError, match="a domain needs a name like 'cuda:0', not 7"):
        memory.domain(7)


@pytest.mark.parametrize(
    ("method", "arguments", "error", "message"),
    [
        ("allocated", (-1, 5), ValueError, "address must be a number of up to 64 bits"),
        ("allocated", (1, 2**64), ValueError, "size must be a number of up to 64 bits"),
        ("allocated", ("x", 1), TypeError, "address must be a number of up to 64 bits"),
        ("allocated", (1,), TypeError, "this takes an address and a size"),
        ("segment_allocated", (1, None), TypeError, "size must be a number of up to"),
        ("freed", (1.5,), TypeError, "address must be a number of up to 64 bits, not"),
        ("segment_freed", (-5,), ValueError, "address must be a number of up to 64"),
        ("out_of_memory", (-5,), ValueError, "size must be a number of up to 64 bits"),
        ("out_of_memory", (5, "x"), TypeError, "available must be a number of up to"),
    ],
)
def test_what_is_no_number_is_said_in_one_line(method, arguments, error, message):
    with pytest.raises(error, match=message) as caught:
        getattr(FIRST, method)(*arguments)
    assert "\n" not in str(caught.value)


def test_a_thousand_domains_are_all_there_are(run_python):
    out = run_python(
        """
        from whence import memory
        for number in range(1024):
            memory.domain(f"domain {number}")
        memory.domain("domain 5")
        try:
            memory.domain("one more")
        except RuntimeError as error:
            print(error)
        """
    )
    assert out == "there is no room for another domain of memory\n"


def test_a_recording_that_names_a_domain_as_one_of_the_process(path):
    """Which whence.h can do: it is shown by its number."""
    odd = _core.Domain("mem")
    with recorded(path):
        odd.allocated(4096, 1 << 30)
    by_domain = memory_of(path).leaks().by_domain()
    (name,) = (name for name, level in by_domain.items() if level.bytes == 1 << 30)
    assert name.startswith("pool ")


@needs_stacks
def test_from_c(path, pool):
    with recorded(path):
        block = pool.take(77)
        address = pool.address_of(block)
        pool.fail()
        del block
        pool.release()
        assert pool.tell_nobody()
    found = memory_of(path)
    actions = [event.action for event in found.history(address, pool="test pool")]
    assert actions[-2:] == ["freed", "segment_freed"] or actions[-1:] == ["freed"]
    assert "allocated" in actions
    (event,) = (
        e for e in found.history(address, pool="test pool") if e.action == "allocated"
    )
    assert event.stack[0].name == "test_from_c"
    assert [(f.size, f.available) for f in found.failures] == [(1000, 7), (2000, None)]
    assert {f.domain for f in found.failures} == {"test pool"}


@needs_stacks
def test_a_thread_that_has_given_the_gil_away_has_its_stack(path, pool):
    with recorded(path):
        address = pool.use_released()
    events = memory_of(path).history(address, pool="test pool")
    (event,) = (event for event in events if event.action == "allocated")
    assert (
        event.stack[0].name == "test_a_thread_that_has_given_the_gil_away_has_its_stack"
    )


def test_threads_that_python_does_not_know_have_no_stack(path, pool):
    with recorded(path):
        pool.storm(3, 1_000)
    with whence.open(path) as recording:
        told = [r for r in recording if r.kind == "pool_allocated"]
        assert len(told) == 3_000
        assert {record.fields["stack"] for record in told} == {0}
        assert len({record.thread for record in told}) == 3


def test_threads_that_end_while_they_tell(path):
    def work(number):
        for block in range(50):
            FIRST.allocated(1_000_000 * number + 16 * block, 16)

    with recorded(path, chunk_size=4096):
        for number in range(30):
            thread = threading.Thread(target=work, args=[number])
            thread.start()
            thread.join()
    assert memory_of(path).leaks().by_domain()["first"] == (30 * 50 * 16, 30 * 50)


def test_what_is_given_back_while_a_question_is_answered_counts(path):
    """As the collector does in the middle of memory.snapshot()."""
    with recorded(path):
        take(FIRST, 4096, 100)
        before = _core.set_answering(True)
        give(FIRST, 4096)
        take(FIRST, 8192, 50)  # that is the answer's own
        _core.set_answering(before)
    assert "first" not in memory_of(path).leaks().by_domain()
