"""The sdist builds a wheel, and the wheel works where the checkout is not."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


def run(*command, cwd, env=None):
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.packaging
@pytest.mark.timeout(1800)
def test_sdist_and_wheel(tmp_path):
    run(
        sys.executable, "-m", "build", "--outdir", tmp_path / "dist", ROOT, cwd=tmp_path
    )
    (sdist,) = (tmp_path / "dist").glob("*.tar.gz")
    (wheel,) = (tmp_path / "dist").glob("*.whl")

    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "native/include/whence.h"} <= names
    assert not any(name.startswith((".venv", "build/", ".git/")) for name in names)

    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {"whence/py.typed", "whence/_core.pyi", "whence/include/whence.h"} <= names
    assert not any(name.endswith((".cpp", ".a", "CMakeLists.txt")) for name in names)

    empty = tmp_path / "empty"
    venv.create(empty, with_pip=True)
    python = empty / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", wheel, cwd=empty)
    code = "import whence; print(whence.capture().frames[0].name, whence.__file__)"
    name, where = run(python, "-c", code, cwd=empty).split()
    assert name == "<module>"
    assert where.startswith(str(empty))
    golden = ROOT / "tests" / "data" / "packed-1.0.whence"
    for command in ([python, "-m", "whence"], [empty / "bin" / "whence"]):
        assert run(*command, "verify", golden, cwd=empty).endswith("sound\n")


@pytest.mark.packaging
@pytest.mark.timeout(1800)
def test_an_interpreter_nobody_has_described(tmp_path):
    """Built without any frame layout, everything works through the public API."""
    site = tmp_path / "site"
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-build-isolation",
        "--no-deps",
    ]
    command += ["-C", "cmake.define.WHENCE_FORGET_LAYOUTS=ON"]
    command += [
        "-C",
        f"build-dir={ROOT / 'build' / f'undescribed-{VERSION}'}",
        "--target",
        str(site),
        str(ROOT),
    ]
    run(*command, cwd=tmp_path)
    tests = ["unit/test_random_programs.py", "unit/test_stack.py"]
    tests += ["promises/test_behaviours.py"]
    run(
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        *(ROOT / "tests" / test for test in tests),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(site)},
    )
    code = "import whence; print(whence.statistics().walk_reason, whence.__file__)"
    out = run(
        sys.executable,
        "-c",
        code,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
    )
    assert out.startswith("this interpreter's frames are not described")
    assert str(site) in out
