"""Builds and runs the tests of the layers that know no Python."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.native
@pytest.mark.timeout(1200)  # they are compiled first
def test_native_layers():
    sanitized = bool(os.environ.get("WHENCE_SANITIZED"))
    kind = "sanitized" if sanitized else "checked"
    folder = (
        ROOT / "build" / f"native-{kind}-{sys.version_info[0]}.{sys.version_info[1]}"
    )
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja"]
    configure += ["-DWHENCE_NATIVE_TESTS=ON", "-DWHENCE_CHECKED=ON"]
    configure += [f"-DPython_EXECUTABLE={sys.executable}"]
    configure += [f"-DWHENCE_SANITIZE={'ON' if sanitized else 'OFF'}"]
    for command in (
        configure,
        ["cmake", "--build", str(folder), "--target", "native_tests"],
        [str(folder / "native_tests")],
    ):
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 failures" in done.stdout
