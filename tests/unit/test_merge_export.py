"""Every format of a merged recording says what the API says of it."""

import json
from collections import Counter

import pytest

import whence
from harness import exported, merging
from harness.merging import SECOND, merge
from harness.traces import Perfetto, chrome, lengths
from reference import recordings
from whence import export
from whence._recording import start_of
from whence.cli import main

pytestmark = pytest.mark.store


@pytest.fixture(scope="module", params=["others", "same"])
def recorded(request, tmp_path_factory):
    """Three processes that do much the same; two of the same pid, as in containers."""
    from harness import sample_program

    folder = tmp_path_factory.mktemp("merged")
    files = []
    for number in range(1, 4):
        sample_program.work()
        path = folder / f"{number}.whence"
        with whence.record(path, c_calls=number == 2, pack=False):
            with whence.span("work", number=number):
                sample_program.work_in_threads()
            whence.counter("number", number)
        data = bytearray(path.read_bytes())
        pid = 4000 + number if request.param == "others" or number == 1 else 4002
        files.append(path)
        path.write_bytes(with_pid(data, pid))
    with merge(folder / "all.whence", *files) as recording:
        yield recording


def with_pid(data, pid):
    from reference import recording as twin

    data[44:48] = pid.to_bytes(4, "little")
    data[124:128] = twin.checksum(bytes(data[:124])).to_bytes(4, "little")
    return bytes(data)


@pytest.mark.parametrize("name", exported.FORMATS)
def test_functions(name, recorded, tmp_path):
    for part in (recorded, recorded.slice(processes=[3, 1])):
        out = tmp_path / f"{len(part.processes)}{exported.suffix(name)}"
        export.export(part, out)
        wanted = exported.expected(name, part)
        assert len(wanted) > 5
        assert exported.read(name, out) == wanted


def test_perfetto_has_a_group_for_each_process(recorded, tmp_path):
    target = tmp_path / "a.pftrace"
    export.export(recorded, target)
    trace = Perfetto(target.read_bytes())
    groups = {
        uuid: track.process
        for uuid, track in trace.tracks.items()
        if track.HasField("process")
    }
    assert len(groups) == len({group.pid for group in groups.values()}) == 3
    threads = {uuid: t for uuid, t in trace.tracks.items() if t.HasField("thread")}
    assert len(threads) == len(recorded.threads) == 9
    for track in threads.values():
        assert track.thread.pid == groups[track.parent_uuid].pid
    pids = {group.pid: n for n, group in enumerate(groups.values(), 1)}
    start = start_of(recorded)
    slices = Counter(
        (pids[threads[track].thread.pid], name, begin - start, end - begin)
        for track, name, begin, end in trace.slices(lambda t: t.HasField("thread"))
    )
    assert slices == expected_slices(recorded)
    spans = list(trace.slices(lambda track: track.name == "spans"))
    assert sorted((begin - start, end - begin) for *_, begin, end in spans) == sorted(
        (span.start, span.duration) for span in recorded.spans
    )


def expected_slices(recorded):
    of = {thread.id: thread.process for thread in recorded.threads}
    return Counter(
        (of[call.thread], call.function, call.start, call.duration)
        for call in recorded.calls().read()
    )


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_chrome_has_a_group_for_each_process(recorded, tmp_path, suffix):
    events = chrome(recorded, tmp_path / f"a{suffix}")["traceEvents"]
    names = [e for e in events if e["name" if "name" in e else "ph"] == "process_name"]
    pids = {event["pid"]: number for number, event in enumerate(names, 1)}
    assert len(pids) == 3
    told = lengths(e for e in events if e.get("cat") == "call")
    start = start_of(recorded)
    slices = Counter(
        (pids[pid], name, begin - start, end - begin)
        for (pid, _), name, begin, end in told
    )
    assert slices == expected_slices(recorded)
    numbers = {e["pid"]: e["args"]["number"] for e in events if e.get("cat") == "span"}
    counted = {e["pid"]: e["args"]["value"] for e in events if e["ph"] == "C"}
    assert numbers == counted == pids


def test_pids_are_those_of_the_processes_if_they_can_be(recorded, tmp_path):
    events = chrome(recorded, tmp_path / "a.json")["traceEvents"]
    pids = [process.pid for process in recorded.processes]
    told = list(dict.fromkeys(event["pid"] for event in events))
    assert told[:2] == pids[:2] == [4001, 4002]
    assert (told[2] == pids[2]) is (pids[2] != 4002)


def test_parquet_has_processes(recorded, tmp_path):
    pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    folder = tmp_path / "a.parquet"
    export.export(recorded, folder)
    with duckdb.connect() as database:

        def rows(query):
            return [tuple(row) for row in database.sql(query).fetchall()]

        processes = rows(f"from '{folder}/process.parquet'")
        calls = rows(
            f"select process, function, start, duration from '{folder}/call.parquet'"
        )
        threads = rows(f"select id, process from '{folder}/thread.parquet' order by 1")
        spans = rows(f"select process, tags from '{folder}/span.parquet'")
        counters = rows(f"select process, value from '{folder}/counter.parquet'")
        joined = rows(
            f"select count(*) from '{folder}/call.parquet' c "
            f"join '{folder}/thread.parquet' t "
            "on c.thread = t.id and c.process = t.process"
        )
    assert processes == [process[:6] for process in recorded.processes]
    assert Counter(calls) == expected_slices(recorded)
    assert joined == [(len(calls),)]
    assert threads == [(t.id, t.process) for t in recorded.threads]
    assert [(n, json.loads(tags)["number"]) for n, tags in spans] == [
        *((1, 1), (2, 2), (3, 3)),
    ]
    assert counters == [(1, 1), (2, 2), (3, 3)]


def test_speedscope_names_processes(recorded, tmp_path):
    out = tmp_path / "a.speedscope.json"
    export.export(recorded, out)
    titles = [p["name"] for p in exported.speedscope_file(out)["profiles"]]
    pids = {process.id: process.pid for process in recorded.processes}
    assert titles == [
        "all threads",
        *(f"process {pids[t.process]}: {t.name} ({t.id})" for t in recorded.threads),
    ]


def test_processes_are_chosen_by_pid(tmp_path, capsys):
    files = [
        merging.write(
            tmp_path / f"{n}.whence",
            recordings.every_kind(n),
            n,
            pid=min(n, 2),
            later=n * SECOND,
        )
        for n in (1, 2, 3)
    ]
    path, out = str(tmp_path / "all"), str(tmp_path / "out.json")
    with merge(path, *files) as merged:
        expected = {
            pids: len(merged.slice(processes=ids).calls().read())
            for pids, ids in {"1": [1], "2": [2, 3], "12": [1, 2, 3]}.items()
        }
    for pids, calls in expected.items():
        options = [option for pid in pids for option in ("--process", pid)]
        assert main(["export", path, "-f", "-o", out, *options]) == 0
        with open(out) as file:
            events = json.load(file)["traceEvents"]
        begun = [event for event in events if event.get("cat") == "call"]
        assert len(begun) == calls > 0
        assert len({event["pid"] for event in begun}) == len(pids) + ("2" in pids)
    capsys.readouterr()
    assert main(["export", path, "-f", "-o", out, "--process", "7"]) == 2
    assert capsys.readouterr().err == "whence: there is no process 7; there are: 1, 2\n"
    arguments = ["--process", "1", "--thread", "5"]
    assert main(["export", path, "-f", "-o", out, *arguments]) == 2
    assert "there is no thread 5; there are: 1" in capsys.readouterr().err
