"""whence.schedule: which steps are recorded, into which files, and who is told."""

import itertools
import warnings

import pytest

import whence
from harness import runner, traced

NUMBERS = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")


def make(**numbers):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return whence.schedule(**{"wait": 0, "warmup": 1, "active": 1, **numbers})


def spelled_out(wait, warmup, active, repeat, skip_first, skip_first_wait):
    """Every action in turn, written down one after the other: the slow reference."""
    yield from ["none"] * skip_first
    for cycle in itertools.count():
        if repeat and cycle == repeat:
            break
        yield from ["none"] * (0 if cycle == 0 and skip_first_wait else wait)
        yield from ["warmup"] * warmup
        yield from ["record"] * (active - 1)
        yield "save"
    yield from itertools.repeat("none")


def test_every_small_schedule_is_the_one_spelled_out():
    ranges = (range(3), range(3), range(1, 4), range(3), range(3), range(2))
    for numbers in itertools.product(*ranges):
        schedule = make(**dict(zip(NUMBERS, numbers, strict=True)))
        expected = list(itertools.islice(spelled_out(*numbers), 40))
        assert [schedule(step).value for step in range(40)] == expected, schedule


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("number", [-1, -(10**9), 1.5, "1", None, True])
def test_what_is_no_number_of_steps_is_refused(name, number):
    with pytest.raises(ValueError, match=f"{name} must be a number of steps"):
        make(**{name: number})


def test_a_schedule_that_never_records_is_refused():
    with pytest.raises(ValueError, match="active must be 1 or more"):
        make(active=0)


def test_a_schedule_without_warmup_warns_who_asks_for_it():
    with pytest.warns(UserWarning, match="without warmup") as caught:
        whence.schedule(wait=1, warmup=0, active=1)
    assert caught[0].filename == __file__


def test_numbers_must_be_named_and_the_schedule_shows_them():
    with pytest.raises(TypeError):
        whence.schedule(1, 1, 1)
    with pytest.raises(TypeError):
        whence.schedule(wait=1)
    schedule = make(wait=1, repeat=3, skip_first=2)
    assert repr(schedule) == (
        "whence.schedule(wait=1, warmup=1, active=1, repeat=3, skip_first=2, "
        "skip_first_wait=0)"
    )
    assert repr(eval(repr(schedule))) == repr(schedule)


def work():
    pass


class Run:
    """A program of so many steps, recorded by a schedule."""

    def __init__(self, folder, steps, *, path="run.whence", **numbers):
        self.ready, self.states = [], []
        wanted = folder / path if path else None
        options = {"schedule": make(**numbers), "on_ready": self._ready, "gc": False}
        with whence.record(wanted, **options) as recorder:
            for number in range(steps):
                self.states.append(recorder.state)
                with whence.span("body", number=number):
                    work()
                recorder.step()
            self.states.append(recorder.state)
        self.state = recorder.state

    def _ready(self, recorder):
        """What is ready is complete: it can be read at once."""
        found = traced.read(recorder.path)
        assert found.count("work") == len(bodies(recorder.path))
        self.ready.append(recorder.path)


def bodies(path):
    """Return the numbers of the steps that a file has."""
    spans = [s for s in traced.read(path).spans if s.name == "body"]
    return [s.tags["number"] for s in spans]


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_each_cycle_has_a_file_and_is_told_of_once(tmp_path):
    run = Run(tmp_path, 20, wait=1, warmup=1, active=2, repeat=3, skip_first=2)
    names = [f"run-{n}.whence" for n in (1, 2, 3)]
    assert files(tmp_path) == names
    assert run.ready == [str(tmp_path / name) for name in names]
    found = [bodies(path) for path in run.ready]
    assert found == [[4, 5], [8, 9], [12, 13]]
    cycle = ["waiting", "on", "on", "on"]
    assert run.states == ["waiting"] * 2 + cycle * 3 + ["waiting"] * 7
    assert run.state == "idle"


def test_one_cycle_has_the_file_that_was_asked_for(tmp_path):
    run = Run(tmp_path, 5, wait=1, repeat=1)
    assert run.ready == [str(tmp_path / "run.whence")]
    assert files(tmp_path) == ["run.whence"]


def test_files_without_a_name_lie_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = Run(tmp_path, 4, path=None, warmup=1, active=1)
    assert len(run.ready) == 2
    assert all(name.startswith("whence-") for name in files(tmp_path))
    Run(tmp_path, 2, path=None, repeat=1)
    assert len(files(tmp_path)) == 3


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (0, []),  # in the wait
        (1, []),  # in the warmup: thrown away
        (2, [[]]),  # recording, and nothing has happened yet
        (3, [[2]]),
        (4, [[2, 3]]),
        (5, [[2, 3]]),
        (6, [[2, 3], []]),
    ],
)
def test_a_stop_in_the_middle_of_a_cycle(tmp_path, steps, expected):
    run = Run(tmp_path, steps, wait=1, warmup=1, active=2)
    assert [bodies(path) for path in run.ready] == expected
    assert len(files(tmp_path)) == len(expected)


def test_skip_first_wait_leaves_out_the_first_wait_alone(tmp_path):
    run = Run(tmp_path, 9, wait=2, skip_first=1, skip_first_wait=1)
    assert [bodies(path) for path in run.ready] == [[2], [6]]


@pytest.mark.parametrize("warmup", [0, 2])
def test_nothing_of_the_warmup_is_kept(tmp_path, warmup):
    run = Run(tmp_path, 6, warmup=warmup, active=2, repeat=1)
    (path,) = run.ready
    assert bodies(path) == [warmup, warmup + 1]
    found = traced.read(path)
    assert found.count("work") == 2
    steps = [span for span in found.spans if span.name == "step"]
    assert [span.tags for span in steps] == [
        {"number": warmup},
        {"number": warmup + 1},
    ]
    assert not any(span.open for span in found.spans)


def test_a_recorder_may_start_again_with_its_schedule(tmp_path):
    ready = []
    recorder = whence.record(
        tmp_path / "again.whence",
        overwrite=True,
        schedule=make(repeat=1),
        on_ready=lambda it: ready.append(bodies(it.path)),
    )
    for turn in range(2):
        with recorder:
            for number in range(4):
                with whence.span("body", number=10 * turn + number):
                    pass
                recorder.step()
    assert ready == [[1], [11]]


def test_pause_and_dump_while_waiting_and_while_recording(tmp_path):
    copy = tmp_path / "copy.whence"
    options = {"schedule": make(wait=1, repeat=1), "gc": False}
    with whence.record(tmp_path / "a.whence", **options) as recorder:
        recorder.pause()  # nothing to pause
        with pytest.raises(RuntimeError, match="not running"):
            recorder.dump(copy)
        recorder.step()
        recorder.step()
        recorder.pause()
        assert recorder.state == "paused"
        work()
        recorder.resume()
        work()
        recorder.dump(copy)
        recorder.step()
        assert recorder.state == "waiting"
    assert traced.read(copy).count("work") == 1
    assert traced.read(tmp_path / "a.whence").count("work") == 1


def test_what_on_ready_raises_comes_to_who_stepped(tmp_path):
    def fail(recorder):
        raise KeyError(recorder.path)

    recorder = whence.record(
        tmp_path / "a.whence", schedule=make(repeat=2), on_ready=fail
    ).start()
    recorder.step()
    with pytest.raises(KeyError):
        recorder.step()
    recorder.step()
    with pytest.raises(KeyError):
        recorder.stop()
    assert recorder.state == "idle"
    with whence.record(tmp_path / "b.whence"):
        pass


def test_on_ready_may_stop_the_recorder(tmp_path):
    options = {"schedule": make(), "on_ready": lambda it: it.stop()}
    recorder = whence.record(tmp_path / "a.whence", **options).start()
    for _ in range(6):
        recorder.step()
    assert recorder.state == "idle"
    assert files(tmp_path) == ["a-1.whence"]


def test_a_cycle_that_records_at_exit_is_told_of(tmp_path):
    outcome = runner.run(
        f"""
        import whence
        schedule = whence.schedule(wait=0, warmup=1, active=2)
        def ready(recorder):
            with whence.open(recorder.path) as recording:
                print(recording.info.closed, len(list(recording.spans)))
        path = {str(tmp_path / "a.whence")!r}
        recorder = whence.record(path, schedule=schedule, on_ready=ready).start()
        for _ in range(4):
            recorder.step()
        print("at exit")
        """
    )
    assert outcome == runner.Outcome(0, "True 2\nat exit\nTrue 1\n", "")


def test_what_is_no_schedule_is_an_error_at_once():
    with pytest.raises(TypeError, match=r"schedule must be what whence\.schedule\(\)"):
        whence.record(schedule=3)
    schedule = whence.schedule(wait=0, warmup=1, active=1)
    with pytest.raises(TypeError, match="on_ready must be a function, not 3"):
        whence.record(schedule=schedule, on_ready=3)
    with pytest.raises(ValueError, match="on_ready is for the cycles of a schedule"):
        whence.record(on_ready=print)
