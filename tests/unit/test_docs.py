"""What the pages show is run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.beside_python import environment
from harness.walks import IS_FAST, needs_stacks

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
    ROOT / "docs" / "reference" / "handles.md",
]


def blocks(page, language):
    return re.findall(
        rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run_in_order(page, tmp_path):
    if page.name == "find-a-memory-leak.md" and not IS_FAST:
        pytest.skip("memory has no stacks where frames are walked by the public API")
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks(page, "python")))
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr


def test_the_tutorial_prints_what_it_shows(tmp_path):
    page = ROOT / "docs" / "tutorials" / "who-calls.md"
    (tmp_path / "orders.py").write_text("\n\n".join(blocks(page, "python")[:2]))
    done = subprocess.run(
        [sys.executable, "orders.py"], capture_output=True, text=True, cwd=tmp_path
    )
    (shown,) = blocks(page, "console")
    expected = [line.strip() for line in shown.splitlines()[1:] if line != "..."]
    printed = done.stdout.replace(f"{tmp_path}/", "")
    for line in expected:
        assert set(line) <= {"^", "~"} or line in printed, line


def test_the_compiler_prints_what_the_page_shows(tmp_path):
    page = ROOT / "docs" / "tutorials" / "errors-that-point-to-the-source.md"
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks(page, "python")))
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path
    )
    printed = [_without_numbers(line) for line in done.stdout.splitlines()]
    for shown in blocks(page, "text"):
        for line in map(_without_numbers, shown.splitlines()):
            assert line == "..." or line in printed, line


def test_the_readme_shows_what_the_example_prints():
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "where.py"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    shown = blocks(ROOT / "README.md", "console")[0].splitlines()[1:-1]
    printed = done.stdout.replace(f"{ROOT}/", "").splitlines()
    without_carets = [line for line in printed if set(line.strip()) - {"^", "~"}]
    for line in shown:
        assert not set(line.strip()) - {"^", "~"} or line in without_carets, line


@pytest.mark.parametrize(
    ("page", "program"),
    [
        ("how-to/run-a-program", "report.py"),
        ("how-to/record-many-processes", "orders.py"),
        pytest.param("how-to/find-a-memory-leak", "server.py", marks=needs_stacks),
        ("tutorials/first-recording", "shop.py"),
    ],
)
def test_programs_are_run_as_the_page_shows(tmp_path, page, program):
    """All blocks in their order: files are written, commands print what is shown.

    The first block of each language is a file; what follows is run by another test.
    """
    page = ROOT / "docs" / f"{page}.md"
    files = {"python": program, "toml": "pyproject.toml"}
    script = f'exec 2>&1; whence() {{ {sys.executable} -m whence "$@"; }}\n'
    shown, written = [], ""
    for language, block in re.findall(
        r"^```(python|toml|diff|console)\n(.*?)^```$",
        page.read_text(),
        re.MULTILINE | re.DOTALL,
    ):
        if language == "diff":
            written = _changed(written, block)
            script += f"cat >{program} <<'END'\n{written}END\n"
            continue
        if language != "console":
            if file := files.pop(language, None):
                script += f"cat >{file} <<'END'\n{block}END\n"
                written = block
            continue
        for line in block.splitlines():
            if line.startswith("$ "):
                script += line[2:] + "\n"
            elif line.strip() != "...":
                shown.append(_without_numbers(line))
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    printed = [_without_numbers(line) for line in done.stdout.splitlines()]
    if sys.version_info >= (3, 12):  # there it is no function
        shown = [line for line in shown if "<listcomp>" not in line]
    assert set(shown) <= set(printed)


def _changed(text, diff):
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    assert text.count(before) == 1
    return text.replace(before, "".join(line[1:] for line in lines if line[0] in " +"))


def _without_numbers(line):
    line = re.sub(r"\d[\d.,]*( (ns|us|ms|s|KB|MB|bytes)\b)?", "0", line)
    return " ".join(line.split())


def test_the_native_example_works(tmp_path):
    """The console block's own commands, with this interpreter as `python`."""
    page = ROOT / "docs" / "how-to" / "capture-from-native-code.md"
    (source,) = blocks(page, "cpp")
    (console,) = blocks(page, "console")
    (tmp_path / "pool.cpp").write_text(source)
    commands, shown = console.split("  File", 1)
    script = re.sub(r"^\$ ", "", commands, flags=re.MULTILINE)
    compile_step, run_step = re.split(r"\n(?=python)", script, maxsplit=1)
    # A sanitizer is for Python, not for the compiler.
    preload = os.environ.get("LD_PRELOAD", "")
    python = f"$(env LD_PRELOAD='{preload}' {sys.executable}"
    subprocess.run(
        ["bash", "-ec", compile_step.replace("$(python", python)],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"},
        check=True,
    )
    done = subprocess.run(
        ["bash", "-ec", run_step.replace("python", sys.executable, 1)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    # Some versions know the source of `-c` too, and show it.
    places = [line for line in done.stdout.splitlines() if line.startswith("  File")]
    assert places == ("  File" + shown).rstrip().splitlines()


def test_the_allocators_report_what_the_page_shows(tmp_path):
    page = ROOT / "docs" / "how-to" / "report-your-own-allocator.md"
    (program,), (source,) = blocks(page, "python"), blocks(page, "cpp")
    in_python, in_c = blocks(page, "console")
    (tmp_path / "device.py").write_text(program)
    (tmp_path / "arena.cpp").write_text(source)
    for console, shown in ((in_python, 4), (in_c, 1)):
        lines = console.splitlines()
        script = re.sub(r"^\$ ", "", "\n".join(lines[:-shown]), flags=re.MULTILINE)
        # A sanitizer is for Python, not for the compiler.
        preload = os.environ.get("LD_PRELOAD", "")
        python = f'python() {{ LD_PRELOAD="{preload}" {sys.executable} "$@"; }}\n'
        done = subprocess.run(
            ["bash", "-ec", python + script],
            cwd=tmp_path,
            env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == lines[-shown:]


@pytest.mark.parametrize(
    "page", [*PAGES, *sorted((ROOT / "docs").rglob("*.md")), *ROOT.glob("*.md")]
)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+\.md)\)", page.read_text()):
        assert (page.parent / target).exists(), target
