"""ELF files: the native code against its slow twin, and against damage."""

import contextlib
import os
import random
import shutil
import struct
import subprocess
import sysconfig
import threading
import time
from pathlib import Path

import pytest

from harness import elf_files
from reference import elf as twin
from whence import _core
from whence._symbols import Module, Symbolizer

NO_TEXT = "a name that is no text"

pytestmark = [pytest.mark.store, elf_files.needs_tools]


@pytest.fixture
def mutations(request):
    return request.config.getoption("--mutations")


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """Small files of several kinds, as bytes."""
    folder = tmp_path_factory.mktemp("samples")
    whole = elf_files.make(folder, "libwhole.so")
    packed = elf_files.make(folder, "libpacked.so", "-gz=zlib")
    program = elf_files.make(folder, "program", "-no-pie", "-Wl,--build-id=md5")
    stripped = shutil.copy(whole, folder / "libstripped.so")
    elf_files.split(stripped, folder / "libstripped.debug")
    elf_files.run(
        *("objcopy", "--add-gnu-debuglink=libstripped.debug", stripped), cwd=folder
    )
    paths = [whole, packed, program, stripped, folder / "libstripped.debug"]
    return [path.read_bytes() for path in paths]


def system_libraries():
    """Name libraries that are there with all kinds of symbols in them."""
    found = [_core.__file__]
    for pattern in ("libc.so.6", "libstdc++.so.6", "ld-linux-*.so.*", "libm.so.6"):
        for folder in ("/lib", "/usr/lib", "/lib64"):
            found += Path(folder).glob(pattern)
            found += Path(folder).glob(f"*-linux-gnu/{pattern}")
    if folder := sysconfig.get_config_var("LIBDIR"):
        found += Path(folder).glob("libpython3*.so.1.0")
    return sorted({os.path.realpath(path) for path in found})


def facts(file):
    return (
        *(file.build_id, file.load_address, file.has_symbols, file.has_debug_info),
        *(file.debug_size, os.fsencode(file.debug_link) if file.debug_link else None),
    )


def facts_of_twin(elf):
    return (
        *(elf.build_id, elf.load_address, elf.has_symbols, elf.has_debug_info),
        *(elf.debug_size, elf.debug_link),
    )


def interesting(rng, symbols, count):
    """Choose addresses in, at the edges of and between functions, and anywhere."""
    starts = [start for group in symbols.starts for start in group] or [0]
    for _ in range(count):
        near = rng.choice(starts) + rng.choice([-1, 0, 1, 8, rng.randrange(4096)])
        anywhere = rng.choice([rng.randrange(max(starts) + 4096), rng.randrange(2**64)])
        address = near if rng.random() < 0.8 else anywhere
        yield min(max(address, 0), 2**64 - 1)


def named_by_twin(symbols, address):
    found = symbols.find(address)
    if found is None:
        return None
    try:
        return _core.demangle(found[0].decode()), found[1]
    except UnicodeDecodeError:
        return NO_TEXT, found[1]


def named(file, addresses):
    found = file.find(addresses)
    return [
        one and (NO_TEXT if "\ufffd" in one[0] else one[0], one[1]) for one in found
    ]


@pytest.mark.parametrize("path", system_libraries(), ids=os.path.basename)
def test_libraries_of_the_machine_agree_with_the_twin(path, rng):
    with open(path, "rb") as opened:
        elf = twin.Elf(opened.read())
    file = _core.ElfFile(path)
    assert facts(file) == facts_of_twin(elf)
    symbols = twin.Symbols(elf)
    addresses = list(interesting(rng, symbols, 5000))
    found = file.find(addresses)
    assert found == [named_by_twin(symbols, address) for address in addresses]
    assert sum(answer is not None for answer in found) > 500


def test_small_files_agree_with_the_twin_everywhere(samples, tmp_path):
    for data in samples:
        path = tmp_path / "file"
        path.write_bytes(data)
        elf = twin.Elf(data)
        file = _core.ElfFile(path)
        assert facts(file) == facts_of_twin(elf)
        symbols = twin.Symbols(elf)
        addresses = list(range(elf.load_address, elf.load_address + 0x5000))
        expected = [named_by_twin(symbols, address) for address in addresses]
        assert file.find(addresses) == expected
        assert any(expected)


def damaged(rng, data):
    """Change some bytes, most of them where headers and tables are; or cut the file."""
    data = bytearray(data)
    places = [0, 64]
    with contextlib.suppress(ValueError):
        elf = twin.Elf(bytes(data))
        headers = int.from_bytes(data[40:48], "little")
        places += [headers + 64 * rng.randrange(max(1, len(elf.sections)))] * 4
        places += [s.offset for s in elf.sections if s.type in (2, 3, 7, 11)]
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        place = rng.choice(places) + rng.randrange(96)
        if rng.random() < 0.1:
            place = rng.randrange(len(data))
        place = min(place, len(data) - 1)
        size = min(rng.choice([1, 1, 2, 4, 8]), len(data) - place)
        number = rng.choice(
            [0, 1, 2**63, 2**64 - 1, len(data), len(data) - 1, rng.randrange(2**64)]
        )
        data[place : place + size] = number.to_bytes(8, "little")[:size]
    if rng.random() < 0.2:
        del data[rng.randrange(len(data)) :]
    return bytes(data)


def answer_of_twin(data, addresses):
    try:
        elf = twin.Elf(data)
    except ValueError:
        return None
    try:
        symbols = twin.Symbols(elf)
    except ValueError:
        return facts_of_twin(elf), None
    return facts_of_twin(elf), [named_by_twin(symbols, a) for a in addresses]


def answer(path, addresses):
    try:
        file = _core.ElfFile(path)
    except ValueError as error:
        assert str(path) in str(error)
        assert "\n" not in str(error)
        return None
    try:
        return facts(file), named(file, addresses)
    except ValueError as error:
        assert str(path) in str(error)
        return facts(file), None


def test_thousands_of_damaged_files_agree_with_the_twin(
    samples, tmp_path, seed, mutations
):
    path = tmp_path / "damaged"
    for number in range(mutations):
        rng = random.Random(f"{seed}:{number}")
        data = damaged(rng, rng.choice(samples))
        path.write_bytes(data)
        addresses = [0x1000 + rng.randrange(0x400) for _ in range(20)]
        addresses += [address + 0x400000 for address in addresses]
        found = answer(path, addresses)
        expected = answer_of_twin(data, addresses)
        assert found == expected, f"--seed {seed}, file {number}"


def test_damaged_files_have_names_or_placeholders_and_a_reason(
    samples, tmp_path, seed, mutations
):
    for number in range(mutations // 5):
        rng = random.Random(f"{seed}:full:{number}")
        data = rng.choice(samples)
        if rng.random() < 0.5:
            data = damaged(rng, data)
        else:
            data = bytearray(data)
            for _ in range(rng.choice([1, 5, 50])):
                data[rng.randrange(len(data))] = rng.choice(
                    [0, 255, rng.randrange(256)]
                )
        path = tmp_path / f"file{number}"
        path.write_bytes(data)
        symbolizer = Symbolizer("full", [])
        addresses = [0x1000 + rng.randrange(0x400) for _ in range(10)]
        named = symbolizer.name([(Module(str(path)), each) for each in addresses])
        assert all(named), f"--seed {seed}, file {number}"
        for frames in named:
            assert all(frame.kind == "native" and frame.name for frame in frames)
        assert all("\n" not in reason for reason in symbolizer.problems.values())
        path.unlink()


def test_every_cut_of_a_file_is_refused_or_read(samples, tmp_path):
    path = tmp_path / "cut"
    data = samples[3]
    for size in range(0, len(data), 41):
        path.write_bytes(data[:size])
        assert answer(path, [0x1100]) == answer_of_twin(data[:size], [0x1100])


def with_notes(places, notes, build_id_at):
    """An ELF file whose sections are all notes, the same ones but for one."""
    head = b"\x7fELF\2\1\1" + bytes(9)
    table = 0x40 + len(notes) + 0x20
    head += struct.pack(
        "<HHIQQQIHHHHHH", *(3, 62, 1, 0, 0, table, 0, 64, 56, 0, 64, 0, 0)
    )
    own = struct.pack("<III", 4, 4, 3) + b"GNU\0" + b"\1\2\3\4"
    sections = []
    for place in range(places):
        here = (
            (0x40 + len(notes), len(own)) if place == build_id_at else (64, len(notes))
        )
        sections.append(struct.pack("<IIQQQQIIQQ", 0, 7, 0, 0, *here, 0, 0, 4, 0))
    first = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, places + 1, 0, 0, 0, 0)
    return (head + notes + own).ljust(table, b"\0") + first + b"".join(sections)


def test_a_file_of_notes_takes_no_time(tmp_path):
    path = tmp_path / "notes"
    notes = struct.pack("<III", 0, 0, 1) * 5_000
    path.write_bytes(with_notes((1 << 18) - 1, notes, None))
    began = time.process_time()
    assert _core.ElfFile(path).build_id is None
    assert time.process_time() - began < 2
    for place, found in ((0, "01020304"), (63, "01020304"), (64, None)):
        data = with_notes(100, notes, place)
        path.write_bytes(data)
        assert _core.ElfFile(path).build_id == twin.Elf(data).build_id == found


def test_what_cannot_be_opened_is_an_oserror(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        _core.ElfFile(tmp_path / "nothing")
    assert raised.value.filename == tmp_path / "nothing"
    with pytest.raises(IsADirectoryError):
        _core.ElfFile(str(tmp_path))
    with pytest.raises(ValueError, match="null"):
        _core.ElfFile("a\0b")
    with pytest.raises(TypeError):
        _core.ElfFile(1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="is no ELF file"):
        _core.ElfFile(pipe)


def test_addresses_are_numbers_of_64_bits():
    file = _core.ElfFile(_core.__file__)
    for wrong in (1, None, (1,), ["1"], [1.0], [None]):
        with pytest.raises(TypeError):
            file.find(wrong)
    for wrong in (-1, 2**64):
        with pytest.raises(OverflowError):
            file.find([wrong])
    assert file.find([]) == []


def test_many_threads_read_the_same_file(samples, tmp_path):
    path = tmp_path / "shared"
    path.write_bytes(samples[0])
    addresses = list(range(0x1000, 0x1400))
    expected = _core.ElfFile(path).find(addresses)
    for _ in range(20):
        file = _core.ElfFile(path)
        found = []
        threads = [
            threading.Thread(target=lambda: found.append(file.find(addresses)))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [expected] * 8


RUST = "_ZN60_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Drop$GT$4drop17h"


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_ZN3geo3BoxIiE4growEi", "geo::Box<int>::grow(int)"),
        ("_ZNSt6vectorIiSaIiEE9push_backERKi",) * 2,
        ("_ZN4core3fmt3pad17h0123456789abcdefE", "core::fmt::pad"),
        (f"{RUST}0123456789abcdefE", "<alloc::vec::Vec<T> as core::ops::Drop>::drop"),
        (f"{RUST}0123456789abcdefE.llvm.12", None),
        ("_Z1fv.cold", "f() [clone .cold]"),
        ("main", "main"),
        ("", ""),
        ("_Z", "_Z"),
        ("_ZN", "_ZN"),
        ("_RNvC6_123foo3bar", "_RNvC6_123foo3bar"),
        ("i", "i"),
        ("_Z1fv\0", "_Z1fv\0"),
        ("\udc80", "\udc80"),
    ],
)
def test_names_are_written_as_people_write_them(mangled, name):
    if name is None:
        name = "<alloc::vec::Vec<T> as core::ops::Drop>::drop"
    if name.startswith("_ZNSt6vector"):
        name = "std::vector<int, std::allocator<int> >::push_back(int const&)"
    assert _core.demangle(mangled) == name


def test_names_that_grow_without_bound_stay_as_they_are():
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    grows = "_Z1f1pI1aS0_E" + "".join(f"S_IS{d}_S{d}_E" for d in digits[1:])
    packs = "_Z1fIJ" + "i" * 100 + "EEv" + "Dp1bI" * 20 + "T_" + "E" * 20
    hides = "_Zv1999x" + grows[len("_Z1f") :]  # an operator whose number is no length
    endless = "_Z1fIXsr1eC"  # libstdc++ of GCC 12 does not return
    began = time.process_time()
    for name in (grows, packs, hides, endless):
        assert _core.demangle(name) == name
    assert time.process_time() - began < 1
    few = "_Z1f1pI1aS0_E" + "".join(f"S_IS{d}_S{d}_E" for d in digits[1:5])
    assert _core.demangle(few).count("p<a, a>") > 16


def test_names_of_many_groups_take_no_time():
    began = time.process_time()
    for name in ("_Z" + "N" * 4_000, "_Z1f" + "I" * 4_000, "_ZN1a" + "I" * 4_000):
        for _ in range(50):
            assert _core.demangle(name) == name
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("letter", ["x", "P", "N1a", "1aI", "S_"])
def test_long_names_are_cut(letter):
    name = "_Z1f" + letter * 100_000
    assert _core.demangle(name) == name[: 1 << 14] + "..."


def test_demangled_names_are_those_of_binutils(samples, tmp_path):
    names = set()
    for path in system_libraries():
        done = subprocess.run(["nm", "-D", path], capture_output=True, text=True)
        names |= {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()}
    # Clones for transactions, of which libstdc++ has some, stay as they are.
    chosen = sorted(n for n in names if n.startswith("_Z") and n[:5] != "_ZGTt")[::5]
    done = subprocess.run(
        ["c++filt", "-i"],
        input="\n".join(chosen),
        capture_output=True,
        text=True,
        check=True,
    )
    differ = [
        (name, theirs)
        for name, theirs in zip(chosen, done.stdout.split("\n"), strict=False)
        if _core.demangle(name) != theirs
    ]
    # They may know more than the C++ library does.
    assert len(differ) <= len(chosen) // 100, differ[:5]
