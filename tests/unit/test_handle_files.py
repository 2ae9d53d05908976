"""Files of handle tables: the native code against its slow twin, and against damage."""

import os
import random
import resource
import struct
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from harness.tables import random_table, records_of
from reference import handles as twin
from whence import _core
from whence.handles import HandleTable, HandleTableError, Recorder, SourceRange

pytestmark = pytest.mark.store


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.handles"


@pytest.fixture
def mutations(request):
    return request.config.getoption("--mutations")


def load(path, data):
    path.write_bytes(data)
    return HandleTable.load(path)


def assert_says(table, parts, where):
    assert table.namespaces == tuple(part.namespace.hex() for part in parts), where
    for part in parts:
        namespace = part.namespace.hex()
        for handle, record in records_of(part).items():
            assert table[namespace, handle] == record, where
    assert len(table) == sum(len(part.records) for part in parts), where


def sample(rng, path):
    tables = [random_table(rng) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    HandleTable.merge(*tables).save(path, overwrite=True)
    return path.read_bytes()


def test_300_random_tables_agree_with_the_twin(seed, path):
    for number in range(300):
        rng = random.Random(f"{seed}:{number}")
        where = f"--seed {seed}, table {number}"
        table = random_table(rng)
        table.save(path, overwrite=True)
        data = path.read_bytes()
        parts = twin.read(data)
        assert_says(table, parts, where)
        assert twin.write(parts) == data, where
        loaded = HandleTable.load(path)
        assert_says(loaded, parts, where)
        assert loaded == table, where
        assert list(loaded) == list(table), where
        assert loaded.explain(list(loaded)) or not len(loaded)


def test_what_the_twin_writes_is_read_although_nothing_is_shared(seed, path):
    for number in range(100):
        rng = random.Random(f"{seed}:{number}")
        table = random_table(rng)
        table.save(path, overwrite=True)
        (part,) = twin.read(path.read_bytes())
        # Every range and string once more, and half of what refers to them moved there.
        half = len(part.strings), len(part.ranges)
        part.strings = part.strings * 2
        part.ranges = part.ranges * 2
        part.records = [
            replace(
                record,
                kind=record.kind + rng.choice([0, half[0]]),
                range=record.range and record.range + rng.choice([0, half[1]]),
            )
            for record in part.records
        ]
        again = load(path, twin.write([part]))
        assert again == table, f"--seed {seed}, table {number}"
        assert hash(again) == hash(table)


def mutated(rng, data):
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(out))
        match rng.randrange(5):
            case 0:
                out[at] ^= 1 << rng.randrange(8)
            case 1:
                out[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
            case 2:
                del out[at : at + rng.randint(1, 9)]
            case 3:
                out[at:at] = rng.randbytes(rng.randint(1, 9))
            case 4:
                del out[at:]
        if not out:
            return b""
    return bytes(out)


def resealed(data):
    """Make the checksums and sizes right again, so that what is in it counts."""
    if len(data) < 64:
        return data
    body = data[64:]
    part = twin.sealed(data[32:48] + struct.pack("<QI", len(body), twin.checksum(body)))
    fixed = struct.pack("<HHIQI", 1, 0, 1, 64 + len(body), 0)
    return twin.sealed(twin.MAGIC + fixed) + part + body


@pytest.mark.timeout(3600)
def test_mutated_files_give_records_or_the_error(seed, path, mutations):
    data = b""
    for number in range(mutations):
        rng = random.Random(f"{seed}:{number}")
        if number % 50 == 0:
            table = random_table(rng, size=12)
            table.save(path, overwrite=True)
            data = path.read_bytes()
        damaged = mutated(rng, data)
        damaged = damaged if rng.random() < 0.3 else resealed(damaged)
        where = f"--seed {seed}, mutation {number}"
        try:
            expected, refused = twin.read(damaged), None
        except twin.Refused as error:
            expected, refused = [], str(error)
        problem, _, _ = _core.decode_handles(damaged)
        assert problem == (refused or "none"), where
        if refused is None:
            table = load(path, damaged)
            assert_says(table, expected, where)
            table.explain(list(table))
            assert HandleTable.from_json(table.to_json()) == table, where
        elif number % 10 == 0:
            with pytest.raises(HandleTableError) as error:
                load(path, damaged)
            assert "\n" not in str(error.value)


def one_handle(path):
    recorder = Recorder()
    recorder.issue(SourceRange("a.ex", 3), "add")
    recorder.stop().save(path)
    (part,) = twin.read(path.read_bytes())
    return part


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"", "is no table of handles: give a file"),
        (lambda data: b"PK\x03\x04" + data, "is no table of handles: give a file"),
        (lambda data: data[:20], "is cut, 12 bytes are missing: copy it again"),
        (lambda data: data[:-7], "is cut, 7 bytes are missing: copy it again"),
        (lambda data: data + b"x", "is damaged: copy it again"),
        (lambda data: data[:8] + b"\2" + data[9:], "is of format 2, which is newer"),
        (lambda data: data[:-1] + b"x", "is damaged: copy it again"),
    ],
)
def test_every_bad_file_is_one_clear_line(path, damage, message):
    one_handle(path)
    with pytest.raises(HandleTableError) as error:
        load(path, damage(path.read_bytes()))
    assert str(error.value).startswith(f"{path} {message}")
    assert "\n" not in str(error.value)


def test_what_is_no_file_is_one_clear_line(tmp_path):
    with pytest.raises(HandleTableError, match="is no file: give one that"):
        HandleTable.load(tmp_path)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(HandleTableError, match="is no file"):
        HandleTable.load(fifo)
    with pytest.raises(FileNotFoundError):
        HandleTable.load(tmp_path / "nothing")


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("kind", [str, os.fsencode, Path])
def test_paths_of_every_kind(tmp_path, kind, overwrite):
    table = Recorder().stop()
    path = tmp_path / "n\udcff.handles"  # a name that is not UTF-8
    table.save(kind(path), overwrite=overwrite)
    assert HandleTable.load(kind(path)) == table
    assert os.listdir(tmp_path) == [path.name]
    path.write_bytes(b"")
    with pytest.raises(HandleTableError, match=r"n\\udcff.handles is no table"):
        HandleTable.load(kind(path))


@pytest.mark.parametrize("path", ["", b"", ".", "/", Path()])
def test_a_path_without_a_name_is_one_clear_line(path):
    with pytest.raises(ValueError, match=r"^path must name a file, not '[./]?'$"):
        Recorder().stop().save(path)
    with pytest.raises(ValueError, match=r"^path must name a file|is no file: give"):
        HandleTable.load(path)


def test_only_regular_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "folder", "link"):
        with pytest.raises(FileExistsError, match="is not a regular file: it is not"):
            Recorder().stop().save(tmp_path / name, overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["folder", "link", "pipe"]
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("path", [None, 3, ["a"]])
def test_what_is_no_path_is_a_type_error(path):
    with pytest.raises(TypeError, match=r"expected str, bytes or os\.PathLike object"):
        Recorder().stop().save(path)
    with pytest.raises(TypeError, match=r"expected str, bytes or os\.PathLike object"):
        HandleTable.load(path)


def test_huge_claims_take_no_memory(path):
    part = one_handle(path)

    for column in range(6):
        counts = [0] * 7
        counts[column] = 2**40

        def claim(_, counts=counts):
            return b"".join(map(twin.varint, counts)) + bytes(100)

        data = twin.write([part], write_payload=claim)
        assert _core.decode_handles(data)[0] == "damaged"


def test_many_parts_are_read_in_good_time(path):
    parts = [twin.Part(number.to_bytes(16, "little")) for number in range(3000)]
    table = load(path, twin.write(parts))
    assert len(table.namespaces) == 3000
    assert len(table) == 0
    with pytest.raises(HandleTableError, match="is damaged"):
        load(path, twin.write([*parts, parts[7]]))


def test_save_replaces_nothing_unless_it_is_told_to(path):
    recorder = Recorder()
    first = recorder.stop()
    first.save(path)
    recorder.issue(None, "more")
    with pytest.raises(FileExistsError):
        recorder.stop().save(path)
    assert HandleTable.load(path) == first
    recorder.stop().save(path, overwrite=True)
    assert HandleTable.load(path) == recorder.stop()
    assert os.listdir(path.parent) == [path.name]


def test_a_failed_save_leaves_nothing_behind(tmp_path):
    table = Recorder().stop()
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="not a regular file"):
        table.save(tmp_path / "folder", overwrite=True)
    assert os.listdir(tmp_path) == ["folder"]
    with pytest.raises(FileNotFoundError):
        table.save(tmp_path / "nothing" / "model.handles")


def test_reading_from_many_threads(seed, path):
    recorder = Recorder()
    for number in range(2000):
        recorder.issue(SourceRange(f"f{number % 7}", number + 1), f"op{number % 9}")
    table = recorder.stop()
    table.save(path)
    loaded = HandleTable.load(path)
    wrong = []

    def look(at):
        rng = random.Random(f"{seed}:{at}")
        some = rng.sample(list(table), 500)
        wrong.extend(handle for handle in some if loaded[handle] != table[handle])

    threads = [threading.Thread(target=look, args=[at]) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_table_of_a_million_stays_small(path):
    recorder = Recorder()
    place, issue = SourceRange("a.ex", 1), recorder.issue
    for _ in range(1_000_000):
        issue(place, "add")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    table = recorder.stop()  # shares what is there
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4_000
    table.save(path)
    assert path.stat().st_size < 5_000_000
    last = list(table)[-1]
    assert HandleTable.load(path)[last] == (place, "add", None, None, ())
