"""Unwind rules of real libraries are what a slow twin reads from their files."""

import os
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path

import pytest

from conftest import NATIVE, TESTS, compile_objects
from reference.unwind import Table
from reference.unwind_rows import FRAME, OUTERMOST, SIGNAL, UNSUPPORTED

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="the twin knows x86-64"),
]
ADDRESSES = 4000


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    """A program that prints the rules of a library."""
    flags = ["-O2", f"-I{NATIVE}"]
    sources = sorted([*NATIVE.glob("unwind/*.cpp"), *NATIVE.glob("base/*.cpp")])
    objects = compile_objects(sources, flags)
    target = tmp_path_factory.mktemp("rules") / "rules"
    quiet = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    command = ["c++", "-std=c++20", "-g", *flags, str(TESTS / "native" / "rules.cpp")]
    subprocess.run(
        [*command, *objects, "-pthread", "-o", str(target)], check=True, env=quiet
    )

    def run(library, offsets):
        done = subprocess.run(
            [target, library],
            input="\n".join(map(str, offsets)),
            capture_output=True,
            text=True,
            env=quiet,
        )
        assert done.returncode == 0, done.stderr
        return [int(line) for line in done.stdout.split()]

    return run


def loaded(name):
    """Where a library is, by what this process or the compiler says."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[-1]
        if Path(path).name.startswith(name):
            return path
    found = subprocess.run(
        ["c++", f"-print-file-name={name}"], capture_output=True, text=True
    ).stdout.strip()
    return str(Path(found).resolve()) if "/" in found else None


def python_library():
    folder, name = (sysconfig.get_config_var(k) for k in ("LIBDIR", "INSTSONAME"))
    path = Path(folder or "") / (name or "")
    if path.suffix != ".a" and path.is_file():
        return str(path)
    import _ctypes  # it is linked into the program, which nobody can load

    return _ctypes.__file__


def crypto():
    import _hashlib  # noqa: F401 - loads it

    return loaded("libcrypto.so")


LIBRARIES = {
    "libc": lambda: loaded("libc.so.6"),
    "libpython": python_library,
    "libstdc++": lambda: loaded("libstdc++.so.6"),
    "ld.so": lambda: loaded("ld-linux-x86-64.so.2"),
    "libcrypto": crypto,
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_rules_agree(name, rules, rng):
    path = LIBRARIES[name]()
    if path is None:
        pytest.skip(f"there is no {name}")
    table = Table(path)
    code = table.elf.code()
    begins = [
        begin for begin in table.begins if any(b <= begin < b + s for b, s in code)
    ]
    anywhere = [
        begin + rng.randrange(size)
        for begin, size in rng.choices(code, k=ADDRESSES // 2)
    ]
    near = [rng.choice(begins) + rng.randrange(-2, 40) for _ in range(ADDRESSES // 2)]
    offsets = [0, *anywhere, *near]
    found = rules(path, offsets)
    assert len(found) == len(offsets)
    kinds = Counter()
    for offset, packed in zip(offsets[1:], found[1:], strict=True):
        rule = table.rule(offset)
        assert packed == rule.packed(), (path, hex(offset), rule, hex(packed))
        kinds[rule.kind] += 1
    print(path, dict(kinds), file=sys.stderr)
    assert kinds[FRAME] > ADDRESSES // 2
    assert set(kinds) <= {FRAME, SIGNAL, OUTERMOST, UNSUPPORTED}
