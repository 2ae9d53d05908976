"""Addresses of native code get names, files and lines, from the right file."""

import os
import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness import elf_files
from whence import _core, _debug_files, _line_files, _native, _symbols
from whence._frame import Frame
from whence._symbols import Module, Symbolizer

pytestmark = [pytest.mark.store, elf_files.needs_tools]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A library with all that debuggers need."""
    return elf_files.make(tmp_path_factory.mktemp("built"), "libgeo.so")


@pytest.fixture
def library(built, tmp_path):
    """The same, where it can be changed."""
    return shutil.copy(built, tmp_path / "libgeo.so")


def module_of(path, build_id=None):
    if build_id is None:
        build_id = _core.ElfFile(path).build_id or ""
    return Module(str(path), build_id)


def address_of(path, name):
    """Where a function starts, by the name that the file has for it."""
    done = subprocess.run(["nm", path], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    return next(int(row[0], 16) for row in rows if row[-1] == name)


GROW = "_ZN3geo3BoxIiE4growEi"
HIDDEN = "_ZN3geoL6hiddenEi"
RUSTY = "_ZN4core3fmt3pad17h0123456789abcdefE"


def all_frames(symbolizer, module, start, length=64):
    addresses = range(start, start + length)
    return symbolizer.name([(module, address) for address in addresses])


def test_symbols_have_demangled_names_and_the_modules_path(built):
    module = module_of(built)
    names = {
        GROW: "geo::Box<int>::grow(int)",
        HIDDEN: "geo::hidden(int)",
        RUSTY: "core::fmt::pad",
        "outer": "outer",
    }
    asked = [(module, address_of(built, name)) for name in names]
    expected = [
        [Frame(name, str(built), None, kind="native")] for name in names.values()
    ]
    assert Symbolizer().name(asked) == expected
    assert Symbolizer("symbols").name(asked[::-1]) == expected[::-1]


def test_full_has_files_lines_and_inlined_functions(built):
    symbolizer = Symbolizer("full")
    assert (symbolizer.mode, symbolizer.reason) == ("full", None)
    stacks = all_frames(symbolizer, module_of(built), address_of(built, GROW))
    source = str(built) + ".cpp"
    header = str(built.parent / "twice.h")
    inlined = [
        Frame("int twice<int>(int)", header, 3, kind="native"),
        Frame("geo::middle(int)", source, 8, kind="native"),
        Frame("geo::Box<int>::grow(int)", source, 11, kind="native"),
    ]
    assert inlined in stacks
    assert any(stack == inlined[2:] for stack in stacks)
    assert symbolizer.problems == {}


def test_the_program_is_found_where_it_wants_to_lie(tmp_path):
    path = elf_files.make(tmp_path, "program", "-no-pie")
    file = _core.ElfFile(path)
    assert file.load_address == 0x400000
    address = address_of(path, GROW)
    assert address > file.load_address
    module = module_of(path)
    ((symbol,),) = Symbolizer().name([(module, address)])
    assert symbol.name == "geo::Box<int>::grow(int)"
    full = Symbolizer("full").name([(module, address)])[0][-1]
    assert (full.name, full.filename) == (symbol.name, str(path) + ".cpp")
    # The offset in memory is not the address in the file.
    low = Symbolizer("full").name([(module, address - file.load_address)])
    assert low == [[placeholder(path, address - file.load_address)]]


def placeholder(path, address):
    name = Path(path).name
    return Frame(f"<{name}+{address:#x}>", str(path), None, kind="native")


def test_addresses_outside_of_functions_are_placeholders(built):
    module = module_of(built)
    for mode in ("full", "symbols", "off"):
        for address in (0, 8, 1 << 40, (1 << 64) - 1, 1 << 64, -1):
            symbolizer = Symbolizer(mode)
            named = symbolizer.name([(module, address)])
            assert named == [[placeholder(built, address)]]
            assert symbolizer.problems == {}


def test_off_opens_nothing(built):
    symbolizer = Symbolizer("off")
    module = Module(str(built), "wrong")
    start = address_of(built, GROW)
    assert symbolizer.name([(module, start)]) == [[placeholder(built, start)]]
    assert symbolizer.problems == {}


def test_an_unknown_mode_is_refused():
    for mode in ("", "FULL", "lines", None):
        with pytest.raises(ValueError, match="mode must be 'full', 'symbols' or 'off'"):
            Symbolizer(mode)


def test_a_stripped_library_has_exported_names_only(library):
    start, hidden = address_of(library, GROW), address_of(library, HIDDEN)
    elf_files.run("strip", "--strip-all", library, cwd=library.parent)
    file = _core.ElfFile(library)
    assert not file.has_symbols
    assert not file.has_debug_info
    module = module_of(library)
    for mode in ("symbols", "full"):
        exported, local = Symbolizer(mode).name([(module, start), (module, hidden)])
        assert [frame[:3] for frame in exported] == [
            ("geo::Box<int>::grow(int)", str(library), None)
        ]
        assert local == [placeholder(library, hidden)]


@pytest.mark.parametrize(
    "place", ["by build id", "by name", "of any name", "deeper", "deep"]
)
def test_a_debug_file_is_found(library, tmp_path, place):
    start, hidden = address_of(library, GROW), address_of(library, HIDDEN)
    module = module_of(library)
    where = tmp_path / "debug"
    debug = {
        "by build id": where
        / ".build-id"
        / module.build_id[:2]
        / f"{module.build_id[2:]}.debug",
        "by name": where / "libgeo.so.debug",
        "of any name": where / "something",
        "deeper": where / "folder" / "something",
        "deep": where / "a" / "b" / "c" / "d" / "something",
    }[place]
    elf_files.split(library, debug)
    requests = [(module, start), (module, hidden)]
    _, (local,) = Symbolizer("symbols", [where]).name(requests)
    assert local[:3] == ("geo::hidden(int)", str(library), None)
    symbolizer = Symbolizer("full", [str(where)])
    grow, local = symbolizer.name(requests)
    assert grow[-1].name == "geo::Box<int>::grow(int)"
    assert grow[-1].filename.endswith("libgeo.so.cpp")
    assert 10 <= grow[-1].line <= 12
    assert local[-1].name == "geo::hidden(int)"
    assert symbolizer.problems == {}
    # It is in none of these.
    _, (local,) = Symbolizer("full", [tmp_path / "nowhere"]).name(requests)
    assert local == placeholder(library, hidden)


def test_a_library_that_moved_is_found_by_its_build_id(library, tmp_path):
    start = address_of(library, HIDDEN)
    module = module_of(library)
    new = tmp_path / "new"
    new.mkdir()
    library.rename(new / "libgeo.so.2")
    symbolizer = Symbolizer("symbols", [new])
    ((frame,),) = symbolizer.name([(module, start)])
    assert frame[:3] == ("geo::hidden(int)", module.path, None)
    assert symbolizer.problems == {}
    lost = Symbolizer()
    assert lost.name([(module, start)]) == [[placeholder(library, start)]]
    reason = "cannot be read: No such file or directory"
    assert lost.problems == {module.path: reason}


def test_a_file_with_another_build_id_is_never_used(library, tmp_path):
    start = address_of(library, GROW)
    real = _core.ElfFile(library).build_id
    other = "ab" + real[2:] if real[:2] != "ab" else "cd" + real[2:]
    debug = tmp_path / "debug" / ".build-id" / other[:2]
    debug.mkdir(parents=True)
    shutil.copy(library, debug / f"{other[2:]}.debug")  # a lie
    shutil.copy(library, tmp_path / "debug" / "libgeo.so")
    for mode in ("symbols", "full"):
        symbolizer = Symbolizer(mode, [tmp_path / "debug"])
        module = Module(str(library), other)
        assert symbolizer.name([(module, start)]) == [[placeholder(library, start)]]
        reason = "is another file than was recorded: it has the build id "
        assert symbolizer.problems == {str(library): f"{reason}{real}, not {other}"}


def test_a_library_without_build_id(tmp_path):
    path = elf_files.make(tmp_path, "libnone.so", "-Wl,--build-id=none")
    assert _core.ElfFile(path).build_id is None
    start = address_of(path, HIDDEN)
    symbolizer = Symbolizer("full")
    named = symbolizer.name([(Module(str(path)), start)])[0]
    assert named[-1].name == "geo::hidden(int)"
    assert named[-1].filename == f"{path}.cpp"
    # But it is not the one that had one.
    strange = Symbolizer()
    named = strange.name([(Module(str(path), "abcdef"), start)])
    assert named == [[placeholder(path, start)]]
    assert "it has no build id, not abcdef" in strange.problems[str(path)]
    # A new file has new names.
    source = elf_files.SOURCE.replace("hidden", "secret")
    elf_files.make(tmp_path, "libnone.so", "-Wl,--build-id=none", source=source)
    start = address_of(path, HIDDEN.replace("hidden", "secret"))
    named = symbolizer.name([(Module(str(path)), start)])[0]
    assert named[-1].name == "geo::secret(int)"


@pytest.mark.parametrize("flag", ["-gz=zlib", "-gdwarf-4", "-gdwarf-5"])
def test_debug_info_of_other_kinds(tmp_path, flag):
    path = elf_files.make(tmp_path, "libother.so", flag)
    start = address_of(path, HIDDEN)
    named = Symbolizer("full").name([(module_of(path), start)])[0]
    assert named[-1][:2] == ("geo::hidden(int)", f"{path}.cpp")
    assert 15 <= named[-1].line <= 18


def test_without_symbolic_full_is_symbols(built, monkeypatch):
    monkeypatch.setitem(sys.modules, "symbolic.debuginfo", None)
    symbolizer = Symbolizer("full")
    assert symbolizer.mode == "symbols"
    assert "need the package symbolic" in symbolizer.reason
    ((frame,),) = symbolizer.name([(module_of(built), address_of(built, GROW))])
    assert frame[:3] == ("geo::Box<int>::grow(int)", str(built), None)


def test_too_much_debug_info_is_refused(built, monkeypatch):
    monkeypatch.setattr(_line_files, "MOST_DEBUG_INFO", 100)
    symbolizer = Symbolizer("full")
    ((frame,),) = symbolizer.name([(module_of(built), address_of(built, GROW))])
    assert frame[:3] == ("geo::Box<int>::grow(int)", str(built), None)
    assert "GB of debug info" in symbolizer.problems[str(built)]


def test_a_packed_section_that_claims_to_be_huge_is_refused(tmp_path):
    # symbolic would allocate that much, and abort.
    path = elf_files.make(tmp_path, "libbomb.so", "-gz=zlib")
    start = address_of(path, HIDDEN)
    before = _core.ElfFile(path)
    data = path.read_bytes()
    sizes = [size.to_bytes(8, "little") for size in range(200, 1 << 13)]
    for size in sizes:  # of compression headers: type 1, zero, size, alignment 1
        head = b"\1\0\0\0\0\0\0\0" + size
        data = data.replace(head, head[:8] + (1 << 52).to_bytes(8, "little"))
    path.write_bytes(data)
    assert before.debug_size < 1 << 20
    assert _core.ElfFile(path).debug_size >= 1 << 52
    symbolizer = Symbolizer("full")
    ((frame,),) = symbolizer.name([(module_of(path), start)])
    assert frame[:3] == ("geo::hidden(int)", str(path), None)
    assert symbolizer.problems == {str(path): "has more than 2 GB of debug info"}


def test_what_is_no_file_of_the_kind_is_a_problem(tmp_path):
    text = tmp_path / "libtext.so"
    text.write_text("not a library")
    pipe = tmp_path / "libpipe.so"
    os.mkfifo(pipe)
    problems = {
        str(text): f"{str(text)!r} is no ELF file",
        str(pipe): "is no regular file",
        str(tmp_path): "is no regular file",
        "/dev/zero": "is no regular file",
        str(text) + "/x": "cannot be read: Not a directory",
        "/tmp/\0": "cannot be read: ",
        "[vdso]": "is not the path of a file",
        "": "is not the path of a file",
    }
    for mode in ("symbols", "full"):
        symbolizer = Symbolizer(mode, [tmp_path])
        requests = [(Module(path, "abcd"), 16) for path in problems]
        named = symbolizer.name(requests)
        assert [len(frames) for frames in named] == [1] * len(problems)
        assert named[0][0].name == "<libtext.so+0x10>"
        assert named[-1][0].name == "<unknown+0x10>"
        assert list(symbolizer.problems) == list(problems)
        for path, reason in problems.items():
            assert symbolizer.problems[path].startswith(reason)


def test_directories_are_searched_within_bounds(library, tmp_path, monkeypatch):
    start = address_of(library, HIDDEN)
    module = module_of(library)
    new = tmp_path / "many"
    new.mkdir()
    for number in range(10):
        (new / f"a{number}").write_text("no library")
    library.rename(new / "z")
    monkeypatch.setattr(_debug_files, "MOST_SCANNED", 11)
    assert Symbolizer(debug_dirs=[new]).name([(module, start)])[0][0].name == (
        "geo::hidden(int)"
    )
    monkeypatch.setattr(_debug_files, "MOST_SCANNED", 10)
    symbolizer = Symbolizer(debug_dirs=[new])
    assert symbolizer.name([(module, start)]) == [[placeholder(library, start)]]
    reason = "not searched to its end: more than 10 files"
    assert symbolizer.problems[str(new)] == reason


def test_what_cannot_be_looked_at_in_a_directory_is_left_out(library, tmp_path):
    start = address_of(library, HIDDEN)
    module = module_of(library)
    new = tmp_path / "debug"
    inner = new / "inner"
    inner.mkdir(parents=True)
    (new / "a").symlink_to("a")
    (new / "b").symlink_to("c")
    (new / "c").symlink_to("b")
    (new / "up").symlink_to(new)
    (new / "nowhere").symlink_to("/nowhere/at/all")
    os.mkfifo(new / "pipe")
    (new / "locked").mkdir(mode=0)
    library.rename(inner / "z")
    symbolizer = Symbolizer(debug_dirs=[new])
    ((frame,),) = symbolizer.name([(module, start)])
    assert frame.name == "geo::hidden(int)"
    assert symbolizer.problems == {}


def test_answers_are_kept_within_bounds(library, monkeypatch):
    monkeypatch.setattr(_symbols, "MOST_CACHED", 10)
    monkeypatch.setattr(_symbols, "MOST_OPEN", 2)
    start = address_of(library, GROW)
    module = module_of(library)
    symbolizer = Symbolizer()
    first = all_frames(symbolizer, module, start, 20)
    assert len(symbolizer._answers) == 10
    assert all_frames(symbolizer, module, start, 20) == first
    for number in range(5):
        copy = shutil.copy(library, library.with_name(f"lib{number}.so"))
        ((frame,),) = symbolizer.name([(module_of(copy), start)])
        assert frame.filename == str(copy)
    assert len(symbolizer._sources) == 2
    # What is known needs no file.
    symbolizer.name([(module, start)])
    library.unlink()
    assert symbolizer.name([(module, start)]) == first[:1]
    # Nobody changes an answer for others.
    symbolizer.name([(module, start)])[0].clear()
    assert symbolizer.name([(module, start)]) == first[:1]


def test_many_threads_name_at_once(library, monkeypatch):
    monkeypatch.setattr(_symbols, "MOST_CACHED", 4)
    monkeypatch.setattr(_symbols, "MOST_OPEN", 2)
    start = address_of(library, GROW)
    names = ["geo::Box<int>::grow(int)"]
    copies = [
        str(shutil.copy(library, library.with_name(f"lib{n}.so"))) for n in range(12)
    ]
    name = _native.namer("symbols")
    wrong = []

    def work(rng):
        try:
            for _ in range(8000):
                path = rng.choice(copies)
                found = name(path, "", start + rng.randrange(4))
                if [f[:2] for f in found] != [(names[0], path)]:
                    wrong.append(found)
        except BaseException as error:
            wrong.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [
            threading.Thread(target=work, args=[random.Random(n)]) for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
    assert len(_native._idle["symbols"]) <= _native.MOST_IDLE


def test_one_that_was_interrupted_is_not_used_again(library, monkeypatch):
    start = address_of(library, GROW)
    module = module_of(library)
    with monkeypatch.context() as patched:
        patched.setattr(_native, "_idle", {"symbols": []})
        patched.setattr(Symbolizer, "_look_for", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            _native.namer("symbols")(*module, start)
        assert _native._idle["symbols"] == []
    # Within another one, as a signal handler may be.
    name = _native.namer("symbols")
    inner = []
    look = Symbolizer._look_for

    def look_twice(self, module):
        if not inner:
            inner.append(None)
            inner.append(name(*module, start))
        return look(self, module)

    monkeypatch.setattr(Symbolizer, "_look_for", look_twice)
    monkeypatch.setattr(_native, "_idle", {})
    assert name(*module, start) == inner[1]


def _interrupt(*_):
    raise KeyboardInterrupt


def test_a_forked_child_names_while_other_threads_of_its_parent_do(run_python):
    out = run_python(
        """\
        import os, sys, threading
        from whence import _native
        sys.setswitchinterval(1e-6)
        place = os.path.realpath(sys.executable), ""
        name = _native.namer("symbols")
        done = []

        def work(address=4096):
            while not done:
                address += 1
                name(*place, address)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        statuses = set()
        for _ in range(50):
            if (child := os.fork()) == 0:
                os._exit(len(name(*place, 4096)))
            statuses.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        done.append(True)
        print(statuses)
        """
    )
    assert out == "{1}\n"


def test_a_file_that_is_cut_while_it_is_open(library):
    start = address_of(library, GROW)
    files = [_core.ElfFile(library) for _ in range(2)]
    assert files[0].find([start])[0][0] == "geo::Box<int>::grow(int)"
    with open(library, "r+b") as opened:
        opened.truncate(64)
    assert files[0].find([start]) == [None]
    with pytest.raises(ValueError, match="of which a part is missing"):
        files[1].find([start])


def test_importing_takes_little(run_python):
    out = run_python(
        """\
        import sys
        before = set(sys.modules)
        import whence._symbols
        heavy = {"typing", "dataclasses", "pathlib", "subprocess", "symbolic", "rich"}
        print(heavy & (set(sys.modules) - before))
        """
    )
    assert out == "set()\n"
