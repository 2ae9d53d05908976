"""The page about exports: its commands are run, and print what it shows."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness import exported
from whence.export import FORMATS

PAGE = exported.ROOT / "docs" / "how-to" / "export-a-recording.md"
REFERENCE = exported.ROOT / "docs" / "reference" / "export.md"


def blocks(language):
    return re.findall(
        rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    subprocess.run([sys.executable, "-c", blocks("python")[0]], cwd=folder, check=True)
    return folder


def steps():
    """Commands, and the lines that are shown after them."""
    for block in blocks("console"):
        for step in block.removeprefix("$ ").split("\n$ "):
            command, *shown = step.strip().splitlines()
            yield command, shown


def sizeless(line):
    return re.sub(r", [\d.]+ (bytes|KB|MB)$", "", line)


@pytest.mark.parametrize(("command", "shown"), [*steps()])
def test_commands_print_what_is_shown(command, shown, folder):
    tool = shlex.split(command)[0]
    beside = Path(sys.executable).parent
    path = f"{beside}{os.pathsep}{os.environ['PATH']}"
    exported.needs(tool, there=shutil.which(tool, path=path) is not None)
    if "parquet" in command:
        pytest.importorskip("pyarrow")
        pytest.importorskip("duckdb")
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    if shown:
        lines = done.stdout.splitlines()
        assert [sizeless(line) for line in lines] == [sizeless(line) for line in shown]


def test_all_formats_are_on_both_pages():
    for page in (PAGE, REFERENCE):
        text = page.read_text()
        for each in FORMATS:
            assert f"`{each.name}`" in text
            for suffix in each.suffixes:
                assert f"`{suffix}`" in text
