"""What all tests share: a seed, child interpreters, a compiled extension."""

from __future__ import annotations

import importlib
import os
import random
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

import whence
from harness.beside_python import Beside

TESTS = Path(__file__).parent


def pytest_addoption(parser):
    parser.addoption("--seed", type=int, default=None, help="repeat a random run")
    parser.addoption(
        "--programs", type=int, default=500, help="how many random programs to compare"
    )
    parser.addoption(
        "--kills", type=int, default=200, help="how many recorders to kill"
    )
    parser.addoption("--forks", type=int, default=200, help="how many forks to try")
    parser.addoption(
        "--toggles", type=int, default=1000, help="how many recordings among 64 threads"
    )


def pytest_configure(config):
    config.addinivalue_line("markers", "packaging: builds sdist and wheel")
    config.addinivalue_line("markers", "packages: runs suites of other packages")
    config.addinivalue_line("markers", "native: tests layers that know no Python")
    config.addinivalue_line("markers", "store: has nothing to do with frames")
    seed = config.getoption("--seed")
    config.stash[SEED] = (
        random.SystemRandom().randrange(2**32) if seed is None else seed
    )


SEED = pytest.StashKey[int]()


def pytest_report_header(config):
    walk = whence.statistics()
    return f"seed: {config.stash[SEED]} (repeat with --seed); frames: {walk.walk}"


@pytest.fixture
def seed(request):
    return request.config.stash[SEED]


@pytest.fixture
def rng(seed, request):
    return random.Random(f"{seed}:{request.node.nodeid}")


@pytest.fixture
def run_python():
    """Run code in a child interpreter and return what it printed; it must end well."""

    def run(code, *, args=(), env=None, timeout=120):
        child = subprocess.run(
            [sys.executable, *args, "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **(env or {})},
        )
        assert child.returncode == 0, child.stderr
        assert child.stderr == ""
        return child.stdout

    return run


@pytest.fixture
def beside(tmp_path):
    """Run programs by python and by whence run, in a folder of their own."""
    folder = tmp_path / "program"
    folder.mkdir()
    return Beside(folder, tmp_path / "run.whence")


def compile_extension(folder, name, *flags):
    """Compile a test extension like a user would, and import it."""
    target = folder / (name + sysconfig.get_config_var("EXT_SUFFIX"))
    quiet = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    command = ["c++", "-std=c++20", "-O1", "-g", "-shared", "-fPIC", "-pthread"]
    command += ["-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations", *flags]
    command += [f"-I{whence.get_include()}", "-isystem", sysconfig.get_path("include")]
    command += [str(TESTS / "native" / f"{name}.cpp"), "-o", str(target)]
    subprocess.run(command, check=True, env=quiet)
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


@pytest.fixture(scope="session")
def rude(tmp_path_factory):
    """The test extension written against whence.h: threads, forks, exits."""
    return compile_extension(tmp_path_factory.mktemp("rude"), "rude")


@pytest.fixture(scope="session")
def faults(tmp_path_factory):
    """The fault shim: lets whence's Nth system call fail."""
    native = f"-I{TESTS.parent / 'native'}"
    return compile_extension(tmp_path_factory.mktemp("faults"), "faults", native)


@pytest.fixture(scope="session")
def damage(tmp_path_factory):
    """Damages recordings in every way, and reads them with its own reader."""
    native = TESTS.parent / "native"
    sources = [*native.glob("read/*.cpp"), *native.glob("format/*.cpp")]
    base = native / "base"
    sources += [
        base / f"{name}.cpp" for name in ("checksum", "line_table", "system", "text")
    ]
    flags = [f"-I{native}", "-O2", *map(str, sorted(sources))]
    if os.environ.get("WHENCE_SANITIZED"):
        flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    return compile_extension(tmp_path_factory.mktemp("damage"), "damage", *flags)
