"""whence run: what it says when the program is over."""

import os
import pty
import re
import subprocess
import sys

import pytest

import whence
from harness.beside_python import environment
from harness.beside_python import whence as command

pytestmark = pytest.mark.store

PROGRAM = """
    import os, sys, threading, time
    def hot():
        end = time.perf_counter() + 0.2
        while time.perf_counter() < end:
            pass
    def cold():
        pass
    hot()
    for _ in range(10):
        cold()
    thread = threading.Thread(target=cold)
    thread.start()
    thread.join()
    print("out")
    exec(sys.argv[1] if len(sys.argv) > 1 else "")
"""


@pytest.fixture
def app(beside):
    beside.write("app.py", PROGRAM)
    return beside


def summary(app, *arguments, status=0, **how):
    """Run the program; return the lines that are printed when it is over."""
    done = app.run("-f", "-o", "app.whence", *arguments, **how)
    assert (done.status, done.out) == (status, b"out\n"), done.err
    lines = done.err.decode().splitlines()
    assert lines[0].startswith("whence: recorded app.whence: ")
    return lines


def test_patterns_that_nothing_fits(app):
    line = "  no function matched --include"
    assert line in summary(app, "--include", "ap.py", "app.py")
    assert line not in summary(app, "--include", "app.py", "app.py")
    assert line not in summary(app, "--include", "ap.py", "--no-calls", "app.py")


def test_what_there_is(app):
    lines = summary(app, "app.py")
    with whence.open(app.folder / "app.whence") as recording:
        info, calls = (
            recording.info,
            sum(call.count for call in recording.calls().read()),
        )
    assert re.fullmatch(
        rf"whence: recorded app\.whence: {info.size / 1000:.1f} KB, "
        r"\d+ ms, 2 threads, 1 process",
        lines[0],
    )
    assert lines[1] == f"  {calls:,} calls kept, nothing dropped"
    assert lines[2] == "  most time of their own:"
    hottest = r" +\d+ ms +\d+ %         1 call  hot \(app\.py:3\)"
    assert re.fullmatch(hottest, lines[3])
    assert len(lines) == 3 + 5 + 3
    assert lines[-3:] == [
        "  look further:",
        "    whence summary app.whence",
        "    whence export app.whence -o app.pftrace",
    ]


def test_what_was_dropped(app):
    ring = ["--max-size=40KB", "--chunk-size=4096"]
    lines = summary(app, *ring, "app.py", "for _ in range(100_000): cold()")
    assert re.search(r"calls kept, events dropped: [\d,]+ \(ring\)$", lines[1])
    assert lines[2] == "  the ring wrapped: these are the newest events"
    assert "nothing dropped" in summary(app, *ring, "--no-calls", "app.py")[1]
    assert len(summary(app, "--no-calls", "app.py")) == 5


def test_processes_that_were_followed(app):
    fork = "os.fork() or os._exit(0); os.wait()"
    run = "import subprocess; subprocess.run([sys.executable, '-c', ''])"
    calm = {"python": ["-Wignore"]}  # about a fork with threads
    lines = summary(app, "--follow", "app.py", f"{fork}; {run}", **calm)
    assert lines[0].endswith(", 3 processes")
    assert summary(app, "--follow", "app.py")[0].endswith(", 1 process")
    assert summary(app, "app.py", fork, **calm)[0].endswith(", 1 process")


def test_names_are_shown_as_the_shell_wants_them(app):
    done = app.run("-o", "it's a file.whence", "app.py")
    *_, show, export = done.err.decode().splitlines()
    quoted = subprocess.run(
        ["bash", "-c", f"printf '%s|' {show}; printf '%s|' {export}"],
        capture_output=True,
        text=True,
    )
    file, out = "it's a file.whence", "it's a file.pftrace"
    assert quoted.stdout == f"whence|summary|{file}|whence|export|{file}|-o|{out}|"


@pytest.mark.parametrize(
    "name",
    [
        *(b"-dash.whence", b"-", b"new\nline.whence", b"\xff\xfe.whence"),
        *(
            b"it's \\ \t$HOME `a`.whence",
            b"-\x1b[1m'a'\\n \xe2\x80\x8b7 \xc3\xa9.whence",
        ),
    ],
)
def test_commands_work_whatever_the_recording_is_called(app, name):
    shown = os.fsdecode(name)
    options = ["--follow", "--memory", f"--output={shown}"]
    child = "import subprocess; subprocess.run([sys.executable, '-c', ''])"
    done = app.run(*options, "app.py", child)
    assert done.status == 0
    text = done.err.decode()
    assert all(c.isprintable() or c == "\n" for c in text)
    commands = text.partition("  look further:\n")[2].splitlines()
    assert [c.split()[1] for c in commands] == [
        *("summary", "export", "export", "merge")
    ]
    script = f'whence() {{ "{sys.executable}" -m whence "$@" || exit 1; }}\n'
    tried = subprocess.run(
        ["bash", "-c", script + "\n".join(commands)],
        cwd=app.folder,
        env=environment(),
        capture_output=True,
    )
    assert (tried.returncode, tried.stderr) == (0, b"")
    folder = os.fsencode(app.folder)
    made = {each for each in os.listdir(folder) if not each.endswith(b".py")}
    stem = name.removesuffix(b".whence")
    assert {name, stem + b".pftrace", stem + b".speedscope.json"} < made
    assert stem + b".merged.whence" in made


def test_escape_sequences_do_not_reach_the_terminal(app):
    name = "a\x1b]0;owned\x07.whence"
    text = app.run("-o", name, "app.py").err.decode()
    assert "\\x1b]0;owned" in text
    assert all(c.isprintable() or c == "\n" for c in text)


def test_it_comes_after_everything_and_changes_nothing(app):
    done = app.run(
        *("-f", "-o", "app.whence", "app.py"),
        "import atexit; atexit.register(lambda: print('last', file=sys.stderr)); 1/0",
    )
    assert done.status == 1
    before, _, after = done.err.decode().partition("whence: recorded")
    assert before.endswith("ZeroDivisionError: division by zero\nlast\n")
    assert after.rstrip().endswith(".pftrace")
    summary(app, "app.py", "os.chdir('/')")
    summary(app, "app.py", "sys.exit(5)", status=5)
    summary(app, "app.py", "sys.stderr = open(os.devnull, 'w')")
    summary(app, "app.py", "sys.path[:] = []; sys.setrecursionlimit(150)")


def test_a_recording_that_is_gone(app):
    done = app.run(
        "-fo", "app.whence", "app.py", "os.unlink('app.whence'); sys.exit(3)"
    )
    assert done.status == 3
    (line,) = done.err.decode().splitlines()
    assert line.startswith("whence: recorded app.whence; no summary: FileNotFoundError")


def test_programs_that_make_it_hard(app):
    for code in (
        "import builtins; builtins.open = None",
        "sys.modules['rich'] = None",
        "os.write = None",
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))",
    ):
        done = app.run("-f", "-o", "app.whence", "app.py", f"{code}; sys.exit(4)")
        plain = subprocess.run(
            [sys.executable, "app.py", f"{code}; sys.exit(4)"], cwd=app.folder
        )
        assert done.status == plain.returncode == 4, code
        assert b"Traceback" not in done.err, code


def test_quiet(app):
    assert app.run("-q", "-f", "-o", "app.whence", "app.py") == (0, b"out\n", b"")
    assert app.run("--quiet", "-fo", "app.whence", "app.py") == (0, b"out\n", b"")


def test_in_colours_on_a_terminal(app):
    ours, theirs = pty.openpty()
    done = subprocess.run(
        command("run", "-f", "-o", "app.whence", "app.py"),
        cwd=app.folder,
        env=environment(TERM="xterm-256color", NO_COLOR=""),
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    assert done.returncode == 0
    text = os.read(ours, 100_000)
    os.close(ours)
    assert text.startswith(b"\x1b[1mwhence: recorded app.whence")
