"""Print the path of one working CPython for each supported minor version found."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

SUPPORTED = [(3, minor) for minor in range(11, 16)]


def candidates(name: str) -> list[str]:
    """Return where an interpreter of that name may be: on PATH, or in pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    installed = sorted(map(str, pyenv.glob(f"versions/*/bin/{name}")), reverse=True)
    on_path = shutil.which(name)
    return [sys.executable, *([on_path] if on_path else []), *installed]


def works(python: str, version: tuple[int, int]) -> bool:
    """Tell whether this is a CPython of that version with headers and venv."""
    question = (
        "import ensurepip, os, sys, sysconfig, venv;"
        "header = os.path.join(sysconfig.get_path('include'), 'Python.h');"
        "print(sys.implementation.name, *sys.version_info[:2], os.path.exists(header))"
    )
    answer = subprocess.run(
        [python, "-c", question], capture_output=True, text=True, check=False
    )
    return answer.stdout.split() == ["cpython", *map(str, version), "True"]


def main() -> None:
    """Print one path a line, oldest version first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--except", dest="other_than", default="", metavar="VERSION")
    other_than = parser.parse_args().other_than
    for version in SUPPORTED:
        name = "python{}.{}".format(*version)
        if name == f"python{other_than}":
            continue
        for python in candidates(name):
            if works(python, version):
                print(python)
                break


if __name__ == "__main__":
    main()
