"""An environment with the pinned packages, and their unpacked sdists.

Both are made once, under build/, and made again when the pins change. The environment
has no whence of its own: it gets a link to the one that is being tested.
"""

import hashlib
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import whence
from packages import pins

CACHE = Path(__file__).resolve().parents[2] / "build" / "packages"
PIP = ("-m", "pip", "--disable-pip-version-check", "-q")


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"


def make_whole(target, make):
    """Make a folder, or leave none: `make` is called with the place to make it in."""
    if target.exists():
        return target
    shutil.rmtree(unfinished := target.with_name(f"{target.name}.part"), True)
    unfinished.mkdir(parents=True)
    make(unfinished)
    unfinished.rename(target)
    return target


def sources(name):
    """Return the folder that the sdist of a package unpacks to."""
    suite = pins.SUITES[name]
    pinned = f"{name}=={suite.version}"

    def fetch(folder):
        wanted = folder / "wanted.txt"
        wanted.write_text(f"{pinned} --hash=sha256:{suite.sha256}\n")
        call(
            *(sys.executable, *PIP, "download", "--no-deps", "--no-binary", name),
            *("--require-hashes", "-r", wanted, "-d", folder),
        )
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")

    folder = make_whole(CACHE / f"{pinned}-{suite.sha256[:12]}", fetch)
    (unpacked,) = (found for found in folder.iterdir() if found.is_dir())
    return unpacked


def python():
    """Return the interpreter of the environment, like this one in version."""
    packages = [f"{name}=={suite.version}" for name, suite in pins.SUITES.items()]
    wanted = [*packages, *pins.NEEDS]
    key = hashlib.sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()[:12]
    folder = CACHE / f"{sys.version_info.major}.{sys.version_info.minor}-{key}"
    interpreter = folder / "bin" / "python"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        call(interpreter, *PIP, "install", "--no-deps", *wanted)
        call(interpreter, *PIP, "check")
        (folder / "complete").touch()
    return interpreter


def link_whence(folder):
    """Return a folder to import the tested whence from, and nothing else with it.

    Its name keeps Hypothesis from taking whence for code of the project under test,
    whose constants it would try as examples.
    """
    site = folder / "site-packages"
    site.mkdir()
    (site / "whence").symlink_to(Path(whence.__file__).parent)
    return site
