"""Recording.calls(), .exceptions and .tasks: each rule of FORMAT.md, "Calls"."""

import pytest

import whence
from reference import call_stories
from reference import recording as twin
from reference.recording import Raw

pytestmark = pytest.mark.store

CALL, RETURN, UNWIND, YIELD, GONE, UNSTARTED = 0x40, 0x20, 0x21, 0x22, 0x25, 0x26
C_CALL, C_RETURN, C_RAISE, OPEN, FOLDED, FRAMES = 0x46, 0x23, 0x24, 0x47, 0x84, 0x48
BEGIN, RESUME, THROW, OPEN_AGAIN = 0x67, 0x68, 0x69, 0x6A
RAISED, HANDLED, AWAITS, LOST, OWNER, MARK = 0x6B, 0x6C, 0x6D, 0x66, 0x65, 0x43
ON, OFF, STACK, TASK, THREAD, THREAD_END = 0x27, 0x28, 0x82, 0xC3, 0xA0, 0x64
THREAD_FRAMES, CODE, STRING = 0x6E, 0xC0, 0xE0
NUMBERED, TASK_NAME, FRAME_GENERATOR, THREAD_GENERATOR = 0xC4, 0x6F, 0x70, 0x85

# codes 1, 1 2, 1 2 3 and 1 3
STACKS = [
    *(Raw(STACK, [1, 0, 1, 0]), Raw(STACK, [2, 1, 2, 0])),
    *(Raw(STACK, [3, 2, 3, 0]), Raw(STACK, [4, 1, 3, 0])),
]
END = 1_000


@pytest.fixture
def read(tmp_path):
    """Open a recording of these events, by thread, and of this metadata."""

    def open_(events, metadata=(), **file):
        if isinstance(events, list):
            events = {1: events}
        chunks = [
            twin.Chunk(2 + n, [Raw(k, v) for k, *v in items], thread=thread)
            for n, (thread, items) in enumerate(events.items())
        ]
        known = [*call_stories.names(), *STACKS, *metadata]
        chunks.insert(0, twin.Chunk(1, known, twin.METADATA))
        file = {"end": (END, END), **file}
        path = tmp_path / "calls.whence"
        path.write_bytes(twin.write(twin.File(chunks, **file)))
        return whence.open(path)

    return open_


@pytest.fixture
def spans(read):
    """Tell what each call was, where it began and ended, and how it was left."""

    def tell(*args, **more):
        with read(*args, **more) as recording:
            return [
                (call.function[-1], call.start, call.start + call.duration, call.left)
                for call in recording.calls().read()
            ]

    return tell


def test_a_call_says_everything(read):
    events = [(CALL, 10, 1), (CALL, 20, 2), (RETURN, 50), (RETURN, 100)]
    with read(events) as recording:
        assert repr(recording.calls()) == f"<calls of {recording.info.path}>"
        inner, outer = recording.calls().read()
    assert (inner.function, inner.filename, inner.line) == ("name 2", "name 9", 2)
    assert (inner.start, inner.duration, inner.own) == (20, 30, 30)
    assert (outer.start, outer.duration, outer.own) == (10, 90, 60)
    assert (inner.depth, outer.depth) == (1, 0)
    assert (outer.number, outer.parent) == (1, None)
    assert (inner.number, inner.parent) == (2, 1)
    assert (inner.entered, inner.left, inner.count) == ("call", "return", 1)
    assert (inner.thread, inner.task, inner.generator) == (1, None, None)


def test_what_has_no_name_is_none(read):
    with read([(CALL, 10, 77), (C_CALL, 20, 0), (C_RETURN, 30)]) as recording:
        native, python = recording.calls().read()
    assert python[:3] == native[:3] == (None, None, None)


def test_a_code_without_a_qualname_has_its_name(read):
    with read([(CALL, 10, 30)], [Raw(CODE, [30, 5, 0, 9, 1, 0])]) as recording:
        assert next(iter(recording.calls().read())).function == "name 5"


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        *((RETURN, "return"), (UNWIND, "unwind"), (YIELD, "yield"), (GONE, "gone")),
        (UNSTARTED, "unstarted"),
    ],
)
def test_ways_to_leave_a_frame(spans, kind, left):
    assert spans([(CALL, 10, 1), (kind, 20)]) == [("1", 10, 20, left)]


def test_functions_written_in_c(read):
    events = [(CALL, 10, 1), (C_CALL, 20, 5), (C_CALL, 30, 6), (C_RAISE, 40)]
    with read([*events, (C_RETURN, 60), (RETURN, 70)]) as recording:
        inner, outer, python = recording.calls().read()
    assert inner[:3] == ("name 6", None, None)
    assert (inner.left, outer.left, outer.own) == ("unwind", "return", 30)
    assert (inner.depth, inner.parent, python.own) == (2, 2, 20)


def test_c_calls_end_with_the_frame_around_them(spans):
    events = [(CALL, 10, 1), (C_CALL, 20, 5), (C_CALL, 30, 6), (RETURN, 40)]
    gone = [("6", 30, 40, "gone"), ("5", 20, 40, "gone")]
    assert spans(events) == [*gone, ("1", 10, 40, "return")]
    assert spans(events[1:]) == gone  # of a frame that is not known


def test_exits_with_nothing_to_leave_mean_nothing(spans):
    exits = [(kind, 5) for kind in (RETURN, UNWIND, YIELD, C_RETURN, C_RAISE, GONE)]
    events = [*exits, (CALL, 10, 1), (C_RETURN, 15), (RETURN, 20), (RETURN, 30)]
    assert spans(events) == [("1", 10, 20, "return")]


def test_folded_calls(read):
    events = [
        (CALL, 10, 1),
        (FOLDED, 50, 2, 7, 30),
        (RETURN, 60),
        (FOLDED, 70, 3, 1, 5),
    ]
    with read([*events, (FOLDED, 70, 3, 0, 5)]) as recording:
        folded, outer, alone = recording.calls().read()
    assert (folded.function, folded.count, folded.own) == ("name 2", 7, 30)
    assert (folded.start, folded.duration) == (20, 30)
    assert (folded.number, folded.parent, folded.depth) == (2, 1, 1)
    assert (outer.own, outer.count) == (20, 1)
    assert (alone.parent, alone.depth, alone.count) == (None, 0, 1)


def test_folded_calls_are_no_longer_than_the_frame_around_them(read):
    with read([(CALL, 10, 1), (FOLDED, 50, 2, 7, 2**64 - 1)]) as recording:
        folded, outer = recording.calls().read()
    assert (folded.start, folded.duration) == (10, 40)
    assert outer.own == outer.duration - 40


def test_frames_that_agree_change_nothing(spans):
    events = [(CALL, 10, 1), (CALL, 20, 2), (C_CALL, 25, 5), (FRAMES, 30, 2)]
    events += [(C_RETURN, 40), (RETURN, 50), (FRAMES, 60, 1), (RETURN, 70)]
    left = [("5", 25, 40, "return"), ("2", 20, 50, "return"), ("1", 10, 70, "return")]
    assert spans(events) == left


def test_frames_at_the_beginning_of_a_ring(read):
    with read([(FRAMES, 10, 3), (RETURN, 20), (RETURN, 30)]) as recording:
        calls = list(recording.calls().read())
    assert [call.function[-1] for call in calls] == ["3", "2", "1"]
    assert {(call.entered, call.start) for call in calls} == {("open", 10)}
    assert [call.left for call in calls] == ["return", "return", "cut"]


@pytest.mark.parametrize(
    ("stack", "gone", "after"),
    [
        (3, [], "123"),
        (4, ["2"], "13"),
        (1, ["2"], "1"),
        (0, ["2", "1"], ""),
        (99, [], "12"),  # not known: nobody can say
    ],
)
def test_frames_that_do_not_agree(spans, stack, gone, after):
    told = spans([(CALL, 10, 1), (CALL, 20, 2), (FRAMES, 30, stack)])
    assert [name for name, *_, left in told if left == "gone"] == gone
    assert [name for name, *_, left in told if left == "cut"] == list(after[::-1])


def test_c_calls_are_gone_where_frames_do_not_agree(spans):
    told = spans([(CALL, 10, 1), (C_CALL, 20, 5), (FRAMES, 30, 2)])
    assert told[0] == ("5", 20, 30, "gone")


def test_stacks_that_never_end_are_no_stacks(spans):
    loop = [Raw(STACK, [50, 51, 1, 0]), Raw(STACK, [51, 50, 1, 0])]
    loop += [Raw(STACK, [52, 52, 1, 0]), Raw(STACK, [53, 52, 1, 0])]
    for stack in (50, 51, 52, 53):
        told = spans([(CALL, 10, 2), (FRAMES, 20, stack), (RETURN, 30)], loop)
        assert told == [("2", 10, 30, "return")]


def test_a_stack_whose_parent_is_lost_begins_there(spans):
    known = [Raw(STACK, [50, 77, 3, 0])]
    assert spans([(FRAMES, 20, 50), (RETURN, 30)], known) == [("3", 20, 30, "return")]


def test_frames_of_threads_that_do_not_tell_themselves(spans):
    metadata = [Raw(THREAD_FRAMES, [15, thread, 2]) for thread in (1, 2)]
    told = spans([(RETURN, 15), (RETURN, 30)], metadata, state=twin.RECORDING)
    assert told[:2] == [("2", 15, 15, "return"), ("1", 15, 30, "return")]
    assert told[2:] == [("2", 15, 15, "cut"), ("1", 15, 15, "cut")]


def test_what_is_open_when_calls_go_off_is_cut(spans):
    metadata = [Raw(ON, [5]), Raw(OFF, [50]), Raw(ON, [60]), Raw(OFF, [90])]
    events = [(CALL, 10, 1), (RETURN, 50), (CALL, 50, 2), (CALL, 70, 3)]
    told = [("1", 10, 50, "return"), ("2", 50, 50, "cut"), ("3", 70, 90, "cut")]
    assert spans(events, metadata) == told


def test_frames_from_when_calls_go_on_again(spans):
    metadata = [Raw(OFF, [50]), Raw(ON, [60]), Raw(THREAD_FRAMES, [60, 1, 1])]
    told = [("2", 10, 50, "cut"), ("1", 60, 70, "return")]
    assert spans([(CALL, 10, 2), (RETURN, 70)], metadata) == told
    metadata = [Raw(OFF, [60]), Raw(ON, [60]), Raw(THREAD_FRAMES, [60, 1, 1])]
    told = [("2", 10, 60, "cut"), ("1", 60, 60, "return")]
    assert spans([(CALL, 10, 2), (RETURN, 60)], metadata) == told


def test_the_end_of_what_is_open(spans):
    events = [(CALL, 10, 1), (MARK, 40, 1)]
    assert spans(events) == [("1", 10, END, "cut")]
    assert spans(events, state=twin.RECORDING) == [("1", 10, 40, "cut")]
    thread = [Raw(THREAD, [1, 1, 7, 1, 0]), Raw(THREAD_END, [80, 1, 2])]
    assert spans(events, thread) == [("1", 10, 80, "cut")]
    assert spans(events, [*thread, Raw(OFF, [80])]) == [("1", 10, 80, "cut")]
    assert spans(events, [Raw(OFF, [60]), *thread]) == [("1", 10, 60, "cut")]
    early = [Raw(THREAD, [1, 1, 7, 1, 0]), Raw(THREAD_END, [20, 1, 2])]
    assert spans(events, early) == [("1", 10, 40, "cut")]


def test_losses_and_other_owners_change_nothing(spans):
    events = [(CALL, 10, 1), (LOST, 20, 2, 5), (OWNER, 30, 2, 0), (CALL, 40, 2)]
    told = spans([*events, (RETURN, 50)], state=twin.RECORDING)
    assert told == [("2", 40, 50, "return"), ("1", 10, 20, "cut")]


def test_time_never_goes_back(tmp_path, spans):
    events = {1: [(CALL, 100, 1)]}
    told = spans({**events, 2: [(OWNER, 10, 1, 0), (RETURN, 50)]})
    assert told == [("1", 100, 100, "return")]


def test_instances_of_generators(read):
    events = [(BEGIN, 10, 1, 7), (YIELD, 11), (BEGIN, 12, 2, 8), (RESUME, 13, 1, 7)]
    events += [(YIELD, 14), (YIELD, 15), (THROW, 16, 1, 7), (UNWIND, 17)]
    events += [(BEGIN, 20, 1, 7), (YIELD, 21), (RESUME, 22, 3, 9), (YIELD, 23)]
    with read([*events, (OPEN_AGAIN, 24, 3, 9), (YIELD, 25)]) as recording:
        told = [(c.generator, c.entered, c.left) for c in recording.calls().read()]
    assert told == [
        *((1, "call", "yield"), (1, "resume", "yield"), (2, "call", "yield")),
        *((1, "throw", "unwind"), (3, "call", "yield"), (4, "resume", "yield")),
        (4, "open", "yield"),
    ]


def test_generators_are_known_to_all_threads(read):
    events = {
        1: [(BEGIN, 10, 1, 7), (YIELD, 11)],
        2: [(RESUME, 12, 1, 7), (RETURN, 13)],
    }
    with read(events) as recording:
        assert [call.generator for call in recording.calls().read()] == [1, 1]


def test_tasks_own_what_happens_inside_their_coroutines(read):
    tasks = [Raw(TASK, [5, 1, 0, 1, 1, 7]), Raw(TASK, [6, 2, 1, 2, 2, 8])]
    events = [(CALL, 9, 3), (BEGIN, 10, 1, 7), (CALL, 11, 3), (C_CALL, 12, 5)]
    events += [(C_RETURN, 13), (FOLDED, 14, 3, 2, 1), (RETURN, 15), (BEGIN, 16, 2, 8)]
    events += [(CALL, 17, 3), (RETURN, 18), (YIELD, 19), (YIELD, 20), (CALL, 21, 3)]
    events += [(RETURN, 22), (RESUME, 23, 2, 8), (RETURN, 24)]
    with read(events, tasks) as recording:
        told = [call.task for call in recording.calls().read()]
    assert told == [1, 1, 1, 2, 2, 1, None, 2, None]


def test_a_task_is_over_when_its_number_comes_back(read):
    tasks = [Raw(TASK, [5, 1, 0, 1, 1, 7]), Raw(TASK, [35, 2, 0, 1, 1, 7])]
    events = [(BEGIN, 10, 1, 7), (RETURN, 11), (BEGIN, 20, 1, 7), (RETURN, 21)]
    with read([*events, (BEGIN, 40, 1, 7), (RETURN, 41)], tasks) as recording:
        assert [call.task for call in recording.calls().read()] == [1, None, 2]


def test_a_task_that_is_found_later_has_its_coroutine_from_then_on(read):
    tasks = [Raw(TASK, [15, 1, 0, 1, 1, 7])]
    events = [(BEGIN, 10, 1, 7), (YIELD, 11), (RESUME, 20, 1, 7), (RETURN, 21)]
    with read([*events, (BEGIN, 30, 1, 7), (RETURN, 31)], tasks) as recording:
        assert [call.task for call in recording.calls().read()] == [None, 1, None]


def test_tasks(read):
    tasks = [Raw(TASK, [5, 41, 0, 1, 2, 7]), Raw(NUMBERED, [6, 42, 41, 17, 99, 8])]
    tasks += [Raw(TASK, [7, 43, 41, 0, 2, 9]), Raw(TASK_NAME, [8, 41, 3])]
    tasks += [Raw(TASK_NAME, [9, 99, 3])]
    events = [(AWAITS, 10, 41, 42), (AWAITS, 11, 41, 43), (AWAITS, 12, 41, 42)]
    events += [(AWAITS, 13, 43, 42), (AWAITS, 14, 43, 44)]
    with read(events, tasks) as recording:
        one, two, three = recording.tasks
    assert one == (1, "name 3", None, "name 2", 5, (2, 3), ())
    assert two == (2, "Task-17", 1, None, 6, (), (1, 3))
    assert three == (3, None, 1, "name 2", 7, (2,), (1,))


def test_a_number_means_the_newest_task_that_has_it(read):
    tasks = [Raw(NUMBERED, [5, 41, 0, 1, 1, 7]), Raw(NUMBERED, [6, 42, 41, 2, 1, 8])]
    tasks += [Raw(NUMBERED, [20, 41, 42, 3, 1, 7]), Raw(TASK_NAME, [21, 41, 4])]
    tasks += [Raw(NUMBERED, [22, 43, 41, 4, 1, 9])]
    events = [(AWAITS, 10, 42, 41), (AWAITS, 30, 41, 43), (BEGIN, 31, 1, 7)]
    with read([*events, (RETURN, 32)], tasks) as recording:
        told = [(t.name, t.parent, t.awaits, t.awaited_by) for t in recording.tasks]
        assert [call.task for call in recording.calls().read()] == [3]
    assert told == [
        *(("Task-1", None, (), (2,)), ("Task-2", 1, (1,), ())),
        *(("name 4", 2, (4,), ()), ("Task-4", 3, (), (3,))),
    ]


def test_frames_that_are_found_open_say_whose_they_are(read):
    tasks = [Raw(TASK, [3, 41, 0, 1, 1, 7]), Raw(TASK, [4, 42, 0, 2, 2, 8])]
    stacks = [Raw(STACK, [n, n - 1, n, 0]) for n in (1, 2, 3, 4)]
    open_ = [Raw(THREAD_FRAMES, [5, 1, 4])]
    open_ += [Raw(THREAD_GENERATOR, [5, 1, level, level + 5]) for level in (2, 3)]
    events = [(CALL, 10, 5), (RETURN, 11), (RETURN, 12), (YIELD, 13), (CALL, 14, 5)]
    events += [(RETURN, 15), (YIELD, 16), (RETURN, 17), (RESUME, 18, 2, 7)]
    with read([*events, (YIELD, 19)], [*tasks, *stacks, *open_]) as recording:
        told = [(call.task, call.generator) for call in recording.calls().read()]
    instances = [(2, None), (2, None), (2, 2), (1, None), (1, 1), (None, None), (1, 1)]
    assert told == instances


def test_chunks_say_whose_frames_are_open(read):
    tasks = [Raw(TASK, [3, 41, 0, 1, 1, 7])]
    stacks = [Raw(STACK, [n, n - 1, n, 0]) for n in (1, 2)]
    events = [(FRAMES, 5, 2), (FRAME_GENERATOR, 5, 2, 7), (FRAME_GENERATOR, 5, 3, 9)]
    events += [(CALL, 6, 3), (RETURN, 7), (YIELD, 8), (RETURN, 9)]
    with read(events, [*tasks, *stacks]) as recording:
        told = [(call.task, call.generator) for call in recording.calls().read()]
    assert told == [(1, None), (1, 1), (None, None)]


def test_exceptions(read):
    events = [(CALL, 10, 2), (C_CALL, 11, 5), (RAISED, 12, 4, 2), (C_RAISE, 13)]
    events += [(HANDLED, 14, 4, 6), (RAISED, 15, 0, 2**40), (RETURN, 16)]
    with read([*events, (RAISED, 17, 4, 0)]) as recording:
        raised, handled, odd, nowhere = recording.exceptions
    assert raised == ("name 4", "raised", 12, 1, "name 2", "name 9", 4)
    assert handled == ("name 4", "handled", 14, 1, "name 2", "name 9", 6)
    assert odd == (None, "raised", 15, 1, "name 2", "name 9", None)
    assert nowhere == ("name 4", "raised", 17, 1, None, None, None)


def test_an_iterator_of_a_closed_recording_says_so(read):
    recording = read([(CALL, 10, 1), (RETURN, 20)])
    iterators = [iter(recording.calls()), iter(recording.exceptions)]
    recording.close()
    for iterator in iterators:
        with pytest.raises(ValueError, match="the recording is closed"):
            next(iterator)
