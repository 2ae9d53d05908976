"""A merged recording says what its parts say, on one clock."""

import json
import os
import random
import zipfile
from collections import Counter
from pathlib import Path

import pytest

import whence
from harness import merging
from harness.merging import SECOND, merge, shifted
from reference import call_stories, call_trees, recordings
from reference import recording as twin
from whence import _part, _zstd

pytestmark = pytest.mark.store

LATER = (0, 3 * SECOND, 7 * SECOND)
LISTS = ("threads", "tasks", "spans", "counters", "gc", "exceptions")


@pytest.fixture
def paths(tmp_path):
    """Three processes, one of each layout."""
    layouts = ({}, {"layout": twin.COMPACT}, {"layout": twin.COMPACT})
    packs = (None, None, _zstd.pack)
    return [
        merging.write(
            tmp_path / f"{number}.whence",
            recordings.every_kind(30 + number),
            number,
            later=later,
            pack=pack,
            **layout,
        )
        for number, (later, layout, pack) in enumerate(
            zip(LATER, layouts, packs, strict=True), 1
        )
    ]


@pytest.fixture
def merged(paths, tmp_path):
    with merge(tmp_path / "all.whence", *paths) as recording:
        yield recording


def parts(merged, paths):
    """Open the parts on their own, with what is added to them in the merged one."""
    threads = tasks = 0
    for process, path in zip(merged.processes, paths, strict=True):
        with whence.open(path) as part:
            yield process, part, {"threads": threads, "tasks": tasks}
            known = [thread.id for thread in part.threads]
            known += [record.thread for record in part]
            threads += max(known, default=0)
            tasks += len(part.tasks)


def test_the_file_is_a_zip_of_the_recordings_as_they_are(paths, merged):
    with zipfile.ZipFile(merged.info.path) as archive:
        assert archive.testzip() is None
        index, *entries = archive.infolist()
        assert index.filename == "processes.json"
        assert {entry.compress_type for entry in entries} == {zipfile.ZIP_STORED}
        assert [archive.read(entry) for entry in entries] == [
            path.read_bytes() for path in paths
        ]
        listed = json.loads(archive.read(index))["processes"]
    assert [each["name"] for each in listed] == [e.filename for e in entries]
    assert [each["pid"] for each in listed] == [1001, 1002, 1003]
    assert [each["time_shift"] for each in listed] == list(LATER)
    assert [each["thread_base"] for each in listed] == [0, 2, 4]
    assert [each["task_base"] for each in listed] == [0, 2, 4]


def test_processes(paths, merged):
    assert [process.id for process in merged.processes] == [1, 2, 3]
    for process, part, _ in parts(merged, paths):
        info = part.info._replace(path=merged.info.path)
        assert process.info == info
        assert (process.pid, process.program) == (info.pid, info.program)
        assert process.python == info.python
        assert process.end - process.start == info.duration
    assert [process.start for process in merged.processes] == list(LATER)


def test_one_process_is_a_recording_too(paths):
    with whence.open(paths[1]) as recording:
        (process,) = recording.processes
        info = recording.info
        assert process == (1, 1002, "app.py", "3.14.0", 0, info.duration, info)
        assert {thread.process for thread in recording.threads} == {1}


def test_the_file_as_a_whole(paths, merged):
    first, *_, last = merged.processes
    info = merged.info
    assert (info.pid, info.start) == (1001, first.info.start)
    assert info.duration == last.end
    assert info.size == Path(info.path).stat().st_size
    assert (info.closed, info.packed) == (True, True)
    assert repr(merged) == f"<whence.Recording {info.path}>"


@pytest.mark.parametrize("what", LISTS)
def test_lists_are_those_of_the_parts(what, paths, merged):
    expected = [
        shifted(item, process, **bases)
        for process, part, bases in parts(merged, paths)
        for item in getattr(part, what)
    ]
    assert len(expected) >= 6
    assert list(getattr(merged, what)) == expected


def test_threads_and_tasks_have_ids_of_their_own(merged):
    threads = [thread.id for thread in merged.threads]
    tasks = [task.id for task in merged.tasks]
    assert len(set(threads)) == len(threads) == 6
    assert len(set(tasks)) == len(tasks) == 6
    processes = {thread.id: thread.process for thread in merged.threads}
    assert processes == {1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 6: 3}


def test_records_have_the_threads_and_times_of_the_whole(paths, merged):
    expected = []
    for process, part, bases in parts(merged, paths):
        for record in part:
            fields = dict(record.fields)
            for name in ("thread", "owner"):
                if name in fields:
                    fields[name] += bases["threads"]
            thread = record.thread and record.thread + bases["threads"]
            time = record.time + process.start
            expected.append((record.kind, thread, time, fields))
    assert len(expected) > 1_000
    assert repr([tuple(r) for r in merged]) == repr(expected)


def test_calls_are_those_of_the_parts(paths, merged):
    expected = [
        shifted(call, process, **bases)
        for process, part, bases in parts(merged, paths)
        for call in part.calls().read()
    ]
    assert len(expected) > 500
    whole = merged.calls().read()
    assert list(whole) == expected
    assert [call for batch in merged.calls() for call in batch] == expected
    assert len(set(whole.functions)) == len(whole.functions)
    generators = {(c.generator, processes_of(merged)[c.thread]) for c in expected}
    assert len({g for g, _ in generators if g}) == len([g for g, _ in generators if g])


def processes_of(recording):
    return {thread.id: thread.process for thread in recording.threads}


def test_an_arrow_stream_goes_over_all_parts(merged):
    pa = pytest.importorskip("pyarrow")
    table = pa.table(merged.calls())
    table.validate(full=True)
    calls = merged.calls().read()
    for column in ("start", "thread", "task", "number", "count", "generator"):
        assert table[column].to_pylist() == [getattr(call, column) for call in calls]
    for column in ("function", "filename", "line"):
        assert table[column].to_pylist() == [getattr(call, column) for call in calls]


def test_polars_takes_the_stream(merged):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(merged.calls())
    calls = merged.calls().read()
    assert [*map(str, frame["function"])] == [str(call.function) for call in calls]
    assert frame["own"].to_list() == list(calls.own)


def test_losses_add_up(paths, merged):
    each = [part.losses for _, part, _ in parts(merged, paths)]
    losses = merged.losses
    assert losses.produced == sum(one.produced for one in each)
    assert losses.recorded == sum(one.recorded for one in each)
    assert losses.names == sum(one.names for one in each)
    assert losses.dropped == sum((Counter(one.dropped) for one in each), Counter())
    assert losses.produced == losses.recorded + sum(losses.dropped.values())


# Trees

FUNCTIONS = [
    *(("main", "/app.py", 1), ("load", "/app.py", 2), ("load", "/lib.py", 2)),
    *(("len", None, 0), (None, "/app.py", 3)),
]


def paths_of(tree):
    """Return calls, total and own by the path of functions."""
    found, path = {}, []
    for depth, function, *numbers in tree.walk():
        del path[depth:]
        path.append(tree.functions[function][:3])
        assert tuple(path) not in found
        found[tuple(path)] = Counter(dict(zip("cto", numbers, strict=True)))
    return found


def test_trees_are_added_up_by_path(tmp_path, rng):
    for _ in range(20):
        files, expected, functions = [], {}, {}
        for number in range(1, rng.randint(2, 5)):
            order = rng.sample(FUNCTIONS, len(FUNCTIONS))
            steps = [
                list(call_trees.steps_of(call_trees.random_trees(rng, len(order))))
                for _ in range(rng.randint(1, 2))
            ]
            file = tmp_path / f"{number}.whence"
            data = bytearray(call_trees.recording(order, steps))
            file.write_bytes(with_id(data, number))
            files.append(file)
            with whence.open(file) as part:
                tree = part.call_tree()
                for path, numbers in paths_of(tree).items():
                    expected[path] = expected.get(path, Counter()) + numbers
                for function in tree.functions:
                    total = functions.setdefault(function[:3], [0, 0, 0])
                    functions[function[:3]] = [
                        a + b for a, b in zip(total, function[3:], strict=True)
                    ]
        out = tmp_path / "all"
        with merge(out, *files) as merged:
            tree = merged.call_tree()
            assert paths_of(tree) == expected
            found = {function[:3]: list(function[3:]) for function in merged.functions}
            assert found == functions
            assert sum(c.count for c in merged.calls().read()) == sum(
                node.calls for node in tree
            )
        out.unlink()


def with_id(data, number):
    """Change the id of a file that is written already, in the file and its chunks."""
    header_size, chunk_size = (
        int.from_bytes(data[at : at + 4], "little") for at in (12, 32)
    )
    data[16:32] = bytes([number]) * 16
    data[124:128] = twin.checksum(bytes(data[:124])).to_bytes(4, "little")
    for at in range(header_size, len(data), chunk_size):
        data[at + 8 : at + 16] = bytes([number]) * 8
        opening = bytes(data[at : at + 4]) + bytes(4) + bytes(data[at + 8 : at + 60])
        data[at + 60 : at + 64] = twin.checksum(opening).to_bytes(4, "little")
    return bytes(data)


def test_stories_of_several_processes(tmp_path, seed):
    """Random programs, of which each call is known, beside each other."""
    for number in range(10):
        rng = random.Random(f"{seed}:merge:{number}")
        files = [
            merging.write(
                tmp_path / f"{each}.whence",
                call_stories.story(rng)[0],
                each,
                later=rng.randrange(10 * SECOND),
            )
            for each in (1, 2)
        ]
        out = tmp_path / f"all-{number}"
        with merge(out, *files) as merged:
            first = merged.processes[0].pid - 1000
            order = files if first == 1 else files[::-1]
            expected = [
                shifted(call, process, **bases)
                for process, part, bases in parts(merged, order)
                for call in part.calls().read()
            ]
            where = f"--seed {seed}, story {number}"
            assert list(merged.calls().read()) == expected, where


# Slices


def test_slices_by_process(paths, merged):
    for process, part, bases in parts(merged, paths):
        chosen = merged.slice(processes=[process.id])
        assert [p.id for p in chosen.processes] == [process.id]
        assert [t.process for t in chosen.threads] == [process.id] * 2
        assert chosen.losses == part.losses
        assert chosen.info == merged.info
        assert list(chosen.calls().read()) == [
            shifted(call, process, **bases) for call in part.calls().read()
        ]
        for what in LISTS:
            assert list(getattr(chosen, what)) == [
                shifted(item, process, **bases) for item in getattr(part, what)
            ]
    two = merged.slice(processes=[3, 1, 99])
    assert [process.id for process in two.processes] == [1, 3]
    assert two.slice(processes=[1, 2]).processes == merged.processes[:1]
    everything = list(merged.calls().read())
    assert list(merged.slice(-(2**70), 2**70).calls().read()) == everything
    none = merged.slice(processes=[])
    assert (none.threads, list(none.spans), none.functions) == ([], [], [])
    assert len(none.calls().read()) == len(none.call_tree()) == 0
    assert none.losses.produced == 0


def test_slices_by_thread_and_time(paths, merged):
    for process, part, bases in parts(merged, paths):
        middle = part.info.duration // 2
        for thread in part.threads:
            id_ = thread.id + bases["threads"]
            mine = merged.slice(process.start + middle, threads=[id_])
            own = part.slice(middle, threads=[thread.id])
            assert [t.id for t in mine.threads] == [id_]
            assert list(mine.calls().read()) == [
                shifted(call, process, **bases) for call in own.calls().read()
            ]
            assert list(mine.spans) == [
                shifted(span, process, **bases) for span in own.spans
            ]
            assert [n.calls for n in mine.call_tree()] == [
                n.calls for n in own.call_tree()
            ]


def test_a_time_before_a_process_began_is_before_all_of_it(merged):
    begin = merged.processes[2].start
    assert {c.thread for c in merged.slice(begin).calls().read()} <= {5, 6}
    early = merged.slice(end=begin - SECOND).calls().read()
    assert {call.thread for call in early} <= {1, 2, 3, 4}


# Merging again, one alone, equal pids, many


def test_merging_what_is_merged_gives_the_same_file(paths, merged, tmp_path):
    again, pairwise = tmp_path / "again", tmp_path / "pairwise"
    merge(again, merged.info.path).close()
    merge(tmp_path / "pair", paths[2], paths[0]).close()
    merge(pairwise, paths[1], tmp_path / "pair").close()
    whole = (tmp_path / "all.whence").read_bytes()
    assert again.read_bytes() == pairwise.read_bytes() == whole


def test_one_recording_may_be_merged(paths, tmp_path):
    with merge(tmp_path / "one", paths[0]) as one, whence.open(paths[0]) as alone:
        assert list(one.calls().read()) == list(alone.calls().read())
        assert one.losses == alone.losses
        assert one.info.file_id == alone.info.file_id


def test_equal_pids_are_two_processes(tmp_path):
    files = [
        merging.write(tmp_path / f"{n}", recordings.every_kind(), n, pid=1, later=n)
        for n in (1, 2)
    ]
    with merge(tmp_path / "all", *files) as merged:
        assert [(p.id, p.pid) for p in merged.processes] == [(1, 1), (2, 1)]
        assert [t.process for t in merged.threads] == [1, 1, 2, 2]


def test_many_processes_need_few_files_and_readers(tmp_path):
    count = 5 * _part._MOST_READERS
    files = [
        merging.write(tmp_path / f"{n}", recordings.every_kind(2), n, later=n)
        for n in range(1, count + 1)
    ]
    before = len(os.listdir("/proc/self/fd"))
    merged = merge(tmp_path / "all", *files)
    expected = list(merged.spans)
    pairs = zip(merged.spans, merged.spans, strict=True)
    assert all(a == b for a, b in pairs)
    first, half = iter(merged.spans), len(expected) // 2
    started = [next(first) for _ in range(half)]  # and others are read meanwhile
    assert len(merged.threads) == 2 * count
    assert merged.losses.recorded
    assert [*started, *first] == expected
    assert len(os.listdir("/proc/self/fd")) <= before + 1 + _part._MOST_READERS
    merged.close()
    with pytest.raises(ValueError, match="the recording is closed"):
        merged.processes
    with pytest.raises(ValueError, match="the recording is closed"):
        list(merged.spans)
    del merged, first, pairs
    assert len(os.listdir("/proc/self/fd")) == before


def test_names_are_shortened_by_the_folders_of_all(tmp_path):
    files = []
    for number, folder in ((1, b"/one"), (2, b"/two/more"), (3, b"/two")):
        file = recordings.every_kind()
        facts = [twin.Raw(0xE0, [901, b"import_path_0"]), twin.Raw(0xE3, [901, folder])]
        file.chunks[0].records[:0] = facts
        files.append(merging.write(tmp_path / f"{number}", file, number))
    with merge(tmp_path / "all", *files) as merged:
        assert merged.shorten("/one/a.py") == "a.py"
        assert merged.shorten("/two/more/a.py") == "a.py"
        assert merged.shorten("/three/a.py") == "/three/a.py"
