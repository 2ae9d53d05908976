"""What all tests share: a seed, child interpreters, a compiled extension."""

from __future__ import annotations

import hashlib
import importlib
import os
import random
import signal
import subprocess
import sys
import sysconfig
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import whence
from harness.beside_python import Beside

TESTS = Path(__file__).parent
NATIVE = TESTS.parent / "native"


def pytest_addoption(parser):
    parser.addoption("--seed", type=int, default=None, help="repeat a random run")
    parser.addoption(
        "--programs", type=int, default=500, help="how many random programs to compare"
    )
    parser.addoption(
        "--steps", type=int, default=20_000, help="how many steps of memory to follow"
    )
    parser.addoption(
        "--kills", type=int, default=200, help="how many recorders to kill"
    )
    parser.addoption("--forks", type=int, default=200, help="how many forks to try")
    parser.addoption(
        "--toggles", type=int, default=1000, help="how many recordings among 64 threads"
    )
    parser.addoption(
        "--mutations", type=int, default=5000, help="how many tables to damage"
    )
    parser.addoption(
        "--captures", type=int, default=200_000, help="how many awkward stacks to walk"
    )
    parser.addoption(
        "--pool-rounds", type=int, default=100_000, help="how often threads use a pool"
    )


def pytest_configure(config):
    # A shell's background job ignores it, and so would programs that tests end by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "packaging: builds sdist and wheel")
    config.addinivalue_line("markers", "packages: runs suites of other packages")
    config.addinivalue_line("markers", "torch: needs PyTorch (make test-torch)")
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
def steps(request):
    return request.config.getoption("--steps")


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


@pytest.fixture(scope="session", autouse=True)
def _no_settings_from_above(tmp_path_factory):
    """Let `whence run`, which looks upwards for settings, find none of this machine."""
    (tmp_path_factory.getbasetemp() / "pyproject.toml").touch()


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


@pytest.fixture(autouse=True)
def no_tables():
    """No table of handles is installed that another test has left."""
    if handles := sys.modules.get("whence.handles._installed"):
        for table in handles.installed():
            handles.uninstall(table)


@pytest.fixture(scope="session")
def rude(tmp_path_factory):
    """The test extension written against whence.h: threads, forks, exits."""
    return compile_extension(tmp_path_factory.mktemp("rude"), "rude")


@pytest.fixture(scope="session")
def greedy(tmp_path_factory):
    """The test extension that takes memory in every way of the C library."""
    return compile_extension(tmp_path_factory.mktemp("greedy"), "greedy")


@pytest.fixture(scope="session")
def mapper(tmp_path_factory):
    """The test extension that maps memory in signal handlers and across threads."""
    return compile_extension(tmp_path_factory.mktemp("mapper"), "mapper")


@pytest.fixture(scope="session")
def rivals(tmp_path_factory):
    """Where another tool is that redirects malloc(), and a library it is about."""
    folder = tmp_path_factory.mktemp("rivals")
    compile_extension(folder, "rival")
    compile_extension(folder, "greedy", "-Wl,-z,now")  # so its slots are read-only
    return folder


@pytest.fixture(scope="session")
def replaces(tmp_path_factory):
    """Where another tool is that takes the place of hooks into Python's allocators."""
    folder = tmp_path_factory.mktemp("replaces")
    compile_extension(folder, "replaces")
    return folder


@pytest.fixture(scope="session")
def pool(tmp_path_factory):
    """A test extension with an allocator of its own."""
    return compile_extension(tmp_path_factory.mktemp("pool"), "pool")


@pytest.fixture(scope="session")
def nested(tmp_path_factory):
    """A test extension whose functions call Python, and are known by name."""
    return compile_extension(tmp_path_factory.mktemp("nested"), "nested")


@pytest.fixture(scope="session")
def faults(tmp_path_factory):
    """The fault shim: lets whence's Nth system call fail."""
    native = f"-I{TESTS.parent / 'native'}"
    return compile_extension(tmp_path_factory.mktemp("faults"), "faults", native)


def compile_objects(sources, flags):
    """Compile what knows no Python, once for all versions; the objects are kept."""
    contents = [
        p.read_bytes() for p in sorted(NATIVE.rglob("*")) if p.suffix in (".h", ".cpp")
    ]
    key = hashlib.sha256(b"".join(contents) + repr(flags).encode()).hexdigest()[:16]
    folder = TESTS.parent / "build" / f"objects-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    quiet = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    quiet |= {"CCACHE_BASEDIR": str(TESTS.parent), "CCACHE_NOHASHDIR": "1"}
    compiler = [*quiet.get("CMAKE_CXX_COMPILER_LAUNCHER", "").split(), "c++"]

    def compile_one(source):
        target = folder / f"{source.parent.name}-{source.stem}.o"
        if not target.exists():
            half = target.with_suffix(f".{os.getpid()}")
            command = [*compiler, "-std=c++20", "-g", "-fPIC", "-c", *flags]
            command += [str(source), "-o", str(half)]
            subprocess.run(command, check=True, env=quiet, cwd=TESTS.parent)
            half.rename(target)
        return str(target)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(compile_one, sources))


@pytest.fixture(scope="session")
def damage(tmp_path_factory):
    """Damages recordings in every way, and reads them with its own reader."""
    layers = ("read", "format", "handles")
    sources = [source for layer in layers for source in NATIVE.glob(f"{layer}/*.cpp")]
    sources += [
        NATIVE / "base" / f"{name}.cpp"
        for name in ("checksum", "line_table", "system", "text")
    ]
    flags = [f"-I{NATIVE}", "-O2"]
    if os.environ.get("WHENCE_SANITIZED"):
        flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    flags += compile_objects(sorted(sources), flags)
    return compile_extension(tmp_path_factory.mktemp("damage"), "damage", *flags)
