"""Check that dependencies between layers point one way.

Native layers may include only what ARROWS allows; only ``native/cpython`` may look at
CPython's version or internals; layers that know no Python may not include its header.
In the package, only the command line may import ``rich``, and nothing may import the
command line.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

NO_PYTHON = {"base", "format", "store", "read", "handles", "elf", "unwind"}
ARROWS: dict[str, set[str]] = {
    "base": set(),
    "format": {"base"},
    "store": {"base", "format"},
    "handles": {"base"},
    "elf": {"base"},
    "read": {"base", "format", "handles"},
    "unwind": {"base"},
    "cpython": {"base"},
    "stacks": {"base", "cpython", "unwind"},
    "probes": {"base", "format", "store", "cpython", "stacks"},
    "session": {"base", "format", "store", "cpython", "stacks", "probes"},
    "module": {
        *("base", "format", "store", "read", "cpython", "stacks", "probes"),
        *("session", "handles", "elf", "include", "unwind"),
    },
    "include": set(),
    "fuzz": {"base", "elf", "format", "handles", "read"},
}
INTERPRETER_DETAILS = re.compile(r"PY_VERSION_HEX|Py_BUILD_CORE|internal/|pycore_")
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
LONGEST_LINE = 100
HEADER_SAYS = ("Threads", "llocates", "Fails by")


def check_native(path: Path) -> list[str]:
    """Return what is wrong with one native file."""
    layer = path.relative_to(ROOT / "native").parts[0]
    text = path.read_text()
    problems = []
    for quoted, system in INCLUDE.findall(text):
        target = quoted.split("/")[0]
        if quoted and target != layer and target not in ARROWS[layer]:
            problems.append(f"{layer} may not include {quoted}")
        if layer in NO_PYTHON and system == "Python.h":
            problems.append(f"{layer} may not know Python")
    if layer not in ("cpython", "include") and INTERPRETER_DETAILS.search(text):
        problems.append("interpreter details belong to native/cpython")
    if any(len(line) > LONGEST_LINE for line in text.splitlines()):
        problems.append(f"a line is longer than {LONGEST_LINE} columns")
    opening = text.split("#pragma once")[0].split("#include")[0]
    if not opening.startswith((f"// {path.name}:", f"/* {path.name}:")):
        problems.append("the file must open with its name and what it is for")
    if path.suffix == ".h" and layer not in ("include", "cpython", "fuzz"):
        problems += [
            f"the opening must say: {word}"
            for word in HEADER_SAYS
            if word not in opening
        ]
    return problems


def check_package(path: Path) -> list[str]:
    """Return what is wrong with one Python file."""
    parts = path.relative_to(ROOT / "src" / "whence").parts
    in_cli = "cli" in parts or parts == ("__main__.py",)
    text = path.read_text()
    problems = []
    if not in_cli and re.search(r"^\s*(import|from) rich\b", text, re.MULTILINE):
        problems.append("only the command line may import rich")
    if not in_cli and re.search(r"^\s*from whence(\.| import )cli", text, re.MULTILINE):
        problems.append("nothing may import the command line")
    return problems


def main() -> int:
    """Check every file; print one line for each problem."""
    native = [p for p in (ROOT / "native").rglob("*") if p.suffix in (".h", ".cpp")]
    package = list((ROOT / "src" / "whence").rglob("*.py"))
    found = [(p, check_native(p)) for p in native]
    found += [(p, check_package(p)) for p in package]
    for path, problems in sorted(found):
        for problem in problems:
            print(f"{path.relative_to(ROOT)}: {problem}")
    total = sum(len(problems) for _, problems in found)
    print(f"layers: {len(found)} files, {total} problems")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
