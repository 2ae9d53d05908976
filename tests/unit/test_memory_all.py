"""memory="all": blocks of the C library and mappings, in whatever library."""

import ctypes
import linecache
import mmap
import os
import shutil

import pytest

import whence
from harness.walks import needs_stacks

MEGABYTE = 1_000_000
PAGE = mmap.PAGESIZE
SIZE = 123_456  # that nobody else takes
# A sanitizer has functions of its own, and ends the process that asks for too much.
not_sanitized = pytest.mark.skipif(
    "WHENCE_SANITIZED" in os.environ, reason="a sanitizer has its own idea of that"
)


@pytest.fixture
def record(tmp_path):
    paths = iter(range(100))

    def start(**options):
        path = tmp_path / f"{next(paths)}.whence"
        return whence.record(path, calls=False, memory="all", **options)

    return start


def events(recorder, *sizes):
    """Return (kind, size) of those sizes, and frees of their blocks."""
    with whence.open(recorder.path) as recording:
        blocks, found = set(), []
        for record in recording:
            fields = record.fields
            if fields.get("size") in sizes:
                found.append((record.kind, fields["size"]))
                blocks.add(fields["address"])
            elif record.kind == "freed" and fields["address"] in blocks:
                found.append(("freed", None))
                blocks.discard(fields["address"])
        return found


@pytest.mark.parametrize(
    "how",
    [
        *("malloc", "calloc", "realloc", "reallocarray", "aligned_alloc", "memalign"),
        *("posix_memalign", "valloc", "pvalloc"),
        *(pytest.param(how, marks=not_sanitized) for how in ("new", "strdup")),
    ],
)
@pytest.mark.parametrize("released", [False, True])
def test_each_way_to_take_a_block(record, greedy, how, released):
    size = 31 * PAGE if how == "pvalloc" else SIZE
    with record() as recorder:
        greedy.give(greedy.take(how, size, released))
    assert events(recorder, size) == [("malloc_allocated", size), ("freed", None)]


def test_a_block_that_moves(record, greedy):
    with record() as recorder:
        block, _ = greedy.move(greedy.take("malloc", SIZE), 10 * SIZE)
        greedy.give(block)
    with whence.open(recorder.path) as recording:
        kinds = [
            (record.kind, record.fields.get("size"))
            for record in recording
            if record.fields.get("size") in (SIZE, 10 * SIZE)
        ]
        assert kinds == [("malloc_allocated", SIZE), ("malloc_moved", 10 * SIZE)]
        assert recording.memory.peak.groups.by_domain()


@not_sanitized
def test_a_block_that_cannot_move_stays(record, greedy):
    with record() as recorder:
        block = greedy.take("malloc", SIZE)
        moved, error = greedy.move(block, 2**62)
        assert (moved, error) == (0, 12)  # ENOMEM
    assert ("malloc_allocated", SIZE) in events(recorder, SIZE)
    with whence.open(recorder.path) as recording:
        history = [event.action for event in recording.memory.history(block)]
        assert history[-3:] == ["allocated", "freed", "not_freed"]
        assert recording.memory.counts.out_of_memory == 1
        (failed,) = (r for r in recording if r.kind == "out_of_memory")
        assert failed.fields["size"] == 2**62
    greedy.give(block)


def test_a_block_that_shrinks_to_nothing_is_given_back(record, greedy):
    with record() as recorder:
        block = greedy.take("malloc", SIZE)
        assert greedy.move(block, 0) == (0, 0)
    with whence.open(recorder.path) as recording:
        assert [event.action for event in recording.memory.history(block)][-2:] == [
            *("allocated", "freed"),
        ]
        assert recording.memory.counts.out_of_memory == 0


def test_errno_is_the_programs(record, greedy):
    with record():
        assert greedy.give(greedy.take("malloc", SIZE)) == 1234


def test_what_pythons_allocators_take_is_theirs(record):
    with record() as recorder:
        kept = bytes(SIZE)
        del kept
    (taken, freed) = events(recorder, SIZE + bytes.__basicsize__)
    assert taken == ("obj_allocated", SIZE + bytes.__basicsize__)
    assert freed == ("freed", None)
    with record() as recorder:
        kept = [object() for _ in range(100_000)]  # in arenas
        assert kept
        with whence.open(recorder.path) as recording:
            usage = recording.memory.usage().points[-1].domains
            assert usage["obj"].bytes > 1_600_000
            assert usage.get("mmap", (0, 0))[0] < 300_000


def live(recording, domain):
    total = recording.memory.leaks().by_domain().get(domain)
    return total.bytes if total else 0


def test_mappings_go_by_parts(record, greedy):
    with record() as recorder:
        place = greedy.take("mmap", 10 * PAGE)
        assert greedy.unmap(place + 2 * PAGE, 3 * PAGE) == 0
        assert greedy.unmap(place, PAGE) == 0
    with whence.open(recorder.path) as recording:
        assert live(recording, "mmap") == 6 * PAGE
        sizes = [e.size // PAGE for e in recording.memory.history(place + 3 * PAGE)]
        assert sizes == [10, 3]
    with record() as recorder:
        place = greedy.remap(place + 5 * PAGE, 5 * PAGE, 50 * PAGE)
        greedy.unmap(place, 50 * PAGE)
    with whence.open(recorder.path) as recording:
        assert live(recording, "mmap") == 0
        assert recording.memory.peak.bytes >= 50 * PAGE
        assert recording.memory.counts.before >= 1


def test_pythons_own_mappings(record):
    with record() as recorder, mmap.mmap(-1, 77 * PAGE):
        pass
    told = events(recorder, 77 * PAGE)
    assert told == [("mmap_allocated", 77 * PAGE), ("unmapped", 77 * PAGE)]


def test_a_library_that_is_loaded_later(record, greedy, tmp_path):
    copy = shutil.copy(greedy.__file__, tmp_path / "later.so")
    with record() as recorder:
        library = ctypes.CDLL(str(copy))
        library.greedy_take.restype = ctypes.c_void_p
        block = ctypes.c_void_p(library.greedy_take(SIZE))
        library.greedy_give(block)
    assert events(recorder, SIZE) == [("malloc_allocated", SIZE), ("freed", None)]


def test_a_library_that_goes_meanwhile(record, greedy, tmp_path):
    copy = shutil.copy(greedy.__file__, tmp_path / "going.so")
    dlclose = ctypes.CDLL(None).dlclose
    dlclose.argtypes = [ctypes.c_void_p]
    for _ in range(3):
        with record():
            library = ctypes.CDLL(str(copy))
            library.greedy_give(None)
            assert dlclose(library._handle) == 0
            greedy.give(greedy.take("malloc", SIZE))
    library = ctypes.CDLL(str(copy))
    library.greedy_give(None)
    dlclose(library._handle)


def test_functions_that_ctypes_asks_for(record):
    with record() as recorder:
        library = ctypes.CDLL(None)
        library.malloc.restype = ctypes.c_void_p
        library.free(ctypes.c_void_p(library.malloc(SIZE)))
    assert events(recorder, SIZE) == [("malloc_allocated", SIZE), ("freed", None)]
    library.free(ctypes.c_void_p(library.malloc(SIZE)))  # they are good for ever
    path = recorder.path
    with whence.record(path, overwrite=True, calls=False, memory=True) as recorder:
        library.free(ctypes.c_void_p(library.malloc(SIZE)))
    assert events(recorder, SIZE) == []  # it was not asked for


def test_a_forked_child_passes_calls_on(record, greedy, tmp_path):
    with record():
        child = os.fork()
        if child == 0:
            greedy.give(greedy.take("malloc", SIZE))
            with whence.record(tmp_path / "some", memory=True) as recorder:
                greedy.give(greedy.take("malloc", SIZE))
            with whence.record(tmp_path / "all", memory="all") as all_of_it:
                greedy.give(greedy.take("malloc", SIZE + 1))
            good = not events(recorder, SIZE) and events(all_of_it, SIZE + 1)
            os._exit(not good)
        assert os.waitpid(child, 0)[1] == 0


def test_who_asks_all_libraries_gets_what_it_would_get(record, greedy):
    assert greedy.asks_right()
    with record():
        assert greedy.asks_right()


def test_nothing_is_seen_before_and_after(record, greedy):
    recorder = record()
    greedy.give(greedy.take("malloc", SIZE))
    with recorder:
        greedy.give(greedy.take("malloc", SIZE + 1))
        recorder.pause()
        greedy.give(greedy.take("malloc", SIZE + 2))
        recorder.resume()
        greedy.give(greedy.take("malloc", SIZE + 3))
    greedy.give(greedy.take("malloc", SIZE + 4))
    told = events(recorder, *range(SIZE, SIZE + 5))
    assert [size for kind, size in told if size] == [SIZE + 1, SIZE + 3]
    with record(overwrite=True):
        pass
    other = whence.record(recorder.path, overwrite=True, calls=False, memory=True)
    with other:
        greedy.give(greedy.take("malloc", SIZE))
    assert not events(other, SIZE)


def leak(greedy, released):
    greedy.take("malloc", SIZE, released)  # and who knows where it goes


@needs_stacks
@pytest.mark.parametrize("released", [False, True])
def test_a_leak_in_c_has_the_line_of_python(record, greedy, released):
    with record() as recorder:
        for _ in range(100):
            greedy.give(greedy.take("malloc", 3 * SIZE))
            leak(greedy, released)
    with whence.open(recorder.path) as recording:
        suspect = recording.memory.leaks()[0]
        assert (suspect.bytes, suspect.count) == (100 * SIZE, 100)
        frame = suspect.stack[0]
        assert (frame.name, frame.filename) == ("leak", __file__)
        assert "who knows" in linecache.getline(frame.filename, frame.line)


@not_sanitized
def test_what_is_refused_as_nonsense_is_not_for_lack_of_memory(record, tmp_path):
    (tmp_path / "file").write_bytes(bytes(PAGE))
    with record() as recorder, (tmp_path / "file").open("rb") as file:
        with pytest.raises(PermissionError):
            mmap.mmap(file.fileno(), PAGE, access=mmap.ACCESS_WRITE)
        library = ctypes.CDLL(None)
        assert library.calloc(ctypes.c_size_t(2**63), ctypes.c_size_t(3)) == 0
    with whence.open(recorder.path) as recording:
        (failure,) = recording.memory.failures
        assert (failure.domain, failure.size) == ("malloc", 2**64 - 1)


@pytest.mark.parametrize("detail", ["alloc", "full", "state"])
def test_a_mapping_that_is_not_given_back_stays(record, greedy, detail):
    with record(memory_detail=detail) as recorder:
        place = greedy.take("mmap", 77 * PAGE)
        assert greedy.unmap(place + 1, PAGE) == -1
        assert greedy.unmap(place, 0) == -1
    with whence.open(recorder.path) as recording:
        assert live(recording, "mmap") == 77 * PAGE
    greedy.unmap(place, 77 * PAGE)


def test_threads_that_give_back_after_their_end_leave_no_chunks(record, greedy):
    with record(pack=False) as recorder:
        greedy.end_late(100)
        assert os.path.getsize(recorder.path) < 2 * MEGABYTE  # noqa: PTH202
    assert not recorder.dropped
    with whence.open(recorder.path) as recording:
        assert 100 <= len(recording.threads) <= 110


@pytest.mark.skipif(
    bool(os.environ.get("WHENCE_SANITIZED")),
    reason="AddressSanitizer's allocator can stay locked in a forked child",
)
@pytest.mark.parametrize("detail", ["alloc", "state"])
def test_children_that_python_does_not_know_of_do_not_hang(record, greedy, detail):
    with record(memory_detail=detail):
        assert greedy.fork_while_busy(200) == 0


def test_a_thread_that_is_cancelled_while_it_takes_memory_ends_where_it_would(
    record, greedy
):
    with record() as recorder:
        assert greedy.cancel_while_busy() == 2
    assert events(recorder, 100)
